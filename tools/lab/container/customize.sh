# shellcheck shell=sh
# Runs in the finished root file system of the image for jobs in containers.
umask 022
ln -s python3 /usr/bin/python
# A container is read anew for each rank: without compiled files, every rank would compile PyTorch again.
python3 -m compileall -q -j 2 /usr/local/lib/python3.11/dist-packages || true
chmod 0755 /usr/local/lib/python3.11/dist-packages/torch/bin/torch_shm_manager

# The user of the lab's nodes, without a password and not locked.
useradd --uid 4000 --user-group --create-home --shell /bin/bash train
usermod -p '*' train
# The host's keys and settings are mounted.
rm -f /etc/ssh/ssh_host_* /etc/ssh/sshd_config /etc/ssh/ssh_config
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
