# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Argument lists for systemd-run(1) and systemctl(1), and the output of ``systemctl show``.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def run_argv(
    command: Sequence[str],
    *,
    unit: str = "",
    properties: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
) -> list[str]:
    """Start a command as a transient service, which systemd forgets after its end, also when it failed.

    properties: ``NAME=VALUE`` as in a unit file.  environment: of the command.  options: others of systemd-run.
    """
    settings = [*properties, *(f"Environment={name}={value}" for name, value in (environment or {}).items())]
    argv = ["systemd-run", "--quiet", "--collect", *([f"--unit={unit}"] if unit else []), *options]
    return [*argv, *(f"--property={one}" for one in settings), "--", *command]


def show_argv(unit: str, *properties: str, options: Sequence[str] = ()) -> list[str]:
    """Read properties of a unit; ``parse_show`` reads the output."""
    return ["systemctl", "show", *options, *(f"--property={name}" for name in properties), unit]


def parse_show(text: str) -> dict[str, str]:
    """The properties of one unit by name."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
