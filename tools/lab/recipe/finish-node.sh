# shellcheck shell=sh
# Runs inside the image, stand-in or real: what every node has.
chmod 0644 /etc/yum.repos.d/lab-nvidia.repo /etc/systemd/system/lab-node.service /etc/NetworkManager/conf.d/10-lab.conf
useradd --uid 4000 --user-group --create-home --shell /bin/bash train
chmod 0700 /home/train

systemctl set-default multi-user.target
systemctl enable lab-node.service NetworkManager.service firewalld.service
systemctl is-enabled --quiet sshd.service || systemctl enable sshd.service
# Mounts of the machine's own file systems, and devices that a container does not have.
systemctl mask sys-kernel-debug.mount sys-kernel-tracing.mount dev-hugepages.mount sys-fs-fuse-connections.mount \
    systemd-udevd.service systemd-udev-trigger.service systemd-pstore.service getty.target

rm -f /etc/ssh/ssh_host_*
: > /etc/machine-id
mkdir -p /srv/wheels /srv/images
mkdir -p /etc/containers/containers.conf.d
chmod 0755 /etc/containers /etc/containers/containers.conf.d
rm -f /usr/local/libexec/finish-*.sh
