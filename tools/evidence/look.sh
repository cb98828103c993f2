#!/bin/sh
# What of a machine decides whether the roles work there: a line each, name and value with a tab between. Changes nothing.
line() { printf '%s\t%s\n' "$1" "$(shift; "$@" 2>&1 | tr '\n\t' '; ' | cut -c1-300)"; }
have() { command -v "$1" > /dev/null 2>&1; }
line release sed -n 's/^PRETTY_NAME=//p' /etc/os-release
line kernel uname -r
line SELinux sh -c 'getenforce; sed -n "s/^SELINUX\(TYPE\)\?=//p" /etc/selinux/config'
line python3 /usr/bin/python3 --version
line 'host name' cat /proc/sys/kernel/hostname
line umask sh -c umask
# shellcheck disable=SC2016 # The inner shell expands it.
line LANG sh -c 'echo "$LANG"'
line /tmp findmnt --noheadings --output FSTYPE,OPTIONS --target /tmp
line 'drop-ins of sshd' ls /etc/ssh/sshd_config.d
line 'drop-ins of ssh' ls /etc/ssh/ssh_config.d
line 'drop-ins of sysctl' ls /etc/sysctl.d
line tuned sh -c 'cat /etc/tuned/active_profile'
line firewalld firewall-cmd --state
for package in kernel-core kernel-devel systemd NetworkManager firewalld nftables openssh-server sudo dnf tuned selinux-policy \
  crypto-policies setools-console dkms python3 openmpi environment-modules; do
  line "package $package" rpm -q "$package"
done
