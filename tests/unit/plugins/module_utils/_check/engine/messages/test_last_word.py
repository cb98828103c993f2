# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The line that says why a program ended: of tracebacks that this Python writes now, and of those of others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.last_word import last_word

GROUP = "ExceptionGroup: g (2 sub-exceptions)"
CHAINED = "try:\n  1 / 0\nexcept Exception as error:\n  "


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("raise ValueError('boom')", "ValueError: boom"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise SystemExit('the licence server is away')", "the licence server is away"),
        ("class Odd(Exception): pass\nraise Odd", "Odd"),
        ("def x(:", "SyntaxError: invalid syntax"),
        (f"{CHAINED}raise RuntimeError('later') from error", "RuntimeError: later"),
        (f"{CHAINED}raise RuntimeError('later')", "RuntimeError: later"),
        ("raise ValueError('first line\\nsecond line')", "ValueError: first line"),
        ("import json\njson.loads('{')", "json.decoder.JSONDecodeError: Expecting property name"),
        ("raise ExceptionGroup('g', [OSError('a'), ValueError('b')])", f"{GROUP}: OSError: a"),
        (f"{CHAINED}raise ExceptionGroup('g', [error, OSError('b')])", f"{GROUP}: ZeroDivisionError: division by zero"),
        ("error = ValueError('x')\nerror.add_note('IOError: a note')\nraise error", "ValueError: x"),
        ("import faulthandler, os\nfaulthandler.enable()\nos.abort()", "Fatal Python error: Aborted"),
    ],
)
def test_of_this_python(program: str, said: str) -> None:
    text = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stderr
    assert last_word(text).startswith(said), text
    # What other programs write below it changes nothing, nor does a beginning that was cut off.
    assert last_word(f"a warning before\n{text}\n") == last_word(text)
    if "Traceback" in text and "Group" not in text and "during" not in text.lower():
        assert last_word(text[text.index("  File") :]).startswith(said), text


#: From Python 3.13.0: it names the file that shadows; from 3.9: no marks below the line, and no groups.
SHADOWED = """Traceback (most recent call last):
  File "/x/job.py", line 1, in <module>
    import random
  File "/x/random.py", line 3, in <module>
    print(random.randint(1, 2))
          ^^^^^^^^^^^^^^
AttributeError: module 'random' has no attribute 'randint' (consider renaming '/x/random.py' since it has the same name)
"""
OLD = """Traceback (most recent call last):
  File "job.py", line 1, in <module>
    import torch
  File "/x/torch.py", line 2
    def broken(:
               ^
SyntaxError: invalid syntax
"""
NO_LIBRARY = """Python path configuration:
  PYTHONHOME = '/opt/x'
Fatal Python error: init_fs_encoding: failed to get the Python codec of the filesystem encoding
Python runtime state: core initialized
ModuleNotFoundError: No module named 'encodings'

Current thread 0x00007f930e77e2c0 (most recent call first):
  <no Python frame>
"""
CPP = """terminate called after throwing an instance of 'c10::Error'
  what():  CUDA error: out of memory
Exception raised from c10_cuda_check_implementation at CUDAException.cpp:44 (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation) + 0x98
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SHADOWED, "AttributeError: module 'random' has no attribute 'randint' (consider renaming '/x/random.py' "),
        (OLD, "SyntaxError: invalid syntax"),
        (NO_LIBRARY, "Fatal Python error: init_fs_encoding: failed to get the Python codec"),
        (CPP, "c10::Error: CUDA error: out of memory"),
        ("terminate called after throwing an instance of 'int'\nAborted (core dumped)\n", "int"),
        ("/bin/sh: 1: exec: /opt/none/python: not found\n", "/bin/sh: 1: exec: /opt/none/python: not found"),
        ("line one\nline two\n\n", "line two"),
        ("    only what is indented\n", "only what is indented"),
        ("", ""),
    ],
)
def test_of_others(text: str, said: str) -> None:
    assert last_word(text).startswith(said) and bool(last_word(text)) == bool(said)
