# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dead links of Markdown pages."""

from __future__ import annotations

import doc_links
import pytest

PAGE = """# First `code` & more

[a file](other.md) ![a picture](images/x.png "title") <a href="other.md#two-words">x</a> [with brackets](a_(b).md)
[a folder](../examples/) [here](#first-code--more) [<angle>](<with space.md>)

```sh
[no link](nowhere.md)
# no heading
```

| a sign ` in a cell | [in a table](other.md) |
| and ` another | `` |

Neither `[this](nowhere.md)` nor <!-- [this](nowhere.md) --> is one.

[named]: https://example.com/x
"""
OTHER = '# Two words\n\n## Same\n\n## Same\n\n## [A link](a.md): under_score, dots...\n\n<a id="own"></a>\n'
FILES = {"docs/a.md", "docs/other.md", "docs/images/x.png", "docs/a_(b).md", "examples", "docs/with space.md"}


def dead(text: str) -> list[str]:
    """What is wrong with a page that stands beside OTHER."""
    return doc_links.dead({"docs/a.md": text, "docs/other.md": OTHER}, lambda path: path in FILES)


def test_links_are_found_outside_of_code_only() -> None:
    assert [link.target for link in doc_links.links(PAGE)] == [
        "other.md",
        "images/x.png",
        "other.md#two-words",
        "a_(b).md",
        "../examples/",
        "#first-code--more",
        "with space.md",
        "other.md",
        "https://example.com/x",
    ]
    assert all(PAGE[link.begin : link.end] == link.target for link in doc_links.links(PAGE))
    assert dead(PAGE) == []


def test_anchors_are_those_of_github() -> None:
    assert doc_links.anchors(OTHER) == {"two-words", "same", "same-1", "a-link-under_score-dots", "own"}


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("[x](gone.md)", "gone.md: there is no such file or folder"),
        ("[x](other.md#gone)", "other.md#gone: docs/other.md has no heading with this anchor"),
        ("[x](#gone)", "#gone: docs/a.md has no heading with this anchor"),
        ("[x](other.md#same-2)", "other.md#same-2: docs/other.md has no heading with this anchor"),
        ("[x](images/x.png#y)", "images/x.png#y: an anchor of something that is no Markdown page"),
        ("[x](../../etc)", "../../etc: leads out of the project"),
        ("[x](/etc/passwd)", "/etc/passwd: leads out of the project"),
        ("[x]()", ": the target is empty"),
        ("[x](htps://example.com)", "htps://example.com: expected https, http, mailto"),
        ("[x](https://)", "https://: an address without a host name"),
        ("[x](https://example)", "https://example: an address without a host name"),
        ("[x](https://[::1)", "https://[::1: not an address: Invalid IPv6 URL"),
        ("[y]: gone.md", "gone.md: there is no such file or folder"),
        ('<img src="gone.png">', "gone.png: there is no such file or folder"),
    ],
)
def test_dead_links_are_named_with_page_and_line(link: str, said: str) -> None:
    assert dead(f"# Title\n\n{link}\n") == [f"docs/a.md:3: {said}"]
