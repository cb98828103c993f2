# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a node gave no answer to Ansible, out of what ssh, sudo, the shell or the interpreter said. Pure.

Which text of ssh is which is known by ``_check/engine/messages/ssh.py``; here each gets the variable of the inventory
and the fix for somebody who logs in from the controller. A rule names no address, so that hosts with one cause share a
line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem, shown
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import lookup
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import Text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._host_preflight import (
    ERR_ODD,
    FIX_ODD,
    entries,
    is_answer,
)

HOST, PORT, USER, KEY = "ansible_host", "ansible_port", "ansible_user", "ansible_ssh_private_key_file"
PASSWORD, BECOME, PYTHON = "ansible_password", "ansible_become", "ansible_python_interpreter"
MODULE = "host_preflight"

ERR_BECOME = "cannot become root: %s"
FIX_BECOME = (
    "give the login user sudo on this host, without a password or with ansible_become_password "
    "or --ask-become-pass, or log in as root"
)
ERR_INTERPRETER = "cannot run Ansible's modules: %s"
ERR_NO_SUCH_PYTHON = "the node has no such Python"
FIX_INTERPRETER = "set ansible_python_interpreter to a Python of the node that is new enough"
FIX_NO_SUCH_PYTHON = "run `dnf install python3` on the node, or set ansible_python_interpreter to a Python that it has"
ERR_SILENT = "could not look at the node: %s"
FIX_SILENT = "repeat the command with -vvv and this host in --limit"
ERR_UNREACHABLE = "cannot be reached: %s"
FIX_UNREACHABLE = "check that the node is up, and ansible_host, ansible_user and the key of this host"
ERR_REFUSED = "sshd accepts neither a key nor another login of this user (Permission denied; it offers %s)"
FIX_REFUSED = (
    "check that this is a user of the node; if it is, run `ssh-copy-id %s@HOST`, or name the private key of this user "
    f"in {KEY}"
)
ERR_NO_KEYS = (
    f"ssh has no key to log in with: {KEY} is not set, ~/.ssh of the controller has no id_*, and no ssh-agent runs"
)
FIX_NO_KEYS = f"name the private key in {KEY}, or start an ssh-agent and load it with ssh-add"
FIX_HOST_KEY = "run baremetal.gpu_cluster.host_keys, which shows its key and the ways to accept it (docs/rebuild.md)"
ERR_UNKNOWN_KEY = "its host key is not known to the controller yet"
LOG = "`journalctl -u sshd -n 30` on the node says why"
#: sshd(8) from 9.8 on, with PerSourcePenalties in sshd_config(5): 5 s for each login that fails, from 15 s on in force.
PENALTY = (
    "if logins from here have failed before, wait a minute: sshd of EL 10 shuts out an address for that. In any case, "
    f"{LOG}"
)
#: What Ansible puts before the words of ssh.
_BEFORE = re.compile(
    r"^(?:Task failed: )?(?:Failed to connect to the host via ssh: |Data could not be sent to remote host \"[^\"]*\"\. "
    r"Make sure this host can be reached over ssh: |Failed to connect to the host via scp: )?"
)
_BECOME = re.compile(r"(?:Missing|Incorrect) \w+ password|privilege escalation|\bsudo(?:ers)?\b")
#: A shell that cannot start the interpreter says why in the language of the node; only the form is the same in all.
_INTERPRETER = re.compile(
    r"requires a minimum of Python|python[0-9.]*'?: (?:No such file|not found|Permission denied)"
    r"|sh: (?:(?:\S+ )?\d+: )?\S*python[0-9.]*: |module interpreter '\S+' was not found"
)
_NO_SUCH = re.compile(r"(/[\w./+-]*python[\w.]*)'?(?:: | was not found)")
_REFUSED = re.compile(r"(?:([\w.$-]{1,64})@([^\s:]{1,255}): )?Permission denied \(([a-z-]+(?:,[a-z-]+)*)\)")
_ADDRESS = re.compile(r'connect to host (\S+) port|resolve hostname ([^\s:]+)|remote host "([^"\s]+)"')
_PORT = re.compile(r"connect to host \S+ port (\d+)")
#: The file of a private key that ssh names.
_FILE = re.compile(r"(?:Permissions 0\d+ for '|Load key \"|no such identity: )([^'\"\s]+?)(?:['\"]|: )")
#: The last line of a traceback is the error.
_TRACEBACK = re.compile(r"Traceback \(most recent call last\).*\n(\w[\w.]*(?:Error|Exception)\b[^\n]*)", re.DOTALL)


class Answer(NamedTuple):
    """What is said of a cause: the variable of the inventory that it belongs to, the rule, and the fix."""

    variable: str
    rule: str
    fix: str


#: Texts of Ansible, of sshpass and of what a node says without ssh.
OWN = (
    (
        r"no such identity: ",
        Answer(KEY, "the controller has no such file", "name the private key that exists, or make it with ssh-keygen"),
    ),
    (
        r"host key is known for \S+ and you have requested strict checking",
        Answer(HOST, ERR_UNKNOWN_KEY, FIX_HOST_KEY),
    ),
    (
        r"you must install the sshpass program",
        Answer(PASSWORD, "a password needs the program sshpass on the controller", "install sshpass, or use a key"),
    ),
    (
        r"Using a SSH password instead of a key is not possible because Host Key checking",
        Answer(HOST, "its host key is not known yet, and a password is only sent to a known host", FIX_HOST_KEY),
    ),
    (
        r"Invalid/incorrect password",
        Answer(PASSWORD, "sshd does not accept the password", "correct the password, or use a key: ssh-copy-id"),
    ),
    (
        r"No usable temporary directory|No space left on device|Disk quota exceeded|Read-only file system"
        r"|Failed to create temporary directory",
        Answer(
            "file systems of the node",
            "nothing can be written to /tmp, /var/tmp or the home folder: full, or mounted read-only",
            "look at `df -h / /tmp /var/tmp; df -i /; findmnt -o TARGET,OPTIONS /` on the node, and make room or mount "
            "it writable",
        ),
    ),
    (
        r"Failed to open a control socket|ControlPath too long|unix_listener: .*too long",
        Answer(
            "ansible_control_path_dir",
            "the path of ssh's control socket is too long",
            "set control_path_dir to a short folder in ansible.cfg, below [ssh_connection]",
        ),
    ),
)
_OF_PEER = "check that the machine is on and that this is its address (`ping`, its console)"
CLOSED = "Connection closed by 192.0.2.1 port 22"
#: What ssh prints, as one line of each kind, and what is said of it.
SSH = {
    "ssh: Could not resolve hostname n1: Temporary failure in name resolution": Answer(
        HOST, "the name does not resolve: no name server answers the controller", "write an address instead of a name"
    ),
    "ssh: Could not resolve hostname n1: Name or service not known": Answer(
        HOST,
        "the name does not resolve on the controller",
        "correct the name, write an address instead, or add it to /etc/hosts of the controller",
    ),
    "ssh: connect to host n1 port 22: Network is unreachable": Answer(
        HOST,
        "the controller has no route to this address (Network is unreachable)",
        "correct the address, or add a route on the controller (`ip route get ADDRESS`)",
    ),
    "ssh: connect to host n1 port 22: Permission denied": Answer(
        HOST,
        "the controller itself does not let the connection out",
        "look at the output rules and routes of the controller",
    ),
    "ssh: connect to host n1 port 22: Connection refused": Answer(
        PORT,
        "nothing listens on the port of ssh (Connection refused)",
        "start sshd on the node, or write the port that it listens on; a node in emergency mode has no sshd: look at "
        "its console",
    ),
    "ssh: connect to host n1 port 22: Connection timed out": Answer(
        HOST, "no answer from this address (timed out)", f"{_OF_PEER}, then for a firewall on the way"
    ),
    "ssh: connect to host n1 port 22: No route to host": Answer(
        HOST, "nobody answers at this address and port (No route to host)", f"{_OF_PEER}, then for a firewall on it"
    ),
    "Connection timed out during banner exchange": Answer(
        HOST,
        "something takes the connection and does not answer as sshd (timed out during banner exchange)",
        "look at the console of the node: it hangs or is out of memory, or another program holds this port",
    ),
    "kex_exchange_identification: read: Connection reset by peer": Answer(
        HOST, "sshd closed the connection at once (MaxStartups, PerSourcePenalties, hosts.deny)", PENALTY
    ),
    "Not allowed at this time": Answer(
        HOST, "sshd shuts out this controller for a while, because logins from it have failed", PENALTY
    ),
    CLOSED: Answer(HOST, "sshd closed the connection during the login (pam_nologin, hosts.deny, MaxStartups)", LOG),
    "Connection to 192.0.2.1 closed by remote host": Answer(HOST, "the session broke off", _OF_PEER),
    "Connection closed by UNKNOWN port 65535": Answer(
        "ansible_ssh_common_args", "the ProxyCommand or ProxyJump failed", "run it by hand, or take it out"
    ),
    "REMOTE HOST IDENTIFICATION HAS CHANGED": Answer(
        HOST,
        "its host key is not the one in known_hosts: it was installed again, or another machine has its address",
        FIX_HOST_KEY,
    ),
    "Host key for 192.0.2.1 has changed": Answer(
        HOST,
        "its host key is not the one in known_hosts: it was installed again, or another machine has its address",
        FIX_HOST_KEY,
    ),
    "Host key verification failed": Answer(HOST, ERR_UNKNOWN_KEY, FIX_HOST_KEY),
    "Unable to negotiate with 192.0.2.1 port 22: no matching cipher found": Answer(
        HOST,
        "the controller and the node have no cipher or key type of ssh in common",
        "give both the same crypto policy (`update-crypto-policies --show`)",
    ),
    "Your account has expired; please contact your system administrator.": Answer(
        USER, "the account has expired", "run `chage -E -1 USER` on the node"
    ),
    "Password change required but no TTY available.": Answer(
        USER,
        "the password has expired",
        "run `chage -d -1 -M -1 USER` on the node, or log in by hand and set a new one",
    ),
    "System is booting up. Unprivileged users are not permitted to log in yet.": Answer(
        USER,
        "the node lets nobody but root in (pam_nologin): it boots, shuts down, or was left with /run/nologin or "
        "/etc/nologin",
        "wait until it has booted; then remove the file",
    ),
    "This account is currently not available.": Answer(
        USER, "the shell of this user is nologin", "run `usermod -s /bin/bash USER` on the node"
    ),
    "Access denied by pam_slurm_adopt": Answer(
        USER, "the node lets in only users with a job of Slurm on it", "log in as root, or drain the node first"
    ),
    "Received disconnect from 192.0.2.1 port 22:2: Too many authentication failures": Answer(
        KEY,
        "ssh offers more keys than sshd takes (Too many authentication failures)",
        "name the one key, and add -o IdentitiesOnly=yes to ansible_ssh_common_args",
    ),
    "UNPROTECTED PRIVATE KEY FILE": Answer(
        KEY, "others may read the private key, so ssh ignores it", "run `chmod 600` on it"
    ),
    'Load key "x": error in libcrypto': Answer(
        KEY,
        "the private key cannot be read: damaged, the wrong file, or not for this user",
        "name the private key and not the one that ends with .pub",
    ),
    "Enter passphrase for key": Answer(
        KEY, "the private key has a passphrase", "load it into an ssh-agent first: ssh-add"
    ),
    "Bad owner or permissions on ~/.ssh/config": Answer(
        "~/.ssh/config", "belongs to somebody else, or others may write to it", "run `chmod 600 ~/.ssh/config`"
    ),
    "Bad configuration option: x": Answer(
        "ansible_ssh_common_args", "ssh does not know one of the options", "correct them, or those in ~/.ssh/config"
    ),
    "ssh: command not found": Answer("ansible_ssh_executable", "the controller has no ssh", "install openssh-clients"),
}


def unheard(host: str, result: object, user: str = "", has_keys: bool = True) -> Problem | None:
    """The problem of a host that gave no answer at all, from the result that Ansible registered for it.

    user: who logs in, as far as the inventory says. has_keys: whether ssh of the controller has a key to offer.
    """
    if not isinstance(result, dict):
        return Problem(MODULE, "", "no result from this host", "repeat the command with -vvv", host)
    if not is_answer(result):
        return Problem(MODULE, "", ERR_ODD, FIX_ODD, host)
    if "problems" in result:
        # Not judged by "failed": the task that lets the other hosts go on sets it to false.
        return None
    whole = _BEFORE.sub("", str(result.get("msg", "no message")).strip())
    # What the node itself said is more than "no start of json char found".
    own = str(result.get("module_stderr") or result.get("module_stdout") or "")
    message, said = _sentence(whole), _sentence(own) or _sentence(whole)
    if _BECOME.search(message) or _BECOME.search(said):
        return Problem(BECOME, "", ERR_BECOME % said, FIX_BECOME, host)
    is_silent = bool(result.get("unreachable") or result.get("no_contact"))
    known = _known(whole if is_silent else own or whole, user, has_keys)
    if known is not None:
        return known.on(host)
    if is_silent:
        return Problem(HOST, "", ERR_UNREACHABLE % message, FIX_UNREACHABLE, host)
    if _INTERPRETER.search(said):
        missing = _NO_SUCH.search(said)
        if missing and "minimum" not in said:
            return Problem(PYTHON, shown(missing.group(1)), ERR_NO_SUCH_PYTHON, FIX_NO_SUCH_PYTHON, host)
        return Problem(PYTHON, "", ERR_INTERPRETER % said, FIX_INTERPRETER, host)
    error = _TRACEBACK.search(own)
    return Problem(MODULE, "", ERR_SILENT % (_sentence(error.group(1)) if error else said), FIX_SILENT, host)


def _known(said: str, user: str, has_keys: bool) -> Problem | None:
    """The cause of a text that a table knows."""
    line = " ".join(said.split())
    answer = next((answer for words, answer in OWN if re.search(words, line, re.IGNORECASE)), None)
    answer = answer or _answers().get(_ssh_text(line))
    if answer is not None:
        named = _FILE.search(line)
        port = _PORT.search(line)
        value = {KEY: named.group(1) if named else "", USER: user}.get(answer.variable, "")
        value = port.group(1) if port and answer.variable == PORT else value and shown(value)
        before = line.partition("Connection closed by")[0].strip() if answer is SSH[CLOSED] else ""
        rule = f"{answer.rule}, and said: {before[:200]}" if before else answer.rule
        fix = answer.fix.replace("USER", user or "USER")
        return Problem(answer.variable, value, rule, fix)
    refused = _REFUSED.search(line)
    if refused is None:
        return None
    if not has_keys:
        return Problem(KEY, "", ERR_NO_KEYS, FIX_NO_KEYS)
    user = refused.group(1) or user
    rule = ERR_REFUSED % refused.group(3).replace(",", ", ")
    return Problem(USER, shown(user) if user else "", rule, FIX_REFUSED % (user or "USER"))


def _ssh_text(line: str) -> Text | None:
    """The entry of the registry of texts of ssh."""
    return next((one for software, one, words, _keys in lookup.RULES if software == "ssh" and words.search(line)), None)


@lru_cache
def _answers() -> dict[Text | None, Answer]:
    return {_ssh_text(line): answer for line, answer in SSH.items()}


def _sentence(text: object) -> str:
    return " ".join(str(text).split())[:400].rstrip(".:")


def collected_problems(
    results: Sequence[tuple[str, object]], users: Mapping[str, str] | None = None, has_keys: bool = True
) -> list[Problem]:
    """The problems of all hosts, in the given order, out of what each of them returned. users: who logs in on each."""
    problems: list[Problem] = []
    for host, result in results:
        silent = unheard(host, result, (users or {}).get(host, ""), has_keys)
        problems.extend(entries(host, result, "problems") if silent is None else [silent])
    alone = Counter(one.rule for one in problems if one.variable == HOST)
    said = {host: str(result.get("msg", "")) for host, result in results if isinstance(result, dict)}
    # With its address a problem would have a line for each host.
    return [_with_address(one, said[one.host]) if alone[one.rule] == 1 else one for one in problems]


def _with_address(problem: Problem, said: str) -> Problem:
    found = _ADDRESS.search(said)
    if problem.variable != HOST or problem.value or not found:
        return problem
    return replace(problem, value=shown(next(group for group in found.groups() if group)))
