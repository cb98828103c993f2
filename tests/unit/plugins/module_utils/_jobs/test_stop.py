# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a job is ended: in which order members are asked, what is said of each, and when nothing is left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from queue_samples import JOB, job, look

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs import stop
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.answers import Answer
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._jobs.members import Member

MEMBERS = [Member("n1", "192.0.2.11"), Member("n2", "192.0.2.12"), Member("n3", "192.0.2.13")]
NO = "ssh: timed out"
NONE = {"ended": 0, "killed": 0, "left": []}


class Members:
    """Members with answers for each command, in the order in which they are asked.  A text is a reason for none."""

    def __init__(self, *answers: tuple[str, dict[str, Any]]) -> None:
        self.answers = list(answers)
        self.words: list[list[str]] = []
        self.said: list[str] = []

    def ask(
        self, members: Iterable[Member], _port: int, words: Sequence[str], test: Any, _seconds: float
    ) -> list[Answer]:
        command, found = self.answers.pop(0)
        assert words[:2] == ["here", command], (words, command)
        self.words.append([*words, *(one.name for one in members)])
        answers = [found[one.name] for one in members]
        assert all(isinstance(one, str) or test(one) for one in answers), answers
        return [
            Answer(one.name, {}, answer) if isinstance(answer, str) else Answer(one.name, answer)
            for one, answer in zip(members, answers)
        ]

    def stop(self, user: str = "train") -> int:
        code = stop.stop(JOB, user, MEMBERS, 22, self.said.append, self.ask)
        assert self.answers == []
        return code


def test_the_launcher_ends_its_job_and_all_members_are_asked_again() -> None:
    about = {"grace": 30}
    running = {"n1": look(job(launchers=1, about=about)), "n2": look(job(about=about)), "n3": look()}
    members = Members(
        ("look", running),
        ("end", {"n1": {"signalled": 1, "left": 0}}),
        ("clean", {"n1": NONE, "n2": NONE}),
        ("look", dict.fromkeys(running, look())),
    )
    assert members.stop() == 0
    assert members.words[1:3] == [["here", "end", JOB, "60", "n1"], ["here", "clean", JOB, "30", "n1", "n2"]]
    assert members.said == [
        f"job {JOB}: SIGTERM to the launcher on n1, which ends the ranks; they have 30 seconds",
        "n1: 5 processes ended",
        "n2: 5 processes ended",
        f"job {JOB}: no process is left on 3 members; exit code 0",
    ]


def test_what_was_left_behind_is_ended_on_its_nodes() -> None:
    members = Members(
        ("look", {"n1": look(), "n2": look(job(agents=0)), "n3": look()}),
        ("clean", {"n2": {"ended": 5, "killed": 2, "left": []}}),
        ("look", {"n1": look(), "n2": look(), "n3": look()}),
    )
    assert members.stop() == 0 and members.said[0] == "n2: 5 processes ended, 2 of them by SIGKILL"


def test_what_can_not_be_ended_is_said() -> None:
    members = Members(
        ("look", {"n1": look(), "n2": look(job()), "n3": look()}),
        ("clean", {"n2": {"ended": 4, "killed": 4, "left": [77]}}),
        ("look", {"n1": look(), "n2": look(job(agents=0, processes=1)), "n3": look()}),
    )
    assert members.stop() == 1
    assert members.said == [
        "n2: 4 processes ended, 4 of them by SIGKILL",
        "n2: these cannot be ended: 1 processes",
        f"job {JOB}: not all of it is ended; exit code 1",
    ]


def test_a_member_that_does_not_answer_may_have_some_of_it() -> None:
    members = Members(
        ("look", {"n1": look(job()), "n2": NO, "n3": look()}),
        ("clean", {"n1": {"ended": 5, "killed": 0, "left": []}}),
        ("look", {"n1": look(), "n2": NO, "n3": look()}),
    )
    assert members.stop() == 69
    assert members.said[1:] == [
        f"n2: no answer: {NO}; what runs there is not known",
        f"job {JOB}: not all of it is ended; exit code 69",
    ]


def test_a_launcher_that_does_not_end_loses_its_agents() -> None:
    members = Members(
        ("look", {"n1": look(job(launchers=1)), "n2": look(), "n3": look()}),
        ("end", {"n1": {"signalled": 1, "left": 1}}),
        ("clean", {"n1": {"ended": 5, "killed": 0, "left": []}}),
        ("look", {"n1": look(job(agents=0, processes=0, launchers=1)), "n2": look(), "n3": look()}),
    )
    assert members.stop() == 1
    assert members.said[1] == "n1: the launcher does not end, so its agents are ended"
    assert "n1: these cannot be ended: its launcher" in members.said


def test_a_job_that_nobody_has() -> None:
    nothing = {"n1": look(), "n2": look(), "n3": look()}
    members = Members(("look", nothing), ("clean", {}), ("look", nothing))
    assert members.stop() == 0
    assert members.said == [f"job {JOB}: 3 members were asked, and none has a process of it; exit code 0"]


def test_a_job_of_another_user_stays() -> None:
    members = Members(("look", {"n1": look(job(user="eve")), "n2": look(), "n3": look()}))
    assert members.stop() == 1 and "is one of eve" in members.said[0]


def test_a_job_of_the_same_name_of_another_user_hides_nothing() -> None:
    members = Members(
        ("look", {"n1": look(job(user="eve"), job()), "n2": look(), "n3": look()}),
        ("clean", {"n1": {"ended": 5, "killed": 0, "left": []}}),
        ("look", {"n1": look(job(user="eve")), "n2": look(), "n3": look()}),
    )
    assert members.stop() == 0


@pytest.mark.parametrize("grace", [0, 600])
def test_scripts_have_the_grace_of_their_job(grace: int) -> None:
    about = {"grace": grace}
    members = Members(
        ("look", {"n1": look(job(about=about)), "n2": look(), "n3": look()}),
        ("clean", {"n1": NONE}),
        ("look", {"n1": look(), "n2": look(), "n3": look()}),
    )
    members.stop()
    assert members.words[1][3] == str(grace or stop.GRACE)
