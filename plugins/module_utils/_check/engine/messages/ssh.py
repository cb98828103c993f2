# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ssh says, with which mpirun and launchers reach the other nodes, and what sshd writes in its log.

Read in the sources of OpenSSH 7.4 to 9.9.  Each answer has its own fix: most of them no role can give.  Pure.
"""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import (
    PEER,
    READ,
    REPORTED,
    SELF,
    Text,
)

#: On the node whose sshd answered: it writes the reason that it does not tell the other end.
LOG = "journalctl -u sshd -u ssh -n 30 --no-pager"
IN_LOG = "the log of sshd on that node says why"
CONNECT = r"ssh: connect to host (?P<host>\S+) port (?P<port>\d+): "
MESH = fixes.site("ssh_mesh")
CLOCKS = "chronyc tracking || timedatectl"

CONNECTIONS = (
    Text(
        r"Could not resolve hostname (?P<host>[^\s:]+): Temporary failure",
        causes.NAMES,
        SELF,
        "no name server answers the node that started the job",
        known=READ,
        fix="repair the name servers of this node (/etc/resolv.conf), or write the names of all members with "
        "cluster_hosts",
        look="getent hosts $(hostname); cat /etc/resolv.conf",
    ),
    Text(
        r"ssh: Could not resolve hostname (?P<host>[^\s:]+)",
        causes.NAMES,
        SELF,
        "that name does not resolve on the node that started the job",
    ),
    Text(
        rf"{CONNECT}(?:Network is unreachable|Network is down|Invalid argument|Cannot assign requested address)",
        causes.INTERFACE,
        SELF,
        "the node that started the job has no route to that address",
        known=READ,
        fix="see what the routes of this node say about that address (ip route get), and repair the route or "
        "the interface",
        look="ip -brief address; ip route; ip rule",
    ),
    Text(
        rf"{CONNECT}(?:Permission denied|Operation not permitted)",
        causes.BLOCKED,
        SELF,
        "the node that started the job does not let the connection out: its own packet filter, or a route that "
        "prohibits",
        known=READ,
        fix="look at the output rules and the routes of this node",
        look="nft list ruleset | grep -A20 output; ip route",
    ),
    Text(
        rf"{CONNECT}Connection refused",
        causes.BLOCKED,
        PEER,
        "sshd of that node does not answer: nothing listens on that port, or a filter rejects",
        fix="start sshd on that node, or name the port that it listens on; if it does, open the port",
        look="ss -ltnp | grep ssh; systemctl status ssh sshd --no-pager",
    ),
    Text(
        rf"{CONNECT}(?:Connection|Operation) timed out",
        causes.BLOCKED,
        PEER,
        "sshd of that node does not answer: the node is down, or a filter drops its port on the way",
        known=READ,
        fix="see whether that node runs (console, ping), then what drops the port of sshd on it and between",
    ),
    Text(
        rf"{CONNECT}No route to host",
        causes.BLOCKED,
        PEER,
        "that node does not answer in its network (down, cable, wrong address), or a filter rejects",
        known=READ,
        fix="see whether that node runs and has this address (ping, ip neigh); if so, open the port of sshd on it",
    ),
    Text(
        r"ssh: connect to host (?P<host>\S+) port (?P<port>\d+): ",
        causes.BLOCKED,
        PEER,
        "the connection to sshd of that node failed",
    ),
    Text(
        r"(?:ssh|kex)_exchange_identification: (?:Connection closed by remote host|read: Connection reset by peer)"
        r"|Exceeded MaxStartups",
        causes.RESOURCES,
        PEER,
        "sshd of a node closed the connection at once: more logins at a time than MaxStartups, failed logins before "
        "(PerSourcePenalties), or hosts.deny",
        known=READ,
        fix="raise MaxStartups of sshd there (as 200:30:1000), or start on fewer nodes at a time; after failed logins "
        f"wait a minute; {IN_LOG}, or /etc/hosts.deny does",
        look=f"sshd -T | grep -i -E 'maxstartups|maxsessions|persource'; {LOG}",
    ),
    Text(
        r"past MaxStartups|MaxStartups throttling",
        causes.RESOURCES,
        SELF,
        "sshd of this node got more logins at a time than MaxStartups, and drops some",
        known=READ,
        fix="raise MaxStartups of sshd (as 200:30:1000), or start on fewer nodes at a time",
        look="sshd -T | grep -i -E 'maxstartups|maxsessions|persource'",
    ),
    Text(
        r"Not allowed at this time",
        causes.RESOURCES,
        PEER,
        "sshd of a node shuts this address out for a while after failed logins (PerSourcePenalties)",
        known=READ,
        fix="wait some minutes and repair the login that fails, or exempt the cluster with PerSourcePenaltyExemptList",
        look=LOG,
    ),
    Text(
        r"refused connect from (?P<address>[^\s()]+)",
        causes.SSH,
        SELF,
        "hosts.deny or hosts.allow of this node leaves the other one out",
        known=REPORTED,
        fix="take the members out of /etc/hosts.deny, or into /etc/hosts.allow (sshd: ADDRESS)",
        look="cat /etc/hosts.deny /etc/hosts.allow",
    ),
    Text(
        r"Too many logins for|session request failed: Session open refused by peer|shell request failed on channel"
        r"|channel 0: open failed: connect failed: open failed",
        causes.RESOURCES,
        PEER,
        "that node lets no further session in: MaxSessions of sshd, or maxlogins or nproc of the user",
        known=REPORTED,
        fix="end old sessions of the user there, or raise MaxSessions (sshd) and maxlogins, nproc (limits)",
        look="loginctl list-sessions; sshd -T | grep -i maxsessions; grep -r . /etc/security/limits.d",
    ),
    Text(
        r"Connection timed out during banner exchange|Timeout, server (?P<host>\S+) not responding",
        causes.STOPPED,
        PEER,
        "that node takes connections and does not answer: it hangs, or is out of memory",
        known=READ,
    ),
    Text(
        r"Connection closed by UNKNOWN port 65535",
        causes.SSH,
        SELF,
        "the ProxyCommand or ProxyJump of ssh on this node failed",
        known=READ,
        fix="run the ProxyCommand of ~/.ssh/config or /etc/ssh/ssh_config by hand, or take it out for the members",
        look="grep -r -i proxy ~/.ssh/config /etc/ssh/ssh_config*",
    ),
)

IDENTITY = (
    Text(
        r"host key (?:for|is known for) (?P<host>\S+) (?:has changed|and you have requested)",
        causes.SSH,
        PEER,
        "the host key or certificate of that node is not one that is trusted",
    ),
    Text(
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|Offending \S+ key in",
        causes.SSH,
        PEER,
        "the host key of a node is not the one that is known of it: it was installed again, or it is another machine",
        fix="when the node was installed again, let ssh_mesh write its new key, and take the old one out of the "
        "user's own "
        "known_hosts (ssh-keygen -R NAME)",
        command=MESH,
    ),
    Text(
        r"The authenticity of host '(?P<host>[^\s']+)[^']*' can't be established",
        causes.SSH,
        PEER,
        "the host key of that node is not known here",
        known=READ,
    ),
    Text(
        r"Certificate invalid: not yet valid",
        causes.SSH,
        PEER,
        "a certificate of ssh is not valid yet: the clock of one of the two nodes is wrong",
        known=READ,
        fix="set the clocks of both nodes; only then let ssh_mesh sign again",
        look=CLOCKS,
    ),
    Text(
        r"Certificate invalid: expired|key has expired",
        causes.SSH,
        PEER,
        "a certificate of ssh has expired",
        known=READ,
        fix="let ssh_mesh sign new certificates; with a clock that is wrong, set that first",
        command=MESH,
    ),
    Text(
        r"Certificate invalid: name is not a listed principal|name is not a listed principal",
        causes.SSH,
        PEER,
        "the certificate of ssh does not name this node or user",
        known=READ,
        fix="connect by the name that the certificate has, or let ssh_mesh sign one with the names of the inventory",
        command=MESH,
    ),
    Text(
        r"REVOKED HOST KEY DETECTED|Certificate invalid: not a (?:host|user) certificate|No matching CA found",
        causes.SSH,
        PEER,
        "a key or certificate of ssh is revoked, or is not of the cluster's authority",
        known=READ,
    ),
    Text(
        r"Unable to negotiate with (?P<host>\S+?)(?: port \d+)?: no matching|no matching (?:host key type|hostkey|"
        r"key exchange method|cipher|MAC) found|no mutual signature (?:algorithm|supported)",
        causes.SSH,
        PEER,
        "the two nodes have no key type or cipher of ssh in common: one allows only old ones, or only new ones",
        known=READ,
        fix="give both nodes the same crypto policy and ed25519 keys (--tags ssh_mesh), rather than to allow old ones",
        look="update-crypto-policies --show; sshd -T | grep -i -E 'algorithms|ciphers|macs'",
    ),
)

ACCOUNT = (
    Text(
        r"[Aa]ccount \S+ has expired|Your account has expired",
        causes.SSH,
        PEER,
        "the job's user has expired on that node",
        known=READ,
        fix="give the account a later day on that node: chage -E -1 USER",
        look='chage -l "$USER"',
    ),
    Text(
        r"password has expired|required to change your password immediately|Password change required but no TTY",
        causes.SSH,
        PEER,
        "the password of the job's user has expired on that node",
        known=READ,
        fix="set a new password there, or let it never expire: chage -M -1 USER",
        look='chage -l "$USER"',
    ),
    Text(
        r"not allowed because account is locked",
        causes.SSH,
        SELF,
        "the account of the job's user is locked on this node",
        known=READ,
        fix="unlock it with a password that nobody has: usermod -p '*' USER",
        look="passwd -S -a",
    ),
    Text(
        r"not allowed because (?:not listed|listed in|none of|a group)",
        causes.SSH,
        SELF,
        "AllowUsers, AllowGroups, DenyUsers or DenyGroups of sshd leave this user out",
        known=READ,
        fix="add the user to AllowUsers or AllowGroups in /etc/ssh/sshd_config of this node, and reload sshd",
        look="sshd -T | grep -i -E '^(allow|deny)(users|groups)'",
    ),
    Text(
        r"bad ownership or modes for",
        causes.SSH,
        SELF,
        "the home folder or ~/.ssh of the user is writable by others on this node, so sshd ignores its keys",
        known=READ,
        fix="take the right to write from group and others: chmod go-w ~ ~/.ssh ~/.ssh/authorized_keys",
        look="ls -ld ~ ~/.ssh ~/.ssh/authorized_keys",
    ),
    Text(
        r"System is (?:booting up|going down)\b|Unprivileged users are not permitted to log in|pam_nologin",
        causes.SSH,
        PEER,
        "that node lets nobody but root in: it boots, shuts down, or /run/nologin or /etc/nologin was left behind",
        known=REPORTED,
        fix="wait until it has booted; when it has, take away /run/nologin and /etc/nologin",
        look="systemctl is-system-running; ls -l /run/nologin /etc/nologin",
    ),
    Text(
        r"This account is currently not available",
        causes.SSH,
        PEER,
        "the job's user has the shell nologin on that node",
        known=REPORTED,
        fix="give it a shell there: usermod -s /bin/bash USER",
        look='getent passwd "$USER"',
    ),
    Text(
        r"Access denied by pam_slurm|you have no active jobs on this node",
        causes.SSH,
        PEER,
        "that node lets in only users with a job of Slurm on it",
        known=REPORTED,
        fix="start from inside the allocation (srun, sbatch), on the nodes of that job only",
        look="squeue --me",
    ),
    Text(
        r"Could not chdir to home directory",
        causes.FILES,
        PEER,
        "the home folder of the job's user is missing on that node, or not for this user",
        known=READ,
        fix="mount or make the home folder on that node (shared_storage, cluster_user), owned by the user",
        look='getent passwd "$USER"; findmnt -T "$HOME"',
    ),
    Text(
        r"Too many authentication failures",
        causes.SSH,
        SELF,
        "ssh of this node offers more keys than sshd there takes (MaxAuthTries) before the right one",
        known=READ,
        fix="set IdentitiesOnly yes with the one IdentityFile for the members, or empty the agent: ssh-add -D",
        look="ssh-add -l",
    ),
    Text(
        r"no authentication methods enabled",
        causes.SSH,
        PEER,
        "sshd of a node wants a kind of login from this user that it does not offer (AuthenticationMethods)",
        fix="let publickey be enough for the job's user in /etc/ssh/sshd_config of that node, and reload sshd",
        look="sshd -T | grep -i authenticationmethods",
    ),
    Text(
        r"(?:[\w.-]{1,64}@(?P<host>[^\s:]{1,255}): )?Permission denied \([a-z-]+(?:,[a-z-]+)*\)"
        r"|Permission denied, please try again",
        causes.SSH,
        PEER,
        "a node does not let this user in: its key, or the account, AllowUsers or the home folder there",
        fix=f"{IN_LOG}: locked or expired account, AllowUsers, 'bad ownership or modes', or a key that it does "
        f"not know; for "
        "the last let ssh_mesh write the keys",
        look=LOG,
    ),
)

OWN_SIDE = (
    Text(
        r"UNPROTECTED PRIVATE KEY FILE|Permissions 0\d+ for '\S+' are too open",
        causes.SSH,
        SELF,
        "others may read the private key on this node, so ssh ignores it",
        known=READ,
        fix="take their rights: chmod 600 on the key",
        look="ls -l ~/.ssh",
    ),
    Text(
        r"Bad owner or permissions on \S+",
        causes.SSH,
        SELF,
        "a file of settings of ssh on this node is not the user's, or others may write to it",
        known=READ,
        fix="make it the user's and take the others' right to write: chmod 600 ~/.ssh/config",
        look="ls -ld ~ ~/.ssh; ls -l ~/.ssh",
    ),
    Text(
        r"Bad configuration option: |terminating, \d+ bad configuration options|Unsupported option \"|"
        r"no argument after keyword|keyword \S+ extra arguments at end of line",
        causes.SSH,
        SELF,
        "the settings of ssh on this node have an option that this release does not know",
        known=READ,
        fix="take the line out that the text names, or put IgnoreUnknown before it",
        look="ssh -G localhost >/dev/null",
    ),
    Text(
        r"OpenSSL version mismatch",
        causes.VERSIONS,
        SELF,
        "OpenSSL of this node was updated without OpenSSH, or LD_LIBRARY_PATH gives ssh another one",
        known=READ,
        fix="update openssh and openssl together, and take conda and the like out of LD_LIBRARY_PATH",
        look="ssh -V; echo $LD_LIBRARY_PATH",
    ),
    Text(
        r"Load key \"[^\"]+\": |Identity file \S+ not accessible",
        causes.SSH,
        SELF,
        "the private key on this node is missing, damaged, or not for this user",
        known=READ,
        command=MESH,
        fix="let ssh_mesh write the keys of the user again",
    ),
    Text(
        r"Enter passphrase for key|ssh_askpass: exec\(",
        causes.SSH,
        SELF,
        "the private key on this node has a passphrase, and nobody is there to type it",
        known=READ,
        command=MESH,
        fix="let ssh_mesh write a key without a passphrase for jobs, or load it into an agent first",
    ),
    Text(
        r"No user exists for uid \d+|You don't exist, go away",
        causes.SSH,
        SELF,
        "the job's user is not known on this node",
        known=READ,
        fix="create the user with the same number on all nodes, or repair the directory service (sssd, LDAP)",
        command=fixes.site("cluster_user"),
    ),
    Text(
        r"\bssh: (?:command not found|not found)|execvp\(\)? ?(?:of )?ssh",
        causes.SSH,
        SELF,
        "there is no ssh on this node",
        known=REPORTED,
        fix="install the package of the ssh client on this node (openssh-clients, openssh-client)",
        look="command -v ssh",
    ),
)

#: What only follows, or does not say why.
FOLLOWING = (
    Text(
        r"Host key verification failed",
        causes.SSH,
        PEER,
        "the host key of a node is not known, or not the one that is known of it",
        weak=True,
    ),
    Text(
        r"Connection (?:closed|reset) by (?:(?:authenticating|invalid) user \S+ )?(?P<host>\S+) port (?P<port>\d+)",
        causes.SSH,
        PEER,
        "sshd of that node closed the connection: MaxStartups, hosts.deny, or it does not let the user in",
        known=READ,
        weak=True,
        fix=f"{IN_LOG}; newer releases of ssh print only this where older ones print kex_exchange_identification",
        look=LOG,
    ),
    Text(
        r"Connection to (?P<host>\S+) (?:port \d+: Broken pipe|closed by remote host|port \d+ timed out)"
        r"|client_loop: send disconnect|packet_write_wait: ",
        causes.STOPPED,
        PEER,
        "a session of ssh broke: that node ended or was rebooted, or something between forgot the connection",
        known=READ,
        weak=True,
    ),
)

TEXTS = (*OWN_SIDE, *CONNECTIONS, *IDENTITY, *ACCOUNT, *FOLLOWING)
