# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report about real machines: what they say is shown as what it is, and no more of it than fits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import el_evidence
import pytest

TRANSITION, ALLOW = {"expect": "unconfined_service_t"}, {"why": "x"}


@pytest.mark.parametrize(
    ("rule", "answer", "expected"),
    [
        (TRANSITION, "type_transition init_t bin_t:process unconfined_service_t;", "there"),
        (TRANSITION, "type_transition init_t bin_t:process other_t;", "MISSING: type_transition init_t"),
        # By an attribute, and with a condition.
        (ALLOW, "allow unconfined_domain_type domain:fd use;", "there"),
        (ALLOW, "", "MISSING: "),
        (ALLOW, "ERROR: no policy", "MISSING: ERROR: no policy"),
        (ALLOW, None, "not asked: no sesearch there"),
    ],
)
def test_a_rule(rule: dict[str, str], answer: str | None, expected: str) -> None:
    assert el_evidence.verdict(rule, answer).startswith(expected)


def test_the_look_says_something_of_this_machine_too(tmp_path: Path) -> None:
    """With a sesearch that has one rule only: the question of each rule reaches it as it stands in the list."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sesearch").write_text(
        '#!/bin/sh\ncase "$*" in *security_t*|*firewalld_t*) echo "allow a b:c d;";; esac\n'
    )
    (tools / "sesearch").chmod(0o755)
    environment = {"PATH": f"{tools}:/usr/sbin:/usr/bin:/sbin:/bin"}
    done = subprocess.run(
        ["sh", "-c", el_evidence.script()], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    said = el_evidence.answers(done.stdout)
    assert said["kernel"] and said["release"] and "package firewalld" in said
    lines = el_evidence.machines({"n1": said, "n2": {}})
    about = [line for line in lines if "firewalld over D-Bus" in line]
    assert [line.rpartition("` | ")[2] for line in about] == [
        "there | not asked: no sesearch there (dnf install setools-console) |"
    ]
    assert any("NetworkManager answers" in line and "| MISSING:  |" in line for line in lines)


def test_what_a_machine_says_breaks_no_table_and_no_terminal() -> None:
    text = (
        "name\ta | b\x1b[31m\n" + "long\t" + "x" * 5000 + "\n" + "no tab\n" + "".join(f"k{n}\tv\n" for n in range(500))
    )
    said = el_evidence.answers(text)
    assert said["name"] == "a \\| b [31m" and len(said["long"]) == el_evidence.MAX_CHARACTERS
    assert "no tab" not in said and len(said) < el_evidence.MAX_LINES


def test_every_rule_has_what_the_report_shows() -> None:
    rules = el_evidence.rules()
    assert len(rules) >= 10
    for rule in rules:
        assert {"why", "sesearch", "source"} <= set(rule) <= {"why", "sesearch", "source", "expect"}
        assert rule["sesearch"].split()[0] in ("-A", "-T") and "'" not in rule["sesearch"]
