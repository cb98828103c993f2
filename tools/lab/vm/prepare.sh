# shellcheck shell=sh
# Runs inside the unpacked image, with the kernel's version as argument: makes the root of a container that of a machine.
depmod "$1"
cd /etc/systemd/system || exit
# The machine has its own kernel: its settings may be changed, and its devices are there.
rm -f sysinit.target.wants/lab-node.service
rm -f systemd-udevd.service systemd-udev-trigger.service sys-kernel-debug.mount sys-kernel-tracing.mount dev-hugepages.mount
mkdir -p multi-user.target.wants
ln -s ../lab-console.service multi-user.target.wants/lab-console.service
chmod 0644 lab-console.service
ln -s /lib/systemd/system/auditd.service multi-user.target.wants/auditd.service
ln -s /lib/systemd/system/tuned.service multi-user.target.wants/tuned.service
# As an installation of CentOS chooses on a virtual machine.
mkdir -p /etc/tuned /var/log/tuned tuned.service.d
# Debian's policy lets its own tuned not even read its log folder; behind the interpreter it is a service like others.
printf '[Service]\nExecStart=\nExecStart=/usr/bin/python3 /usr/sbin/tuned -l -P\n' > tuned.service.d/interpreter.conf
echo virtual-guest > /etc/tuned/active_profile
echo manual > /etc/tuned/profile_mode
cp /etc/audit/rules.d/audit.rules /etc/audit/audit.rules
semodule --noreload --install=/centos.cil
rm -f /prepare.sh /centos.cil
# CentOS enforces from its first boot. Its labels are written here, while nothing runs: no boot has to relabel the disk.
sed -i 's/^SELINUX=.*/SELINUX=enforcing/' /etc/selinux/config
setfiles -F -e /proc /etc/selinux/default/contexts/files/file_contexts /
