# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as JUnit XML, for a CI that shows tests.  Pure.

One test for the verdict, one for each member, stage and class of findings.  What was not looked at is skipped, never
passed.  Elements and attributes are those of the schema of the Jenkins xUnit plugin (junit-10.xsd), of which other
readers know subsets; one ``failure`` for a test, because Jenkins keeps only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._base import sanitize
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.registry import ERROR
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import words
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report.words import Report

#: What the check looks for, by the middle part of an id, and the stage that looks.  Empty: the facts of the nodes.
CLASSES = {
    "HOST": "",
    "NODE": "static",
    "CLOCK": "static",
    "FW": "static",
    "NET": "mesh",
    "PERF": "collective",
    "RUN": "collective",
    "DATA": "collective",
    "TEXT": "collective",
    "MPI": "openmpi",
    "VER": "",
    "SSH": "",
    "GPU": "",
    "FILE": "",
}
#: Compared from the facts of the nodes, so not looked at where there are none.
OF_FACTS = ("VER", "SSH", "GPU")


@dataclass(frozen=True)
class Case:
    """One test.  failure: type, message and text.  skipped: why, empty when it was not skipped."""

    name: str
    failure: tuple[str, str, str] | None = None
    skipped: str = ""
    output: str = ""


def xml(report: Report) -> str:
    """The whole document."""
    suites = {
        "verdict": list(_verdict(report)),
        "nodes": [_node(report, host) for host in report["members"]],
        "stages": [_stage(stage) for stage in report["stages"]],
        "findings": list(_classes(report)),
    }
    root = ElementTree.Element("testsuites", name="gpu_cluster_check", time=f"{report['seconds']:.3f}")
    for name, cases in suites.items():
        root.append(_suite(name, cases, report))
    _count(root, [case for cases in suites.values() for case in cases])
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(name: str, cases: Sequence[Case], report: Report) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=f"gpu_cluster_check.{name}")
    if report["started"]:
        # Without zone: what the schemas of Ant and Jenkins allow.
        suite.set("timestamp", sanitize.one_line(report["started"])[:19])
    _count(suite, cases)
    for case in cases:
        element = ElementTree.SubElement(
            suite, "testcase", classname=f"gpu_cluster_check.{name}", name=sanitize.one_line(case.name)
        )
        if case.failure:
            kind, message, text = case.failure
            failure = ElementTree.SubElement(
                element, "failure", type=sanitize.one_line(kind), message=sanitize.one_line(message)
            )
            failure.text = sanitize.clean(text)
        elif case.skipped:
            ElementTree.SubElement(element, "skipped", message=sanitize.one_line(case.skipped))
        if case.output:
            ElementTree.SubElement(element, "system-out").text = sanitize.clean(case.output)
    return suite


def _count(element: ElementTree.Element, cases: Sequence[Case]) -> None:
    element.set("tests", str(len(cases)))
    element.set("failures", str(len([case for case in cases if case.failure])))
    element.set("errors", "0")
    element.set("skipped", str(len([case for case in cases if case.skipped])))


def _verdict(report: Report) -> Iterator[Case]:
    bad = (report["verdict"], report["headline"], report["headline"])
    yield Case("verdict", failure=None if report["verdict"] == words.PASSED else bad)
    texts = "\n".join(f"{one['host']}: {one['text']}" for one in report["unexplained"])
    if texts and report["strict"]:
        yield Case("every text is explained", failure=("unexplained", "texts that no finding explains", texts))
    else:
        yield Case("every text is explained", output=texts)


def _node(report: Report, host: str) -> Case:
    if host in report["culprits"]:
        own = [finding for finding in report["findings"] if host in finding["hosts"]]
        ids = " ".join(finding["id"] for finding in own if finding["severity"] == ERROR)
        return Case(host, failure=(ids, report["culprits"][host], _whole(own)))
    if host not in report["selected"]:
        return Case(host, skipped="not selected, see --limit")
    if host not in report["participants"]:
        return Case(host, skipped="took no part in the collective")
    return Case(host)


def _stage(stage: Mapping[str, Any]) -> Case:
    if stage["result"] == "failed":
        return Case(stage["name"], failure=("failed", stage["why"] or f"the stage {stage['name']} failed", ""))
    return Case(stage["name"], skipped="" if stage["result"] == "passed" else stage["why"] or "skipped")


def _classes(report: Report) -> Iterator[Case]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for finding in report["findings"]:
        found.setdefault(finding["id"].split("-")[1], []).append(finding)
    for name in dict.fromkeys([*CLASSES, *found]):
        yield _class(name, found.get(name, []), report)


def _class(name: str, found: Sequence[Mapping[str, Any]], report: Report) -> Case:
    title = f"GC-{name}"
    errors = [finding for finding in found if finding["severity"] == ERROR]
    if errors:
        ids = " ".join(dict.fromkeys(finding["id"] for finding in errors))
        return Case(title, failure=(ids, "; ".join(finding["cause"] for finding in errors), _whole(found)))
    return Case(title, skipped="" if found else _not_looked_at(name, report), output=_whole(found))


def _not_looked_at(name: str, report: Report) -> str:
    """Why nothing could be found, empty when it could."""
    for stage in report["stages"]:
        if stage["name"] == CLASSES.get(name) and stage["result"] == "skipped":
            return f"the stage {stage['name']} was skipped: {stage['why']}"
    if name == "PERF" and not report.get("limits"):
        return "no limit is set"
    if name in OF_FACTS and not report["stack"]:
        return "no node reported its versions"
    if name == "GPU" and not report["gpu_verified"]:
        return "no GPU took part in this run"
    return ""


def _whole(found: Sequence[Mapping[str, Any]]) -> str:
    texts = []
    for finding in found:
        seen = "".join(f"\n  seen: {one}" for one in finding["evidence"])
        texts.append(f"{finding['severity']} {finding['id']}: {finding['cause']}{seen}\n  fix: {finding['fix']}")
    return "\n".join(texts)
