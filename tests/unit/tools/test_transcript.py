# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest
import transcript

PAGE = """\
# A page

```console
$ echo one && cd folder
one
$ true
```

Words.

```diff
--- a.txt
+++ a.txt
@@ -1 +1 @@
-old
+new
```

```text
$ not a step
```
"""


def test_commands_and_edits_are_read_in_their_order() -> None:
    first, second, edit = transcript.read(PAGE)
    assert first == transcript.Command("echo one && cd folder", ("one",))
    assert second == transcript.Command("true", ())
    assert isinstance(edit, transcript.Edit) and "+new\n" in edit.text


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["took 9.9 s"], ["took 12 s"], True),
        (["run 20261129t012932z-c1aa02"], ["run 20270101t000000z-ffffff"], True),
        (["key SHA256:abc/+="], ["key SHA256:XYZ"], True),
        (["cd /home/ops/mycluster"], ["cd /tmp/mycluster"], True),
        (["PASSED"], ["\x1b[32mPASSED\x1b[0m"], True),
        (["PASSED"], ["FAILED"], False),
        (["a"], ["a", "b"], False),
        (["a", "b"], ["a"], False),
        (["a", "...", "c"], ["a", "b", "b", "c"], True),
        (["a", "..."], ["a", "b"], True),
        (["...", "c"], ["a", "b"], False),
        (["a", "c"], ["a", "b", "c"], False),
        (["a", "...", "c"], ["a", "c", "d"], False),
    ],
)
def test_outputs_are_the_same_but_for_numbers(expected: list[str], printed: list[str], same: bool) -> None:
    assert (transcript.missing(expected, printed) == []) is same


def test_one_shell_runs_all_steps(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_text("old\n")
    with transcript.Shell(tmp_path, transcript.as_a_login()) as shell:
        assert shell.run("echo one && cd folder") == (0, ["one"])
        edit = transcript.Edit("--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-old\n+new\n")
        assert shell.patch(edit)[0] == 0
        assert shell.run("cat a.txt; false") == (1, ["new"])
        assert shell.patch(edit)[0] != 0
        with pytest.raises(RuntimeError, match="the shell ended in: exit 3"):
            shell.run("exit 3")
