# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person sees of real runs, of playbooks that are not ours; the hosts are this machine itself."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).parents[4]
HOSTILE = "\x1b[31mred \x07\u202e"
#: Names of tests and hosts that a text must not have after it was cleaned.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202e]")
OUT = "ansible.builtin."
#: A module that warns, with an escape sequence.
WARNS = """\
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({}, supports_check_mode=True)
module.warn("\\x1b[31mbeware")
module.deprecate("\\x1b[31mit goes", version="9.0", collection_name="a.b")
module.exit_json()
"""


class Ansible:
    """ansible-playbook in a folder of its own, with the settings of the checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, hosts: int, plays: list[dict[str, Any]], *options: str, **more: Any) -> subprocess.Popen[str]:
        path = self.folder / "play.yml"
        path.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, **play} for play in plays]))
        names = {f"gpu{number:02d}": {} for number in range(1, hosts + 1)}
        variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        (self.folder / "hosts.json").write_text(json.dumps({"all": {"hosts": names, "vars": variables}}))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_") and name != "CI"}
        wanted = {"ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"), "ANSIBLE_HOME": str(self.folder / "home")}
        return subprocess.Popen(
            [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "hosts.json", *options, str(path)],
            cwd=self.folder,
            env={**kept, **wanted, **more.pop("env", {})},
            text=True,
            start_new_session=True,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
        )

    def run(self, hosts: int, plays: list[dict[str, Any]], *options: str, **env: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        process = self.start(hosts, plays, *options, env=env)
        try:
            out, err = process.communicate(timeout=120)
        finally:
            end(process)
        return process.returncode, out, err


def end(process: subprocess.Popen[str]) -> None:
    """With the processes that it has made, where it hangs."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def ansible(tmp_path: Path) -> Ansible:
    return Ansible(tmp_path)


def debug(text: str, **more: Any) -> dict[str, Any]:
    return {"name": "say it", f"{OUT}debug": {"msg": text}, **more}


def test_many_hosts(ansible: Ansible) -> None:
    """Messages, ignored, rescued and real failures, loops, nothing that no_log hides; the exit code is Ansible's."""
    fail = f"{OUT}fail"
    tasks = [
        {"name": "note", f"{OUT}set_fact": {"x": 1}, "changed_when": True},
        debug("hello"),
        debug("{{ inventory_hostname }} is the first", when="inventory_hostname == 'gpu01'"),
        debug(f"{HOSTILE} {{{{ item }}}}", loop=["a", "b"], run_once=True),
        {"name": "ignored", fail: {"msg": "{{ inventory_hostname }} lacks it"}, "ignore_errors": True},
        {"name": "hidden", fail: {"msg": "s3cret"}, "no_log": True, "ignore_errors": True},
        {
            "block": [{"name": "rescued", fail: {"msg": "never mind"}}],
            "rescue": [debug("was rescued")],
        },
        {"name": "broken", fail: {"msg": f"no disk {HOSTILE} on 10.0.0.1"}, "when": "inventory_hostname > 'gpu12'"},
    ]
    # A line about the task under way in each hundredth of a second would meet a fork at any point of it.
    env = {"GPU_CLUSTER_PROGRESS_SECONDS": "0.01"}
    code, out, err = ansible.run(16, [{"name": "A play of a stranger", "tasks": tasks}], **env)
    assert code == 2 and err == ""
    lines = [re.sub(r"[0-9.]+ s\b", "TIME", " ".join(line.split())) for line in out.splitlines()]
    lines = [line for line in lines if ": waiting for " not in line and ": ended, the next task" not in line]
    clean = "\ufffd[31mred \ufffd\ufffd"
    assert lines == [
        "PLAY A play of a stranger",
        "gpu[01-16]: hello",
        "gpu01: gpu01 is the first",
        f"{clean} a",
        f"{clean} b",
        "gpu[01-16]: ignored: ignored: <host> lacks it",
        "gpu[01-16]: ignored: hidden: the message is hidden by no_log",
        "gpu[01-16]: rescued: rescued: never mind",
        "gpu[01-16]: was rescued",
        "tasks 16 hosts TIME 16 changes on gpu[01-16], FAILED on gpu[13-16]",
        "",
        "1 problem:",
        "gpu[13-16] FAILED broken",
        f"no disk {clean} on 10.0.0.1",
        "",
        "16 hosts: FAILED: gpu[13-16]; ok: gpu[01-12]; 16 changes on gpu[01-16]; 32 errors ignored; TIME",
    ], out
    assert not CONTROL.search(out) and "s3cret" not in out


def test_with_v_all_is_as_ansible_prints_it(ansible: Ansible) -> None:
    def told(**env: str) -> list[str]:
        tasks = [debug("hello"), {f"{OUT}fail": {"msg": "no"}, "ignore_errors": True}]
        tasks += [{f"{OUT}copy": {"content": "a\n", "dest": str(ansible.folder / "new"), "mode": "0600"}}]
        code, out, _err = ansible.run(1, [{"tasks": tasks}], "-v", "--check", "--diff", **env)
        (ansible.folder / "new").unlink(missing_ok=True)
        assert code == 0, out
        return [line for line in out.splitlines() if not re.search(r"\b(src|checksum|path):", line)]

    ours = told()
    assert ours == told(ANSIBLE_STDOUT_CALLBACK="default") and any("TASK [" in line for line in ours)


def test_differences_warnings_and_check_mode(ansible: Ansible) -> None:
    target = ansible.folder / "new"
    target.write_text("old\n")
    tasks = [
        {f"{OUT}copy": {"content": f"new {HOSTILE}\n", "dest": str(target), "mode": "0600"}},
        debug("{{ nothing_there | default('x') }}"),
    ]
    library = ansible.folder / "library" / "warns.py"
    library.parent.mkdir()
    library.write_text(WARNS)
    tasks += [{"warns": {}, "check_mode": False}]
    code, out, err = ansible.run(2, [{"tasks": tasks}, {"hosts": "nobody_here"}], "--check", "--diff")
    assert code == 0, out + err
    assert "-old" in out and "+new \ufffd[31mred" in out and target.read_text() == "old\n"
    assert "2 changes predicted" in out and " predicted (check mode); " in out
    assert "Could not match supplied host pattern" in err and not CONTROL.search(out)
    # The text of a module on a node, without what moves the cursor or turns text around.
    plain = " ".join(err.split())
    assert "\ufffd[31mbeware" in plain and "\ufffd[31mit goes" in plain and not CONTROL.search(err), err


def test_a_pipe_learns_what_a_run_waits_for_and_ctrl_c_loses_no_problem(ansible: Ansible) -> None:
    tasks = [
        {f"{OUT}fail": {"msg": "no disk"}, "when": "inventory_hostname == 'gpu03'"},
        {"name": "sleep long", f"{OUT}command": "sleep 100"},
    ]
    process = ansible.start(3, [{"tasks": tasks}], env={"GPU_CLUSTER_PROGRESS_SECONDS": "1"})
    assert process.stdout and process.stderr
    seen = ""
    try:
        while "waiting for" not in seen:
            seen = process.stdout.readline()
            assert seen, process.stderr.read()
        assert re.fullmatch(r"sleep long: waiting for gpu01, gpu02 since [0-9:]{8} \([0-9.]+ s\)\n", seen), seen
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        end(process)
    assert process.returncode == 99 and "interrupted" in err, out + err
    assert "stopped at sleep long: waiting for gpu01, gpu02" in out and out.count("no disk") == 1
    assert "  gpu03  FAILED" in out and "\r" not in out + err


def test_a_terminal_has_one_line_and_keeps_none_of_it(ansible: Ansible) -> None:
    tasks = [
        {"name": "look", f"{OUT}command": "true", "changed_when": False},
        {"name": "sleep a while", f"{OUT}command": "sleep 4", "changed_when": False},
        debug("done"),
        {"name": "sleep again", f"{OUT}command": "sleep 2", "changed_when": False},
    ]
    asking = {"vars_prompt": [{"name": "who", "prompt": "your name", "private": False}], "tasks": [debug("{{ who }}")]}
    ours, theirs = pty.openpty()
    env = {"GPU_CLUSTER_PROGRESS_SECONDS": "1", "TERM": "xterm", "ANSIBLE_NOCOLOR": "1"}
    process = ansible.start(2, [{"tasks": tasks}, asking], stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    written = bytearray()
    try:
        # EIO: nobody has the other end any more.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 65536):
                written += part
                if written.endswith(b"your name: "):
                    # Longer than it takes to write the line again.
                    time.sleep(1.5)
                    os.write(ours, b"ops\n")
        assert process.wait(60) == 0, written
    finally:
        end(process)
        os.close(ours)
    text = written.decode()
    drawn = re.findall(r"\r\x1b\[K([^\r\n\x1b]*sleep a while: waiting for gpu01, gpu02[^\r\n]*)\r", text)
    assert len(drawn) >= 2, text
    # Before a host has answered there may be a whole line, as its ssh may be asking for a password.
    kept = re.sub(r"\r\x1b\[K[^\r\n]*\r(?=\r\x1b\[K)", "", text)
    assert "your name: ops\r\n" in text and "gpu01, gpu02: ops" in text, text
    assert "sleep a while" not in kept and "gpu01, gpu02: done" in kept, text
