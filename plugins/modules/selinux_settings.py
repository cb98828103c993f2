#!/usr/bin/python
# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module selinux_settings: mode, port labels, booleans and file contexts of SELinux, in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: selinux_settings
short_description: Keep SELinux on, with the labels and booleans that a cluster needs
version_added: 0.1.0
author:
  - baremetal.gpu_cluster contributors (@baremetal)
description:
  - Labels the ports of sshd, sets booleans, gives files their labels, and lets SELinux enforce, now and at the next
    boot. All customisations of the policy are one transaction of C(semanage import); nothing loops.
  - Works with any policy, whatever it is called.
  - Remembers in C(/var/lib/gpu-cluster/selinux.json) what it customised and what was there before. What is no longer
    wanted is taken back. Customisations of others are left alone, unless they contradict what is wanted.
  - A host without SELinux is reported with the steps that turn it on, and left alone. See O(enable_ok).
  - Before a permissive host enforces, the labels of what a login needs are checked. With O(confirm_seconds) a timer on
    the host makes it permissive again, unless the controller comes back over a new connection with O(confirm).
options:
  state:
    description: V(enforcing) or V(permissive). SELinux is never turned off.
    type: str
    default: enforcing
  ssh_ports:
    description: TCP ports on which sshd listens or is going to, 1 to 65535. 22 has its label in every policy.
    type: list
    elements: int
    default: [22]
  booleans:
    description: Booleans of the policy by name, each V(true) or V(false).
    type: dict
    default: {}
  fcontexts:
    description: Labels of files and folders with all that is in them.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: The file or folder itself, no expression.
        type: path
        required: true
      type:
        description: The type of all that is in it. Either this or O(fcontexts[].like).
        type: str
      like:
        description: A folder that the policy knows. All is labelled as if it were there.
        type: path
  users:
    description:
      - Users who log in by key. Wrong labels of the C(.ssh) in their homes are put right on every run.
      - A home that the policy does not know is labelled as one below C(/home), with the folders above it.
    type: list
    elements: str
    default: []
  torch_prefix:
    description:
      - Path of the Python environment of jobs. Below C(/opt) and C(/usr) the policy itself labels programs and
        libraries; elsewhere they are labelled like that. Empty for none.
    type: str
    default: ""
  disabled_host:
    description: What a host without SELinux is, a warning (V(report)) or a failure (V(fail)).
    type: str
    choices: [report, fail]
    default: report
  enable_ok:
    description:
      - Prepares a host without SELinux for its next boot. It sets permissive mode in C(/etc/selinux/config), asks for a
        relabelling of all files, and takes C(selinux=0) off the kernel's arguments. Never reboots.
    type: bool
    default: false
  confirm_seconds:
    description:
      - How many seconds the controller has to come back when a permissive host begins to enforce, 15 to 600. After that
        the host is permissive again. V(0) waits for nobody.
    type: int
    default: 0
  confirm:
    description: Ends the waiting. To be called over a new connection, with everything else as in the call before.
    type: bool
    default: false
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: What would get another label through a new rule is known by its rule only.
  diff_mode:
    support: full
  platform:
    platforms: posix
    details: Linux. Needs C(semanage) when something is to be customised.
seealso:
  - module: baremetal.gpu_cluster.selinux_denials
"""

EXAMPLES = r"""
- name: Let sshd listen on another port, and enforce
  baremetal.gpu_cluster.selinux_settings:
    ssh_ports: [22, 2222]

- name: Let sshd read keys in homes on NFS
  baremetal.gpu_cluster.selinux_settings:
    booleans:
      use_nfs_home_dirs: true

- name: Label homes and programs of the site
  baremetal.gpu_cluster.selinux_settings:
    fcontexts:
      - path: /export/home
        like: /home
      - path: /data/tools
        type: bin_t
"""

RETURN = r"""
mode:
  description:
    - The mode of the running kernel after the run, V(enforcing), V(permissive) or V(disabled). In check mode that
      before it.
  returned: success, and on failure because of a disabled host
  type: str
  sample: enforcing
configured:
  description: The mode after the next boot, as the file says.
  returned: success, and on failure because of a disabled host
  type: str
  sample: enforcing
causes:
  description: Why SELinux is disabled.
  returned: when it is
  type: list
  elements: str
  sample: [/etc/selinux/config says SELINUX=disabled]
steps:
  description: What turns it on, in this order.
  returned: when it is disabled
  type: list
  elements: str
reboot_required:
  description: Whether the host is prepared and waits for a reboot.
  returned: success
  type: bool
  sample: false
confirm_needed:
  description: Whether the host becomes permissive again unless O(confirm) comes within O(confirm_seconds).
  returned: success
  type: bool
  sample: false
customised:
  description: What was customised or taken back, one phrase each.
  returned: success
  type: list
  elements: str
  sample: [port tcp 2222 ssh_port_t]
relabelled:
  description: Paths that got other labels; with new rules in check mode those that it knows of.
  returned: success
  type: list
  elements: str
  sample: [/home/train/.ssh/authorized_keys]
notes:
  description: What a person should know, one sentence each. They are warnings too.
  returned: success
  type: list
  elements: str
  sample: []
missing_packages:
  description: The packages to install first.
  returned: on failure because of them
  type: list
  elements: str
  sample: [policycoreutils-python-utils]
"""

import glob
import os
import pwd
import time
from typing import Any, NoReturn

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base.problem import Problem
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._commit_confirm import ssh_connection
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._firewall import ssh
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._managed_file import (
    read_text,
    replace_file,
    restore_file,
)
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._selinux import mode, records, spec

LEDGER = "/var/lib/gpu-cluster/selinux.json"
#: Where semanage keeps "label this folder like that one", outside of its transaction.
EQUIVALENCES = "/etc/selinux/{policy}/contexts/files/file_contexts.subs"
KERNEL = "/sys/fs/selinux"
SEMANAGE_PACKAGES = ["policycoreutils-python-utils"]
#: The unit that makes the host permissive again.
UNDO = "gpu-cluster-selinux-undo"
#: Where the units of systemd-run are, and how long one of another run is waited for: its longest time, and some more.
TRANSIENT = "/run/systemd/transient"
WAIT_SECONDS = 630
REMOTE_FILE_SYSTEMS = ("nfs", "nfs4", "cifs", "lustre", "ceph", "gpfs", "beegfs", "fuse.sshfs")
#: Stands for the home of root.
ROOT_HOME = "~root"
#: What a login needs: where one of these has a wrong label, enforcing would lock everybody out.
VITAL = (
    "/bin/bash",
    "/etc/passwd",
    "/etc/shadow",
    "/etc/ssh/sshd_config",
    "/etc/ssh/ssh_host_*_key",
    f"{ROOT_HOME}/.ssh/authorized_keys",
    "/usr/lib/systemd/systemd",
    "/usr/sbin/sshd",
)


class Host:
    """What is read and run on the host."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.params: dict[str, Any] = module.params

    def fail(self, text: str, **more: Any) -> NoReturn:
        """Give up."""
        self.module.fail_json(msg=text, **more)
        raise AssertionError("fail_json returned")

    def refuse(self, problems: list[Problem]) -> NoReturn:
        """Give up before anything was changed."""
        self.fail("Refused, nothing was changed: {}".format(" ".join(problem.sentence() for problem in problems)))

    def run(self, *argv: str, data: str | None = None) -> tuple[int, str, str]:
        """One command, in English."""
        path = self.module.get_bin_path(argv[0], required=True, opt_dirs=["/usr/sbin", "/sbin"])
        rc, out, err = self.module.run_command([path, *argv[1:]], data=data, environ_update={"LC_ALL": "C"})
        return rc, out, err

    def read(self, *argv: str) -> str:
        """The output of a command that must succeed."""
        rc, out, err = self.run(*argv)
        if rc:
            said = " ".join(f"{err} {out}".split())
            self.fail(f"'{' '.join(argv)}' failed: {said}. Nothing was changed.")
        return out

    def facts(self) -> mode.Facts:
        """Whether SELinux is on, and what there is to know when it is not."""
        loader = None
        if self.module.get_bin_path("grubby", opt_dirs=["/usr/sbin"]):
            rc, out, _err = self.run("grubby", "--info=ALL")
            loader = out if rc == 0 else None
        return mode.Facts(
            enforce=read_kernel("enforce"),
            config=read_text(mode.CONFIG),
            command_line=read_whole("/proc/cmdline"),
            kernel_modules=read_whole("/sys/kernel/security/lsm"),
            policies=tuple(path.split("/")[3] for path in glob.glob("/etc/selinux/*/policy/policy.*")),
            container=in_container(),
            relabel=os.path.exists(mode.RELABEL),
            session=read_whole("/proc/self/attr/current"),
            boot_arguments=loader,
        )

    def homes(self) -> tuple[list[spec.Home], list[str]]:
        """The homes of the users, and the users that do not exist."""
        found, missing = [], []
        for user in self.params["users"]:
            try:
                entry = pwd.getpwnam(user)
            except KeyError:
                missing.append(user)
                continue
            found.append(self._home(user, entry.pw_uid, os.path.normpath(entry.pw_dir)))
        return found, missing

    def _home(self, user: str, uid: int, path: str) -> spec.Home:
        folders = spec.above(path)
        types = [line.split(":")[2] for line in self.read("matchpathcon", "-n", f"{path}/.ssh", *folders).splitlines()]
        return spec.Home(
            user=user,
            uid=uid,
            path=path,
            owner=os.stat(path).st_uid if os.path.isdir(path) else None,
            key_type=types[0],
            closed=tuple(folder for folder, kind in zip(folders, types[1:]) if kind == "default_t"),
            remote=file_system(path) in REMOTE_FILE_SYSTEMS,
        )

    def local(self) -> dict[records.Identity, str]:
        """The customisations of this host."""
        if not self.module.get_bin_path("semanage", opt_dirs=["/usr/sbin"]):
            packages = " ".join(SEMANAGE_PACKAGES)
            self.fail(
                f"semanage is missing, without which ports and files get no labels: dnf install {packages}. "
                "Nothing was changed.",
                missing_packages=SEMANAGE_PACKAGES,
            )
        return records.parse_export(self.read("semanage", "export"))

    def inherited(
        self, wanted: list[records.Record], local: dict[records.Identity, str], policy: str
    ) -> dict[records.Identity, str]:
        """What holds without customisations, as far as it is asked for: the policy is large."""
        found: dict[records.Identity, str] = {(records.PORT, records.SSH_PORT): records.SSH_PORT_TYPE}
        kinds = {record.kind for record in wanted}
        ports = [record.identity for record in wanted if record.kind == records.PORT]
        if any(identity not in local and identity not in found for identity in ports):
            listed = records.parse_ports(self.read("semanage", "port", "--list", "--noheading"))
            found.update({(records.PORT, key): kind for key, kind in listed.items()})
        if records.FCONTEXT in kinds:
            rules = records.parse_file_contexts(read_text(f"/etc/selinux/{policy}/contexts/files/file_contexts"))
            found.update({(records.FCONTEXT, key): kind for key, kind in rules.items()})
        for record in wanted:
            if record.kind == records.BOOLEAN:
                found[record.identity] = "on" if read_kernel(f"booleans/{record.key}").startswith("1") else "off"
        return found

    def restorecon(self, paths: list[str], *, deep: bool, dry: bool) -> list[str]:
        """Give what exists of these paths the labels of the policy; the paths that had others."""
        patterns = [path.replace(ROOT_HOME, pwd.getpwuid(0).pw_dir, 1) for path in paths]
        existing = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
        if not existing:
            return []
        words = ["restorecon", "-v", *(["-R"] if deep else []), *(["-n"] if dry else [])]
        rc, out, err = self.run(*words, *existing)
        if rc:
            self.fail(f"Cannot label {' '.join(existing)}: {' '.join(err.split())}. What was relabelled stays so.")
        return mode.parse_relabelled(out)

    def armed(self) -> bool:
        """Whether the timer runs that makes the host permissive again."""
        return os.path.exists(f"{TRANSIENT}/{UNDO}.timer")


def read_whole(path: str) -> str:
    """A small file of the kernel; empty when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read().strip("\0\n ")
    except OSError:
        return ""


def read_kernel(name: str) -> str:
    """What the running policy says."""
    return read_whole(f"{KERNEL}/{name}")


def in_container() -> bool:
    """Whether the kernel belongs to somebody else."""
    if os.path.exists("/run/.containerenv") or os.path.exists("/.dockerenv"):
        return True
    # systemd says so to everybody who asks, where it is the first process.
    return bool(read_whole("/run/systemd/container"))


def file_system(path: str) -> str:
    """The kind of the file system on which a path lies."""
    best, kind = "", ""
    for line in read_whole("/proc/mounts").splitlines():
        fields = line.split()
        mount = fields[1].replace("\\040", " ")
        if f"{path}/".startswith(f"{mount.rstrip('/')}/") and len(mount) >= len(best):
            best, kind = mount, fields[2]
    return kind


def unknown_types(types: list[str]) -> list[str]:
    """The types that the running policy does not have: it refuses a context with one."""
    unknown = []
    for name in types:
        try:
            with open(f"{KERNEL}/context", "wb", buffering=0) as stream:
                stream.write(f"system_u:object_r:{name}:s0\0".encode())
        except OSError:
            unknown.append(name)
    return unknown


def set_running(enforce: bool) -> None:
    """What setenforce does."""
    with open(f"{KERNEL}/enforce", "w", encoding="ascii") as stream:
        stream.write("1" if enforce else "0")


def main() -> None:
    """Compare, refuse or settle."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "default": spec.ENFORCING},
            "ssh_ports": {"type": "list", "elements": "int", "default": [22]},
            "booleans": {"type": "dict", "default": {}},
            "fcontexts": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "path": {"type": "path", "required": True},
                    "type": {"type": "str"},
                    "like": {"type": "path"},
                },
            },
            "users": {"type": "list", "elements": "str", "default": []},
            "torch_prefix": {"type": "str", "default": ""},
            "disabled_host": {"type": "str", "choices": ["report", "fail"], "default": "report"},
            "enable_ok": {"type": "bool", "default": False},
            "confirm_seconds": {"type": "int", "default": 0},
            "confirm": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    host = Host(module)
    wrong = spec.problems(module.params)
    if wrong:
        host.refuse(wrong)
    waited = wait_for_another(host)
    facts = host.facts()
    result = disabled(host, facts) if facts.running == mode.DISABLED else settle(host, facts)
    for note in [*filter(None, [waited]), *result["notes"]]:
        module.warn(note)
    module.exit_json(**result)


def wait_for_another(host: Host) -> str:
    """Let the timer of another run end, such as one that was killed; a sentence when there was one."""
    start = time.monotonic()
    note = ""
    while glob.glob(f"{TRANSIENT}/{UNDO}.*") and not (host.params["confirm"] or host.module.check_mode):
        waited = time.monotonic() - start
        note = f"Waited {waited:.0f} s for another run that let this host enforce and was not confirmed."
        if waited >= WAIT_SECONDS:
            break
        time.sleep(1)
    return note


def file_diff(path: str, before: str, after: str) -> dict[str, str]:
    """One part of a diff."""
    return {"before_header": path, "after_header": path, "before": before, "after": after}


def disabled(host: Host, facts: mode.Facts) -> dict[str, Any]:
    """Report a host without SELinux, or prepare it for the next boot."""
    found = mode.diagnose(facts)
    result: dict[str, Any] = {
        "changed": False,
        "mode": mode.DISABLED,
        "configured": facts.configured,
        "causes": list(found.causes),
        "steps": list(found.steps),
        "reboot_required": False,
        "confirm_needed": False,
        "customised": [],
        "relabelled": [],
    }
    enable = host.params["enable_ok"] and not found.by_hand
    if not enable:
        sentence = found.sentence()
        if host.params["enable_ok"] and not facts.container:
            sentence += f". selinux_policy_enable_ok does nothing here before this was done by hand: {found.by_hand[0]}"
        if host.params["disabled_host"] == "fail":
            host.fail(f"{sentence}. Nothing was changed.", **result)
        return {**result, "notes": [f"{sentence}. Nothing was changed, and nothing is enforced."]}
    # Permissive whatever is wanted: labels are missing until the host was relabelled.
    wanted = mode.config_with(facts.config, mode.PERMISSIVE)
    off = mode.OFF_ARGUMENT in (facts.boot_arguments or "")
    result["changed"] = wanted != facts.config or not facts.relabel or off
    result["reboot_required"] = True
    result["configured"] = mode.PERMISSIVE
    result["diff"] = [file_diff(mode.CONFIG, facts.config, wanted)]
    if result["changed"] and not host.module.check_mode:
        prepare_boot(host, facts, wanted, remove_argument=off)
    note = "SELinux is disabled on this host, and is prepared for its next boot: reboot; the host labels every file, "
    return {**result, "notes": [f"{note}restarts by itself and comes up permissive. Then run this role again."]}


def prepare_boot(host: Host, facts: mode.Facts, config: str, *, remove_argument: bool) -> None:
    """The three steps before a reboot, or none of them."""
    try:
        replace_file(host.module, mode.CONFIG, config)
        with open(mode.RELABEL, "a", encoding="ascii"):
            pass
    except OSError as error:
        undo_prepared(host, facts)
        host.fail(f"Cannot prepare the next boot: {error}. Everything is as it was.")
    if remove_argument:
        rc, out, err = host.run("grubby", "--update-kernel=ALL", f"--remove-args={mode.OFF_ARGUMENT}")
        if rc:
            undo_prepared(host, facts)
            host.fail(f"grubby failed: {' '.join(f'{err} {out}'.split())}. Everything is as it was.")


def undo_prepared(host: Host, facts: mode.Facts) -> None:
    """As the host was found."""
    restore_file(host.module, mode.CONFIG, facts.config, existed=True)
    if not facts.relabel and os.path.exists(mode.RELABEL):
        os.unlink(mode.RELABEL)


def settle(host: Host, facts: mode.Facts) -> dict[str, Any]:
    """Bring a host with SELinux to what is wanted: labels first, so that enforcing finds them."""
    params, check = host.params, host.module.check_mode
    policy = facts.policy
    if host.armed() and not params["confirm"]:
        host.fail(
            "Refused, nothing was changed: another run lets this host enforce right now and has not confirmed it yet. "
            f"Wait for the end of {UNDO}.timer, and repeat."
        )
    homes, missing = host.homes()
    before_ledger = read_text(LEDGER)
    try:
        ledger = records.load_ledger(before_ledger)
    except records.LedgerError as error:
        host.fail(
            f"{LEDGER} cannot be read ({error}), so nobody knows what is ours. Move it away. Nothing was changed."
        )
    wanted = spec.records(params, homes, {entry.record.identity for entry in ledger})
    known = os.listdir(f"{KERNEL}/booleans")
    types = unknown_types(sorted({entry["type"] for entry in params["fcontexts"] if entry["type"]}))
    wrong = spec.boolean_problems(params["booleans"], known, policy)
    wrong += spec.type_problems(params["fcontexts"], types, policy)
    needed = bool(ledger) or any(record.key != records.SSH_PORT for record in wanted)
    local = host.local() if needed else {}
    plan = records.make_plan(wanted, local, host.inherited(wanted, local, policy), ledger)
    wrong += plan.problems
    dropped = spec.dropped_ports(plan.changes)
    if dropped:
        used = ssh.used(host.run(*ssh.LISTENERS)[1], host.run(*ssh.SOCKETS)[1], ssh_connection.current().port)
        wrong += spec.used_port_problems(dropped, {*used.listened, used.connection}, params["ssh_ports"])
    if wrong:
        host.refuse(wrong)
    keys = [glob.escape(f"{home.path}/.ssh") for home in homes if not home.remote]
    goes_over = params["state"] == mode.ENFORCING and facts.running == mode.PERMISSIVE
    if goes_over and not params["confirm"]:
        vital = host.restorecon([*VITAL], deep=False, dry=True)
        against = mode.obstacles(facts, vital)
        if against:
            host.fail(f"Refused, nothing was changed: this host must not enforce yet. {'. '.join(against)}.")

    relabelled: list[str] = []
    if check:
        relabelled += host.restorecon([*plan.roots(deep=True), *keys], deep=True, dry=True)
    else:
        apply_plan(host, plan, ledger, before_ledger, policy)
        relabelled += host.restorecon(plan.roots(deep=False), deep=False, dry=False)
        relabelled += host.restorecon([*plan.roots(deep=True), *keys], deep=True, dry=False)
    config = mode.config_with(facts.config, params["state"])
    waits = switch(host, facts, config)
    notes = spec.home_notes(homes, missing, params["booleans"])
    if params["state"] == mode.ENFORCING and mode.boot_note(facts):
        notes.append(mode.boot_note(facts))
    lines = [
        change.record.phrase() if change.after else f"{change.record.phrase()} taken back" for change in plan.changes
    ]
    after_mode = facts.running if check else read_mode()
    return {
        "changed": bool(plan.changes or relabelled) or config != facts.config or facts.running != params["state"],
        "mode": after_mode,
        "configured": facts.configured if waits else params["state"],
        "reboot_required": False,
        "confirm_needed": waits,
        "customised": lines,
        "relabelled": relabelled,
        "notes": notes,
        "diff": [
            file_diff(mode.CONFIG, facts.config, config),
            file_diff("running kernel", f"{facts.running}\n", f"{params['state']}\n"),
            file_diff(
                "policy",
                "".join(
                    f"{change.record.kind} {change.record.key} {change.before}\n"
                    for change in plan.changes
                    if change.before
                ),
                "".join(
                    f"{change.record.kind} {change.record.key} {change.after}\n"
                    for change in plan.changes
                    if change.after
                ),
            ),
            file_diff("labels of files", "".join(f"{path} wrong\n" for path in relabelled), ""),
        ],
    }


def read_mode() -> str:
    """The mode of the running kernel."""
    return mode.ENFORCING if read_kernel("enforce") == "1" else mode.PERMISSIVE


def apply_plan(
    host: Host, plan: records.Plan, ledger: tuple[records.Entry, ...], before_ledger: str, policy: str
) -> None:
    """One transaction, read back. The ledger is written before it, so that a run that is cut short forgets nothing."""
    after_ledger = records.ledger_text(plan.ledger)
    if plan.changes:
        equivalences = EQUIVALENCES.format(policy=policy)
        before_equivalences, existed = read_text(equivalences), os.path.exists(equivalences)
        replace_file(host.module, LEDGER, records.ledger_text(records.united(ledger, plan.ledger)), mode=0o600)
        rc, out, err = host.run("semanage", "import", data=plan.script())
        if rc:
            # The rest is a transaction; equivalences semanage writes at once.
            if read_text(equivalences) != before_equivalences:
                restore_file(host.module, equivalences, before_equivalences, existed)
            restore_file(host.module, LEDGER, before_ledger, bool(before_ledger), mode=0o600)
            said = " ".join(f"{err} {out}".split())
            host.fail(f"semanage refused the import: {said}. Nothing was changed. The import was: {plan.script()!r}")
        found = host.local()
        lost = [
            change.record.phrase() for change in plan.changes if found.get(change.record.identity, "") != change.after
        ]
        if lost:
            host.fail(f"semanage took these without an error, and they are not in force: {', '.join(lost)}.")
    if after_ledger:
        if after_ledger != read_text(LEDGER):
            replace_file(host.module, LEDGER, after_ledger, mode=0o600)
    elif os.path.exists(LEDGER):
        os.unlink(LEDGER)


def switch(host: Host, facts: mode.Facts, config: str) -> bool:
    """Set the mode, now and for the next boot; whether it waits for a confirmation."""
    wanted, seconds = host.params["state"], host.params["confirm_seconds"]
    if host.module.check_mode:
        return False
    if host.params["confirm"]:
        confirm(host)
    elif facts.running != wanted and wanted == mode.ENFORCING and seconds:
        arm(host, seconds)
        set_running(True)
        return True
    if config != facts.config:
        replace_file(host.module, mode.CONFIG, config)
    if read_mode() != wanted:
        set_running(wanted == mode.ENFORCING)
    if read_mode() != wanted:
        restore_file(host.module, mode.CONFIG, facts.config, existed=bool(facts.config))
        host.fail(f"The kernel does not go over to {wanted}. {mode.CONFIG} is as it was.")
    return False


def arm(host: Host, seconds: int) -> None:
    """A timer that makes the host permissive again, whatever becomes of this program and of the controller."""
    rc, out, err = host.run(
        "systemd-run",
        "--quiet",
        f"--unit={UNDO}",
        f"--on-active={seconds}",
        "--timer-property=AccuracySec=1s",
        host.module.get_bin_path("setenforce", required=True, opt_dirs=["/usr/sbin"]),
        "0",
    )
    if rc:
        host.fail(f"Cannot arm the timer {UNDO}: {' '.join(f'{err} {out}'.split())}. The mode is as it was.")


def confirm(host: Host) -> None:
    """The controller is back over a new connection: end the timer, unless it was faster."""
    armed = host.armed()
    host.run("systemctl", "stop", f"{UNDO}.timer", f"{UNDO}.service")
    if not armed or read_mode() != mode.ENFORCING:
        host.fail(
            "The controller came back too late: this host is permissive again. Look at what selinux_denials says about "
            "logins, or give more time with selinux_policy_confirm_seconds."
        )


if __name__ == "__main__":
    main()
