# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the documentation as a site, docs/build/html, without network; a warning or a dead link fails the build.

The pages are written for GitHub. A copy of them gets what a site needs: links to files that are no pages lead to the
repository, and the lists of docs/index.md become the navigation. antsibull-docs adds the reference of all plugins and
roles.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import doc_links
import project
import setup
import yaml

BUILD = project.ROOT / "docs" / "build"
SOURCE, HTML = BUILD / "source", BUILD / "html"
VENV = project.ROOT / ".venv-docs"
SITE = project.ROOT / "tools" / "site"
#: Pages outside of docs and roles, by their place on the site.
OTHERS = {
    "README.md": "readme.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
}
INDEX = "docs/index.md"
#: Pages whose links are the pages below them; each page stands where it is named first.
CONTENTS = (INDEX, "docs/phases.md", "docs/findings/index.md")
#: What is on the site and not in the archive that users install, so that docs/index.md cannot link to it.
FURTHER = ("reference/index", "changelog", "contributing", "code-of-conduct")
#: Labels of Ansible's own documentation that antsibull-docs refers to, by their place there.
ANSIBLE_LABELS = {
    "action_plugins": "plugins/action.html#action-plugins",
    "ansible_collections.ansible.builtin.debug_module": "collections/ansible/builtin/debug_module.html",
    "ansible_collections.ansible.builtin.default_callback": "collections/ansible/builtin/default_callback.html",
    "ansible_collections.ansible.builtin.setup_module": "collections/ansible/builtin/setup_module.html",
    "callback_plugins": "plugins/callback.html#callback-plugins",
    "ansible_configuration_settings": "reference_appendices/config.html#ansible-configuration-settings",
    "common_return_values": "reference_appendices/common_return_values.html#common-return-values",
}
#: An image of another site, alone in its line, with or without a link.
_BADGE = re.compile(r"^\[?!\[[^\]\n]*\]\(https?://[^)\n]*\)(?:\]\([^)\n]*\))?\n", re.MULTILINE)
_ROLE = re.compile(r"roles/(\w+)/README\.md")
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


class SiteError(Exception):
    """Why there is no site, in one sentence."""


def place(page: str) -> str:
    """Where a Markdown file of the project is on the site; empty for one that is not there."""
    if page.startswith("docs/"):
        return page.removeprefix("docs/")
    if role := _ROLE.fullmatch(page):
        return f"roles/{role[1]}.md"
    return OTHERS.get(page, "")


def repository() -> str:
    """The address of the repository, without a slash at its end."""
    galaxy = yaml.safe_load((project.ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    return str(galaxy["repository"]).rstrip("/")


def page_for_site(page: str, pages: Mapping[str, str], home: str) -> str:
    """The text of a page with the links that it has on the site. home: the address of the repository."""
    text = pages[page]
    parts, end = [], 0
    for link in doc_links.links(text):
        parts += [text[end : link.begin], _target(page, link.target, pages, home)]
        end = link.end
    # The site loads nothing from elsewhere: no badges, and of a diagram its source.
    own = _BADGE.sub("", "".join([*parts, text[end:]]))
    return re.sub(r"^```mermaid$", "```text", own, flags=re.MULTILINE)


def _target(page: str, target: str, pages: Mapping[str, str], home: str) -> str:
    """One link as it is on the site."""
    path, _, anchor = target.partition("#")
    if "://" in target or target.startswith("mailto:") or not path:
        return target
    file = doc_links.resolved(page, path)
    if file in pages and place(file):
        return posixpath.relpath(place(file), posixpath.dirname(place(page))) + (f"#{anchor}" if anchor else "")
    if file.startswith("docs/images/"):
        return posixpath.relpath(file.removeprefix("docs/"), posixpath.dirname(place(page)))
    kind = "tree" if (project.ROOT / file).is_dir() else "blob"
    return f"{home}/{kind}/main/{file}"


def navigation(page: str, pages: Mapping[str, str], taken: set[str]) -> str:
    """The hidden lists of what is below a page, a list for each heading, as MyST writes them.

    taken: pages that have their place already; those of this page are added.
    """
    text = pages[page]
    headings = [(found.start(), found[1]) for found in _HEADING.finditer(doc_links.without_code(text))]
    below: dict[str, list[str]] = {}
    for link in doc_links.links(text):
        file = doc_links.resolved(page, link.target.partition("#")[0])
        if file not in pages or not place(file) or file in taken:
            continue
        taken.add(file)
        heading = next((name for begin, name in reversed(headings) if begin < link.begin), "")
        below.setdefault(heading, []).append("/" + place(file).removesuffix(".md"))
    return "".join(_toctree(name if page == INDEX else "", names) for name, names in below.items())


def _toctree(caption: str, names: list[str]) -> str:
    """One list."""
    lines = ["", "```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), "", *names, "```", ""]
    return "\n".join(lines)


def write_source(folder: Path) -> None:
    """Write the folder that Sphinx reads, all but the reference."""
    pages = {page: text for page, text in doc_links.read_pages().items() if place(page)}
    taken = {INDEX}
    home = repository()
    released = (project.ROOT / "CHANGELOG.rst").is_file()
    further = [name for name in FURTHER if name != "changelog" or released]
    below = {page: navigation(page, pages, taken) for page in CONTENTS}
    for page in pages:
        text = page_for_site(page, pages, home) + below.get(page, "")
        if page == INDEX:
            text += _toctree("Reference of plugins, project", [f"/{name}" for name in further])
        write(folder / place(page), text)
    shutil.copytree(project.ROOT / "docs" / "images", folder / "images")
    (folder / "_static").mkdir()
    shutil.copy2(SITE / "site.css", folder / "_static")
    shutil.copy2(SITE / "conf.py", folder)
    (folder / "ansible.inv").write_bytes(inventory(ANSIBLE_LABELS))
    if "changelog" in further:
        write(folder / "changelog.rst", without_contents((project.ROOT / "CHANGELOG.rst").read_text(encoding="utf-8")))


def inventory(labels: Mapping[str, str]) -> bytes:
    """Labels of another site in the form in which Sphinx publishes them."""
    head = "# Sphinx inventory version 2\n# Project: ansible\n# Version: \n"
    lines = [f"{label} std:label -1 {place} {label.replace('_', ' ')}\n" for label, place in labels.items()]
    return f"{head}# The remainder of this file is compressed using zlib.\n".encode() + zlib.compress(
        "".join(lines).encode()
    )


def write(path: Path, text: str) -> None:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_reference(folder: Path) -> None:
    """Let antsibull-docs write the pages of all modules, filters and roles."""
    folder.mkdir(mode=0o755, parents=True)
    words = ("--use-current", "--squash-hierarchy", "--fail-on-error", "--no-add-antsibull-docs-version")
    settings = ("--config-file", str(SITE / "antsibull-docs.cfg"))
    run("antsibull-docs", *settings, "collection", *words, "--dest-dir", str(folder), project.COLLECTION)
    for page in folder.glob("*.rst"):
        page.write_text(without_contents(page.read_text(encoding="utf-8")), encoding="utf-8")


def without_contents(text: str) -> str:
    """A page of reStructuredText without the list of its headings: the theme shows one beside every page."""
    return re.sub(r"^\.\. contents::.*\n(?: +:\w+:.*\n)*", "", text, flags=re.MULTILINE)


def run(program: str, *arguments: str) -> None:
    """Run a program of the site's own tools."""
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    environment = project.tool_environment(PATH=path, ANSIBLE_COLLECTIONS_PATH=str(project.COLLECTIONS))
    done = subprocess.run([str(VENV / "bin" / program), *arguments], env=environment, check=False)
    if done.returncode != 0:
        raise SiteError(f"{program} ended with {done.returncode}; its messages stand above")


class _Page(HTMLParser):
    """The links and the anchors of a page of the site."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = {""}
        self.errors: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what a tag refers to."""
        values = {name: value or "" for name, value in attrs}
        # What Sphinx cannot show, and a list of headings, in whose place the theme shows an error.
        if {"system-message", "problematic", "contents"} & set(values.get("class", "").split()):
            self.errors.append(f"<{tag} class={values['class']!r}>")
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        target = values.get("href", values.get("src"))
        if target is not None:
            (self.loaded if tag in ("script", "link", "img") else self.targets).append(target)


def flaws(html: Path) -> Iterator[str]:
    """What a site refers to and does not have, what its pages would load from elsewhere, and errors in their text."""
    pages: dict[str, _Page] = {}
    for path in sorted(html.rglob("*.html")):
        name = path.relative_to(html).as_posix()
        pages[name] = _Page()
        pages[name].feed(path.read_text(encoding="utf-8"))
    for name, page in pages.items():
        yield from (f"{name}: holds the error {error}" for error in page.errors)
        yield from (f"{name}: loads {target}" for target in page.loaded if "//" in target)
        for target in page.targets + [one for one in page.loaded if "//" not in one]:
            path_of, _, anchor = target.partition("#")
            if ":" in path_of or target.startswith("data:"):
                continue
            file = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(path_of.partition("?")[0])))
            file = name if not path_of else file
            if not (html / file).is_file():
                yield f"{name}: {target}: there is no such file"
            elif file in pages and unquote(anchor) not in pages[file].anchors:
                yield f"{name}: {target}: {file} has no such anchor"


def main() -> int:
    """Build the site."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--external", action="store_true", help="then ask for every address on the web (needs one)")
    arguments = parser.parse_args()
    setup.install_tools(VENV, setup.DOCS)
    pages = doc_links.read_pages()
    problems = doc_links.dead(pages, lambda path: (project.ROOT / path).exists())
    if problems:
        raise SiteError("dead links:\n" + "\n".join(problems))
    shutil.rmtree(BUILD, ignore_errors=True)
    write_source(SOURCE)
    write_reference(SOURCE / "reference")
    options = ("--fail-on-warning", "--keep-going", "--quiet", "--jobs", "auto")
    run("sphinx-build", *options, "-b", "html", "-d", str(BUILD / "doctrees"), str(SOURCE), str(HTML))
    if problems := list(flaws(HTML)):
        raise SiteError("the site has flaws:\n" + "\n".join(problems))
    if arguments.external:
        run("sphinx-build", *options, "-b", "linkcheck", "-d", str(BUILD / "doctrees"), str(SOURCE), str(BUILD / "web"))
    print(f"{len(list(HTML.rglob('*.html')))} pages, no warning, no dead link: {HTML / 'index.html'}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (SiteError, setup.SetupError) as error:
        sys.exit(f"docs: {error}")
