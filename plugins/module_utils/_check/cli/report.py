# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command report: render the report.json of a check again."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import codes, output
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.report import drift, files, folder

NAME = "report"
ABOUT = "render the report.json of a check again, also one of role cluster_check"
EXAMPLES = """\
examples:
  gpu-cluster-check.pyz report report.json
  gpu-cluster-check.pyz report report.json --format html > report.html
  gpu-cluster-check.pyz report - --output ./reports < report.json
"""
#: Format to the file of the report that it is.
FORMATS = {
    "console": "report.txt",
    "html": "report.html",
    "junit": "junit.xml",
    "prometheus": "report.prom",
    "json": files.JSON,
}

ERR_READ = "%s cannot be read: %s"
ERR_NO_REPORT = "%s is no report of this version: %s"
ERR_WRITE = "%s cannot be written: %s"


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("file", metavar="FILE", help="report.json, or - for standard input")
    parser.add_argument("--format", choices=FORMATS, help="what to make of it (default: console, or all with --output)")
    parser.add_argument("--output", metavar="DIR", help="write files there, in place of standard output")


def run(args: argparse.Namespace) -> int:
    """Render, and return the exit code."""
    wanted = args.format or ("json" if args.json else "")
    contents = files.contents(_read(args.file))
    if not args.output:
        output.result(contents[FORMATS[wanted or "console"]])
        return codes.PASSED
    missing = folder.write(args.output, {FORMATS[wanted]: contents[FORMATS[wanted]]} if wanted else contents)
    if missing:
        raise codes.UsageError([ERR_WRITE % (f"{args.output}/{name}", reason) for name, reason in missing.items()])
    return codes.PASSED


def _read(path: str) -> dict[str, Any]:
    """The report in a file.  UsageError where it is none."""
    try:
        if path == "-":
            found = json.load(sys.stdin)
        else:
            with open(path, encoding="utf-8") as stream:
                found = json.load(stream)
    except OSError as error:
        raise codes.UsageError([ERR_READ % (path, error.strerror)]) from None
    except (ValueError, RecursionError) as error:
        raise codes.UsageError([ERR_READ % (path, error)]) from None
    try:
        return drift.read(found)
    except ValueError as error:
        raise codes.UsageError([ERR_NO_REPORT % (path, one) for one in error.args]) from None
