#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module selinux_denials: what SELinux denied on a host, in sentences with a fix."""

from __future__ import annotations

DOCUMENTATION = r"""
module: selinux_denials
short_description: List SELinux denials with their fix
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Reads the audit log with C(ausearch), and the journal, which has the denials of a host without auditd. A denial in
    both counts once.
  - Equal denials are one finding with their number. A finding with a known cause has the fix, in variables of this
    collection. Every other denial is listed as unexplained with its raw line.
  - Changes nothing, and does not fail because of a denial.
  - Denials with a C(dontaudit) rule are in no log and are not listed. C(semodule -DB) enables their logging.
options:
  since:
    description:
      - V(boot), a time such as V(2026-11-21 10:02:00) in the host's own time zone, or seconds since 1970.
    type: str
    default: boot
  torch_prefix:
    description: Path of the Python environment of jobs, to explain denials of its files.
    type: str
    default: /opt/gpu-cluster/torch
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  platform:
    platforms: posix
    details: Linux, as root.
seealso:
  - module: baremetal.gpu_cluster.selinux_settings
"""

EXAMPLES = r"""
- name: Look for denials since the boot
  baremetal.gpu_cluster.selinux_denials:
  register: denials

- name: Show them
  ansible.builtin.debug:
    msg: "{{ denials.sentences }}"
"""

RETURN = r"""
mode:
  description: The mode of the running kernel, V(enforcing), V(permissive) or V(disabled).
  returned: success
  type: str
  sample: enforcing
since:
  description: Start of the search.
  returned: success
  type: str
  sample: 2026-11-21T10:00:00+0000
until:
  description: The host's time before the read, in seconds since 1970; use it as O(since) of the next call.
  returned: success
  type: int
  sample: 1795251422
sources:
  description: The logs that were read, V(audit log) and V(journal).
  returned: success
  type: list
  elements: str
  sample: [audit log, journal]
denials:
  description: The findings, those with a known cause first.
  returned: success
  type: list
  elements: dict
  contains:
    when:
      description: Time of the first denial.
      type: str
    last:
      description: Time of the last denial.
      type: str
    times:
      description: Number of denials.
      type: int
    comm:
      description: Name of the denied program.
      type: str
    scontext:
      description: SELinux context of the program.
      type: str
    tcontext:
      description: SELinux context of the target.
      type: str
    tclass:
      description: Class of the target, such as C(file) or C(tcp_socket).
      type: str
    permissions:
      description: The denied permissions.
      type: list
      elements: str
    path:
      description: Path of the file, or only its name if the kernel has no path.
      type: str
    port:
      description: Port of the socket, otherwise 0.
      type: int
    permissive:
      description: Whether the access was only logged and not denied.
      type: bool
    sentence:
      description: The denial in one sentence.
      type: str
    fix:
      description: The fix; empty if the cause is unknown.
      type: str
    raw:
      description: The line of the log, without its time stamp.
      type: str
  sample:
    - when: 2026-11-21T08:57:02+0000
      last: 2026-11-21T08:57:02+0000
      times: 2
      comm: sshd
      scontext: system_u:system_r:sshd_t:s0
      tcontext: system_u:object_r:unreserved_port_t:s0
      tclass: tcp_socket
      permissions: [name_bind]
      path: ""
      port: 2222
      permissive: false
      sentence: >-
        SELinux denied sshd name_bind on tcp port 2222 since 08:57:02 on 2026-11-21 (2 times); fix: list port 2222 in
        gpu_cluster_ports.ssh and run site.yml with --tags selinux_policy before sshd is restarted
      fix: >-
        list port 2222 in gpu_cluster_ports.ssh and run site.yml with --tags selinux_policy before sshd
        is restarted
      raw: >-
        avc: denied { name_bind } for pid=2208 comm="sshd" src=2222 scontext=system_u:system_r:sshd_t:s0
        tcontext=system_u:object_r:unreserved_port_t:s0 tclass=tcp_socket permissive=0
sentences:
  description: Sentences of the denials with a known cause.
  returned: success
  type: list
  elements: str
  sample: []
unexplained:
  description: Sentences of the other denials, each with its raw line.
  returned: success
  type: list
  elements: str
  sample: []
"""

import json
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import denials

#: Types of audit records: AVC, USER_AVC (denied by a daemon in the kernel's name).
AUDIT_TYPES = (1400, 1107)
TIME_FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d")


def boot_time() -> float:
    """When the host was started, in seconds since 1970."""
    with open("/proc/stat", encoding="ascii") as stream:
        return next(float(line.split()[1]) for line in stream if line.startswith("btime "))


def moment(text: str) -> float | None:
    """The time that O(since) names, None when it names none."""
    if text == "boot":
        return boot_time()
    try:
        return float(text)
    except ValueError:
        pass
    for pattern in TIME_FORMATS:
        try:
            return time.mktime(time.strptime(text, pattern))
        except (ValueError, OverflowError):
            continue
    return None


def running_mode() -> str:
    """What the kernel says."""
    try:
        with open("/sys/fs/selinux/enforce", encoding="ascii") as stream:
            return "enforcing" if stream.read().strip() == "1" else "permissive"
    except OSError:
        return "disabled"


def from_audit_log(module: AnsibleModule, program: str) -> list[denials.Denial]:
    """All denials that the audit log still holds."""
    # --input-logs: without it a program whose input is a pipe reads that instead of the log.
    argv = [program, "--raw", "--input-logs", "--message", "AVC,USER_AVC"]
    rc, out, err = module.run_command(argv, environ_update={"LC_ALL": "C"})
    # 1 without a word about trouble is its way to say that nothing matches.
    if rc and "<no matches>" not in f"{out}{err}":
        module.fail_json(msg=f"ausearch failed: {' '.join(f'{err} {out}'.split())}")
    return [denial for denial in map(denials.parse, out.splitlines()) if denial]


def from_journal(module: AnsibleModule, since: float) -> list[denials.Denial]:
    """Denials in the journal: as audit records, and as the kernel's own lines where nobody takes its audit records."""
    program = module.get_bin_path("journalctl", required=True)
    words = [
        "--quiet",
        "--no-pager",
        "--output=json",
        f"--since=@{int(since)}",
        "--output-fields=MESSAGE,_AUDIT_ID,_SOURCE_REALTIME_TIMESTAMP",
    ]
    audit = [f"_AUDIT_TYPE={number}" for number in AUDIT_TYPES]
    rc, out, err = module.run_command(
        [program, *words, *audit, "+", "_TRANSPORT=kernel"], environ_update={"LC_ALL": "C"}
    )
    if rc:
        module.fail_json(msg=f"journalctl failed: {' '.join(err.split())}")
    found = []
    for line in out.splitlines():
        entry: dict[str, Any] = json.loads(line)
        when = float(entry.get("_SOURCE_REALTIME_TIMESTAMP") or entry["__REALTIME_TIMESTAMP"]) / 1e6
        # A message that is not text comes as a list of bytes.
        message = entry.get("MESSAGE")
        text = message if isinstance(message, str) else bytes(message or []).decode("utf-8", "backslashreplace")
        denial = denials.parse(text, when, int(entry.get("_AUDIT_ID") or 0))
        if denial:
            found.append(denial)
    return found


def main() -> None:
    """Read, group, explain."""
    module = AnsibleModule(
        argument_spec={
            "since": {"type": "str", "default": "boot"},
            "torch_prefix": {"type": "str", "default": "/opt/gpu-cluster/torch"},
        },
        supports_check_mode=True,
    )
    until = int(time.time())
    since = moment(module.params["since"])
    if since is None:
        module.fail_json(
            msg=f"since = {module.params['since']!r}: expected boot, a time as 2026-11-21 10:02:00, or seconds"
        )
        return
    found, sources = from_journal(module, since), ["journal"]
    ausearch = module.get_bin_path("ausearch", opt_dirs=["/usr/sbin"])
    if ausearch:
        found += from_audit_log(module, ausearch)
        sources.insert(0, "audit log")
    recent = denials.unique(denial for denial in found if denial.when >= since)
    result = denials.findings(recent, module.params["torch_prefix"])
    module.exit_json(
        changed=False,
        mode=running_mode(),
        since=time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(since)),
        until=until,
        sources=sources,
        denials=[finding.as_dict() for finding in result],
        sentences=[finding.sentence() for finding in result if finding.fix],
        unexplained=[f"{finding.sentence()}: {finding.denial.raw}" for finding in result if not finding.fix],
    )


if __name__ == "__main__":
    main()
