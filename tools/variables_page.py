# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the tables of docs/variables.md from the specs of all roles; with --check only say whether they are stale."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import project
import role_readmes

PAGE = project.ROOT / "docs" / "variables.md"


def section(role: Path) -> str:
    """The variables of one role, as its README has them, with links that lead there from the folder docs."""
    readme = role_readmes.updated(role)
    table = readme.split(role_readmes.BEGIN)[1].split(role_readmes.END)[0].strip()
    table = re.sub(r"\]\((?!https?:|#)([^)]+)\)", rf"](../roles/{role.name}/\1)", table)
    title = f"## {role.name}\n\n[What the role does](../roles/{role.name}/README.md)."
    return f"{title}\n\n{table}\n"


def updated(page: str, roles: list[Path]) -> str:
    """The page with its tables replaced."""
    tables = "\n" + "\n".join(section(role) for role in roles)
    return role_readmes.with_table(page, tables)


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail when a table is not current")
    checking = parser.parse_args().check
    page = PAGE.read_text(encoding="utf-8")
    try:
        wanted = updated(page, role_readmes.role_folders())
    except role_readmes.ReadmeError as error:
        print(error)
        return 1
    if page == wanted:
        print("docs/variables.md is current")
        return 0
    if checking:
        print("docs/variables.md is not current, run tools/variables_page.py")
        return 1
    PAGE.write_text(wanted, encoding="utf-8")
    print("wrote docs/variables.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
