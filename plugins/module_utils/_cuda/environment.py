# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment of sessions: CUDA_HOME, and PATH with the toolkit's programs at its end. Pure: texts of files.

A command over ssh (``ssh node nvcc``, mpirun's remote daemon) starts a shell that is neither interactive nor a login
shell. What it reads depends on the shell and on the user's own files. What pam_env reads for every session, whatever
its shell, is /etc/environment: lines NAME=VALUE, nothing in them is expanded, ``#`` begins a comment, a line has up to
1023 bytes, and one that is longer ends the reading (github.com/linux-pam/linux-pam modules/pam_env/pam_env.c). It is
part of the stack of sshd on EL (password-auth), also for logins with a key. sshd needs no restart.

Which one of two lines with the same name counts depends on how PAM was built. So there is one: a line of the site that
sets the same name stays, as a comment that is taken back when we go, and its PATH is the beginning of ours.
"""

from __future__ import annotations

import re

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._cuda.versions import LINK

ENVIRONMENT_PATH = "/etc/environment"
SH_PATH = "/etc/profile.d/gpu-cluster-cuda.sh"
CSH_PATH = "/etc/profile.d/gpu-cluster-cuda.csh"
BIN = f"{LINK}/bin"

BEGIN = "# BEGIN gpu-cluster CUDA toolkit"
END = "# END gpu-cluster CUDA toolkit"
#: Before a line of the site that has the name of one of ours.
ASIDE = "#gpu-cluster-aside "
#: What sshd of EL gives to a session itself: --with-default-path of openssh.spec (Fedora, EL 9).
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin"
#: pam_env, BUF_SIZE.
LONGEST_LINE = 1023

ASSIGNMENT = re.compile(r"^\s*(?:export )?(PATH|CUDA_HOME)=(.*)$")

SH_TEXT = f"""\
# Managed by Ansible, role cuda_toolkit of baremetal.gpu_cluster. For shells whose session has not come through PAM.
: "${{CUDA_HOME:={LINK}}}"
export CUDA_HOME
case ":$PATH:" in
    *:{BIN}:*) ;;
    *) PATH="$PATH:{BIN}"; export PATH ;;
esac
"""
CSH_TEXT = f"""\
# Managed by Ansible, role cuda_toolkit of baremetal.gpu_cluster. For shells whose session has not come through PAM.
if ( ! $?CUDA_HOME ) setenv CUDA_HOME {LINK}
if ( ":${{PATH}}:" !~ *:{BIN}:* ) setenv PATH "${{PATH}}:{BIN}"
"""


def without_block(text: str) -> str:
    """The file as the site has it."""
    if BEGIN not in text and ASIDE not in text:
        return text
    lines: list[str] = []
    inside = False
    for line in lines_of(text):
        if line in (BEGIN, END):
            inside = line == BEGIN
        elif not inside:
            lines.append(line[len(ASIDE) :] if line.startswith(ASIDE) else line)
    return "".join(f"{line}\n" for line in lines)


def with_block(text: str) -> str:
    """The file with our lines at its end, and those of the site that they replace as comments."""
    lines = lines_of(without_block(text))
    path = DEFAULT_PATH
    kept = []
    for line in lines:
        found = ASSIGNMENT.match(line)
        if found and found.group(1) == "PATH":
            path = value_of(found.group(2)) or path
        kept.append(ASIDE + line if found else line)
    if BIN not in path.split(":"):
        path = f"{path}:{BIN}"
    return "".join(f"{line}\n" for line in [*kept, BEGIN, f"CUDA_HOME={LINK}", f"PATH={path}", END])


def lines_of(text: str) -> list[str]:
    """The lines as PAM sees them; ``str.splitlines`` knows more ends than that."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def value_of(text: str) -> str:
    """A value as pam_env takes it: without comment and quotes."""
    return text.partition("#")[0].strip().strip("\"'")


def too_long(text: str) -> list[str]:
    """Lines that pam_env would stumble over."""
    return [line for line in lines_of(text) if len(line.encode(errors="surrogateescape")) > LONGEST_LINE]


def wanted(current: str, *, present: bool) -> dict[str, str]:
    """All files with their texts. An empty text means that the file goes, but not /etc/environment, which is PAM's."""
    if present:
        return {ENVIRONMENT_PATH: with_block(current), SH_PATH: SH_TEXT, CSH_PATH: CSH_TEXT}
    return {ENVIRONMENT_PATH: without_block(current), SH_PATH: "", CSH_PATH: ""}
