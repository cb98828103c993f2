# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program gpu-cluster-check: its commands, and what all of them have in common.

A command is a module with ``NAME``, ``ABOUT``, ``EXAMPLES``, ``add``, which adds its options to a parser, and ``run``,
which takes what was given and returns the exit code.  It is added to ``COMMANDS``.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.cli import (
    check,
    codes,
    explain,
    output,
    report,
)

PROGRAM = "gpu-cluster-check"
COMMANDS = (check, report, explain)
ABOUT = "Check a GPU cluster over ssh, without Ansible. It changes nothing on the nodes."
CODES = """\
exit codes:
  0    PASSED; or the report was rendered
  1    FAILED
  2    wrong options or files; nothing was started
  3    NOT VALIDATED, or no verdict because this program broke
  130  interrupted by Ctrl-C, after SIGTERM 143; no verdict
exit codes of explain:
  0    a cause is known
  1    no cause is known
  64   wrong options or files
"""


class _Parser(argparse.ArgumentParser):
    """Its errors are those of all options."""

    def error(self, message: str) -> NoReturn:
        raise codes.UsageError([f"{message}; see {self.prog} --help"])


def parser(version: str) -> argparse.ArgumentParser:
    """The options of all commands."""
    form = argparse.RawDescriptionHelpFormatter
    epilog = "\n".join([*(one.EXAMPLES for one in COMMANDS), CODES])
    found = _Parser(prog=PROGRAM, description=ABOUT, epilog=epilog, formatter_class=form, allow_abbrev=False)
    found.add_argument("--version", action="version", version=f"{PROGRAM} {version}")
    commands = found.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for one in COMMANDS:
        epilog = f"{one.EXAMPLES}\n{CODES}"
        command = commands.add_parser(
            one.NAME, help=one.ABOUT, description=one.ABOUT, epilog=epilog, formatter_class=form, allow_abbrev=False
        )
        one.add(command)
        command.add_argument("--json", action="store_true", help="print JSON, also where options are refused")
        command.set_defaults(run=one.run)
    return found


def usage_code(command: ModuleType) -> int:
    """The exit code of a command for wrong input."""
    return int(getattr(command, "USAGE", codes.USAGE))


def main(arguments: Sequence[str], version: str) -> int:
    """Run the program.  Returns its exit code."""
    try:
        args = parser(version).parse_args(arguments)
        code: int = args.run(args)
        return code
    except codes.UsageError as error:
        if "--json" in arguments:
            output.result(json.dumps({"problems": error.problems}) + "\n")
        else:
            output.warn(error.problems)
        return next((usage_code(one) for one in COMMANDS if list(arguments[:1]) == [one.NAME]), codes.USAGE)
    except (codes.Interrupted, KeyboardInterrupt) as error:
        output.warn(["interrupted, there is no verdict"])
        return error.code if isinstance(error, codes.Interrupted) else codes.SIGNAL + signal.SIGINT
    except Exception:
        # Python's own exit code for it is that of a cluster that failed.
        sys.stderr.write(traceback.format_exc())
        return codes.NO_VERDICT
