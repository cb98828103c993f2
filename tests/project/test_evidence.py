# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pages say of tests agrees with the pages that hold the results: docs/gpu-evidence.md and docs/support.md."""

from __future__ import annotations

import re

import doc_links
import project
import pytest

EVIDENCE = "docs/gpu-evidence.md"
#: Sentences that were true before there were results, by why they are stale.
STALE = {
    r"no gpu (was|is|were) (at hand|available|there)": f"{EVIDENCE} has results of one",
    r"not shown (anywhere )?(yet|so far): a gpu": f"{EVIDENCE} has results of one",
    r"not (yet )?(been )?(tested|run|tried) (on|with) (any|a real) gpu": f"{EVIDENCE} has results of one",
    r"cannot be reached from (here|this machine)": "what a reader can reach is not what a test machine could",
    r"ansible-core 2\.16 (was|is) not (run|tested)": "docs/support.md has its runs",
}
#: What a page says when something ran on a GPU.
ON_GPU = re.compile(
    r"\b(tested|ran|run|tried|shown|by hand) (by hand )?on \[?(one|a|real) (GPUs?|H100)\b", re.IGNORECASE
)
#: EL 10 as a whole among what was not tested; "of EL 10" and "EL 10 itself" say which part.
ALL_OF_EL_10 = re.compile(r"(?<!of )(?<!for )\bEL 10\b(?! itself)")


def plain(text: str) -> str:
    """A page as one line."""
    return " ".join(text.split())


def stale(text: str) -> list[str]:
    """The stale sentences of a page, each with the reason."""
    found = [(re.search(pattern, plain(text), re.IGNORECASE), why) for pattern, why in STALE.items()]
    return [f"{match[0]}: {why}" for match, why in found if match]


def untested(readme: str) -> str:
    """What a role's README says is not tested."""
    return plain(" ".join(re.findall(r"Not tested(?: in the lab)?:.*?(?=\n\n|\Z)", readme, re.DOTALL)))


def ran_on_el_10() -> set[str]:
    """The roles that docs/support.md shows on stand-ins for EL 10."""
    rows = re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|", doc_links.read_pages()["docs/support.md"], re.MULTILINE)
    assert {role for role, _ in rows} == {path.name for path in (project.ROOT / "roles").iterdir() if path.is_dir()}
    return {role for role, cell in rows if cell.strip() not in ("", "-", "no SELinux there")}


def test_no_page_says_what_results_have_overtaken() -> None:
    told = {page: stale(text) for page, text in doc_links.read_pages().items()}
    assert {page: sentences for page, sentences in told.items() if sentences} == {}


def test_a_page_that_speaks_of_runs_on_a_gpu_leads_to_the_results() -> None:
    pages = {page: text for page, text in doc_links.read_pages().items() if page != EVIDENCE}
    speaking = {page for page, text in pages.items() if ON_GPU.search(plain(text))}
    assert "docs/limits.md" in speaking
    assert {page for page in speaking if "gpu-evidence.md" not in pages[page]} == set()


def test_no_role_that_ran_on_el_10_says_that_none_did() -> None:
    pages = doc_links.read_pages()
    told = {role: ALL_OF_EL_10.search(untested(pages[f"roles/{role}/README.md"])) for role in ran_on_el_10()}
    assert len(told) > 10
    assert {role for role, found in told.items() if found} == set()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("No GPU was at\nhand for this page.", 1),
        ("Not shown anywhere yet: a GPU.", 1),
        ("It was not tested on a real GPU.", 1),
        ("GPUs beyond one H100 were not tested.", 0),
    ],
)
def test_stale_sentences_are_found(text: str, number: int) -> None:
    assert len(stale(text)) == number


def test_el_10_as_a_whole_is_found() -> None:
    assert ALL_OF_EL_10.search(untested("Not tested in the lab: a build by DKMS,\nand EL 10. More.\n\nEL 10\n"))
    assert not ALL_OF_EL_10.search(untested("Not tested: sshd of EL 10, and EL 10 itself.\n\nEL 10\n"))
