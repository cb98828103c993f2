# shellcheck shell=sh
# Runs inside the stand-in image: what cannot be done by copying a file.
rm -f /etc/debian_version

# sysctl files that Debian ships would change the machine under the node. EL has a link to an old name among them.
rm -f /usr/lib/sysctl.d/*.conf /etc/sysctl.d/*.conf
echo '# sysctl settings are defined through files in /usr/lib/sysctl.d/, /run/sysctl.d/, and /etc/sysctl.d/.' > /etc/sysctl.conf
ln -s ../sysctl.conf /etc/sysctl.d/99-sysctl.conf

# Debian's own package tools: dnf is the package manager here.
rm -rf /usr/bin/apt /usr/bin/apt-* /var/lib/apt /var/cache/apt /var/cache/debconf /var/log/apt /var/log/dpkg.log /etc/apt
rm -f /etc/systemd/system/timers.target.wants/*

# Debian starts services when it installs them. Here a role has to.
for unit in etcd.service munge.service slurmd.service slurmctld.service podman.service podman.socket podman-restart.service \
    podman-auto-update.service podman-auto-update.timer rpcbind.service rpcbind.socket nfs-client.target; do
    if [ -e "/usr/lib/systemd/system/$unit" ] || [ -e "/lib/systemd/system/$unit" ]; then
        systemctl disable --quiet "$unit"
    fi
done
rm -rf /var/lib/etcd /etc/munge/munge.key /etc/default/etcd

# CentOS: sh is bash, a host knows its own name, and dnf has no plugin that makes a repository of its own.
ln -sf bash /bin/sh
sed -i 's/^hosts:.*/hosts: files dns myhostname/' /etc/nsswitch.conf
rm -f /etc/dnf/plugins/local.conf /usr/lib/python3/dist-packages/dnf-plugins/local.py
# Needs Python's bindings of systemd, and says so in front of whatever dnf prints.
rm -f /usr/lib/python3/dist-packages/dnf-plugins/system_upgrade.py

# Installed in another language than ours: what is read out of a program's output must not depend on it.
localedef --inputfile=de_DE --charmap=UTF-8 de_DE.UTF-8
echo LANG=de_DE.UTF-8 | tee /etc/default/locale > /etc/locale.conf
rm -rf /usr/share/i18n

# As EL's packages have them.
chmod 0600 /etc/ssh/sshd_config /etc/ssh/sshd_config.d/50-redhat.conf
chmod 0700 /etc/ssh/sshd_config.d
chmod 0644 /etc/ssh/ssh_config /etc/ssh/ssh_config.d/50-redhat.conf /etc/crypto-policies/back-ends/*.config
chmod 0644 /etc/containers/storage.conf
chmod 0644 /etc/hosts /etc/dnf/dnf.conf /etc/dnf/vars/releasever /etc/rpm/macros.dbpath /etc/NetworkManager/NetworkManager.conf
chmod 0644 /etc/yum.repos.d/*.repo /usr/lib/os-release /etc/redhat-release /etc/centos-release
rm -rf ~root/.rpmdb
rpm --initdb
dnf --quiet --assumeyes --disablerepo='*' --enablerepo=lab-os install \
    centos-stream-release bash coreutils systemd dbus rpm dnf python3 sudo openssh-server openssh-clients \
    NetworkManager firewalld iproute procps-ng policycoreutils
dnf --quiet clean all
rm -f /var/log/dnf* /var/log/hawkey.log

getent group wheel > /dev/null || groupadd --system wheel
: > /etc/skel/.bashrc
# A site that hardens its machines has this, and programs that forget the mode of what they write meet it.
echo 'umask 077' > ~root/.bashrc
ln -sfn /lib/systemd/system/ssh.service /etc/systemd/system/sshd.service
systemctl enable ssh.service
