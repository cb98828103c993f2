# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write docs/symptoms.md, and the table of each page GC-TEXT-*, from the tables of texts; with --check only compare.

A text is an expression; here it stands as a program prints it, with a word in angle brackets for what differs.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import project

if __name__ == "__main__":
    sys.path.insert(0, str(project.ROOT / ".ansible" / "collections"))

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes, lookup
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import Text
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import FINDINGS

DOCS = project.ROOT / "docs"
SYMPTOMS = DOCS / "symptoms.md"
PRINTED_BY = {
    "torch": "PyTorch, gloo",
    "nccl": "NCCL",
    "open_mpi": "Open MPI",
    "ucx": "UCX",
    "ssh": "ssh",
    "driver": "CUDA, NVIDIA driver",
    "jobs": "torchrun, Horovod, Slurm, Python",
    lookup.SYSTEM: "kernel, C library",
}
TABLE = "| meaning of the text | printed by | source |\n| --- | --- | --- |\n"
HEAD = """\
# Symptoms: what programs print, and what causes it

Search this page for the text that you see. A word in angle brackets, such as `<address>`, stands for what differs from
run to run, and `...` for any words. `gpu-cluster-run explain LOG` on a member, and `gpu-cluster-check.pyz explain LOG`
on any machine, do the same for a whole log: they name the node that is at fault, and take what is known of the nodes
into account.

The text that a program prints last is often not the cause. Ranks that only waited for another one print most of it:
look for the rank that says something else, or says nothing. Texts marked with * only follow from another error.
"""
#: Sets of characters and groups, by what stands for them.
_GROUP = re.compile(r"\(\?P<(\w+)>(?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)")
_NAMES = {"host": "host", "local": "host", "rank": "number", "ranks": "numbers"}
_END = "\0"


def shown(words: str) -> list[str]:
    """An expression as texts that it matches, one for each of its alternatives."""
    text = _GROUP.sub(lambda found: f"<{_NAMES.get(found[1], found[1])}>", words)
    return list(dict.fromkeys(_plain(one) for one in _alternatives(text)))


def _alternatives(text: str) -> list[str]:
    """The alternatives of the whole expression, without those inside of groups, of which the first is taken."""
    parts = _split(text)
    return [_first(one) for one in parts]


def _split(text: str) -> list[str]:
    found, depth, inside, start, at = [], 0, False, 0, 0
    while at < len(text):
        sign = text[at]
        if sign == "\\":
            at += 1
        elif inside:
            inside = sign != "]"
        elif sign == "[":
            inside = True
        elif sign in "()":
            depth += 1 if sign == "(" else -1
        elif sign == "|" and not depth:
            found.append(text[start:at])
            start = at + 1
        at += 1
    return [*found, text[start:]]


def _first(text: str) -> str:
    """With the first alternative in place of each group, and without those that may be missing."""
    while True:
        found = re.search(r"(?<!\\)\((\?:|\?!|\?=|\?<!|\?<=)?((?:[^()\\]|\\.)*)\)([?*]?)", text)
        if not found:
            return text
        kind, inside, many = found.groups()
        kept = "" if kind in ("?!", "?=", "?<!", "?<=") or many else _split(inside)[0]
        text = text[: found.start()] + kept + text[found.end() :]


def _plain(text: str) -> str:
    """Without the signs of expressions."""
    text = re.sub(r"\\b|(?<!\\)[\^$]", "", text)
    text = re.sub(r"\\d(?:[+*]|\{[^}]*\})?", "<number>", text)
    text = re.sub(r"(?:\\[SsWw]|(?<!\\)\[(?:[^\]\\]|\\.)*\]|(?<!\\)\.)(?:[+*?]|\{[^}]*\})\??", " ... ", text)
    text = re.sub(r"(?<!\\)\[(?:\\?(.))(?:[^\]\\]|\\.)*\]", r"\1", text)
    text = re.sub(r"\\?[^\\]\?", "", text)
    text = re.sub(r"\\w", "x", text).replace("+", "")
    text = re.sub(r"\\(.)", r"\1", text)
    text = re.sub(r"(<number>)+", "<number>", text)
    return " ".join(re.sub(r"(\.\.\. ?)+", "... ", text).split()).removeprefix("... ").removesuffix(" ...")


def source(one: Text) -> str:
    """How a text is known."""
    versions = ", ".join(one.versions)
    return f"{one.known}: {versions}" if versions else one.known


def rows(number: str) -> Iterator[str]:
    """The table of the page of a cause."""
    for software, table in lookup.TABLES.items():
        for one in table:
            if one.cause == number:
                yield f"| {one.says} | {PRINTED_BY[software]} | {source(one)} |\n"


def page(number: str, text: str) -> str:
    """The page with its table, and the sentence below it, written anew."""
    before, _table, after = text.partition(TABLE)
    _rows, _empty, rest = after.partition("\n\n")
    _sentence_below, empty, more = rest.partition("\n\n")
    return f"{before}{TABLE}{''.join(dict.fromkeys(rows(number)))}\n{explained(number)}\n" + (
        f"{empty[1:]}{more}" if more else ""
    )


def explained(number: str) -> str:
    """Which other findings take a text over."""
    ids = causes.CAUSES[number].explained_by
    if not ids:
        return "No other finding explains these texts, so this finding is always reported."
    named = ", ".join(f"`{one}*`" if one.endswith("-") else f"`{one}`" for one in ids)
    sentence = f"If another finding explains the text ({named}), the text becomes evidence of that finding, "
    sentence += "and this one is not reported."
    return textwrap.fill(sentence, 118, break_on_hyphens=False)


def symptoms() -> str:
    """The page of all texts."""
    parts = [HEAD]
    for software, table in lookup.TABLES.items():
        parts.append(f"\n## {PRINTED_BY[software]}\n")
        for one in table:
            cause = causes.CAUSES[one.cause]
            texts = "\n".join(shown(one.words))
            mark = " *" if one.weak else ""
            fix = one.fix or cause.fix
            command, look = lookup.commands(one)
            parts.append(
                f"\n```text\n{texts}\n```\n\n{_sentence(one.says)}{mark} ({link(one.cause)})\n\n{_sentence(fix)}"
            )
            parts.append(f" `{command}`" if command else "")
            parts.append(f" Look: `{look}`\n" if look else "\n")
    return "".join(parts)


def link(number: str) -> str:
    """To the page of a cause."""
    return f"[{FINDINGS[number].title}](findings/{number}.md)"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def wanted() -> dict[Path, str]:
    """Each file, and what should be in it."""
    found = {SYMPTOMS: symptoms()}
    for number in causes.CAUSES:
        path = DOCS / "findings" / f"{number}.md"
        found[path] = page(number, path.read_text(encoding="utf-8"))
    return found


def main(arguments: list[str] | None = None) -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is stale")
    check = parser.parse_args(arguments).check
    stale = [path for path, text in wanted().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if check:
            print(f"{path.relative_to(project.ROOT)} is stale: run make docs")
        else:
            path.write_text(wanted()[path], encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
