# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the page of a report looks: light and dark, on a screen, on a telephone and on paper."""

from __future__ import annotations

#: Shades of a heat map, from as good as the others to much worse.
SHADES = 10
#: From this shade on the text of a cell has the colour of the page; before, that of text.
STRONG = 7

#: Text has at least 4.5 times the contrast of what is behind it (WCAG 2, level AA).
LIGHT = {
    "page": "#ffffff",
    "card": "#f6f7f9",
    "line": "#d5dae1",
    "text": "#1b2129",
    "soft": "#57616e",
    "good": "#1a7f4b",
    "bad": "#b42318",
    "warn": "#8a5a00",
    "hot": "#b03a06",
    "bar": "#5b7fb0",
    "link": "#1d5fa8",
}
DARK = {
    "page": "#14181d",
    "card": "#1c2229",
    "line": "#37414d",
    "text": "#e4e8ed",
    "soft": "#9aa6b3",
    "good": "#4cc38a",
    "bad": "#ff7a6b",
    "warn": "#e0b050",
    "hot": "#f08a4b",
    "bar": "#6f97cc",
    "link": "#7fb2ec",
}


def share(shade: int) -> int:
    """How much of the colour ``hot`` is in a shade, in percent; the rest is that of a cell.

    Between the two lines neither colour of a text can be read.
    """
    return shade * 9 if shade < STRONG else 100 - (SHADES - 1 - shade) * 7


def _colours(named: dict[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in named.items())


_SHADES = "\n".join(
    f".map .h{number} {{ background: color-mix(in srgb, var(--hot) {share(number)}%, var(--card)); }}"
    for number in range(1, SHADES)
)

CSS = f"""
:root {{ color-scheme: light dark; {_colours(LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_colours(DARK)} }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; padding: 1.2rem 1.25rem 3rem; max-width: 78rem; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }}
h1 {{ font-size: 1.2rem; font-weight: 600; line-height: 1.35; margin: .35rem 0 0; }}
h2 {{ font-size: 1.1rem; margin: 2rem 0 .6rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }}
h3 {{ font-size: 1rem; margin: .1rem 0 .5rem; }}
h4 {{ font-size: .95rem; margin: 1rem 0 .3rem; }}
p {{ margin: .4rem 0; }}
a {{ color: var(--link); }}
:target {{ outline: 2px solid var(--link); outline-offset: 3px; }}
code {{ font: .9em ui-monospace, monospace; }}
.soft {{ color: var(--soft); }}
header {{ border: 1px solid var(--line); border-left: .5rem solid var(--tone); border-radius: .4rem;
  background: var(--card); padding: .8rem 1.1rem; }}
.word {{ font-size: 1.7rem; font-weight: 700; line-height: 1.1; margin: 0; color: var(--tone); }}
.passed {{ --tone: var(--good); }} .failed, .error {{ --tone: var(--bad); }}
.notvalidated, .warning, .skipped {{ --tone: var(--warn); }}
.facts {{ display: flex; flex-wrap: wrap; gap: .1rem 1.4rem; margin: .6rem 0 0; font-size: .9rem; }}
.facts div {{ display: flex; gap: .45rem; min-width: 0; }}
.facts dd {{ min-width: 0; overflow-wrap: anywhere; }}
dt {{ color: var(--soft); }} dd {{ margin: 0; }}
.counts, .chips, nav ul {{ display: flex; flex-wrap: wrap; gap: .35rem .5rem; list-style: none; margin: .6rem 0 0;
  padding: 0; font-size: .9rem; }}
.counts li {{ border: 1px solid var(--line); border-left: .3rem solid var(--tone); border-radius: .3rem; }}
.counts a {{ display: block; padding: .15rem .6rem; color: inherit; text-decoration: none; }}
.counts a:hover {{ text-decoration: underline; }}
.counts b, .chips b {{ color: var(--tone); }}
.chips {{ gap: .1rem 1.2rem; }}
nav ul {{ gap: .1rem 1rem; padding-top: .4rem; }}
main > section:first-child h2 {{ margin-top: 1.1rem; }}
.stages {{ display: flex; flex-wrap: wrap; gap: .3rem; list-style: none; margin: 0 0 1rem; padding: 0; }}
.stages li {{ flex: 1 1 9rem; border-top: .35rem solid var(--tone); background: var(--card); padding: .4rem .6rem; }}
.stages b {{ display: block; }}
.finding {{ border: 1px solid var(--line); border-left: .35rem solid var(--tone); border-radius: .3rem;
  padding: .6rem 1rem .7rem; margin: .7rem 0; }}
.badge {{ color: var(--tone); font-weight: 700; text-transform: uppercase; font-size: .8rem; letter-spacing: .04em; }}
.finding dl {{ display: grid; grid-template-columns: 8rem 1fr; gap: .3rem 1rem; margin: 0; }}
.finding dd {{ min-width: 0; }}
.plain {{ margin: 0; padding-left: 1.1rem; }}
.index {{ margin: .3rem 0; padding-left: 1.6rem; }}
details {{ margin: .6rem 0 0; }}
summary {{ cursor: pointer; color: var(--link); }}
.page {{ max-width: 50rem; }}
.page[open] {{ border-top: 1px solid var(--line); padding-top: .5rem; }}
pre {{ margin: 0; padding: .5rem .7rem; background: var(--card); border: 1px solid var(--line); border-radius: .3rem;
  font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }}
.wide {{ overflow: auto; max-width: 100%; }} .grid {{ max-height: 85vh; }}
table {{ border-collapse: separate; border-spacing: 0; font-variant-numeric: tabular-nums; }}
th {{ text-align: left; font-weight: 600; }}
.list td, .list th {{ padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }}
.list .number {{ text-align: right; white-space: nowrap; }}
.list .bar {{ width: 16rem; min-width: 5rem; }}
.bar span {{ display: block; height: .7rem; margin-top: .35rem; background: var(--bar);
  border-radius: 0 .2rem .2rem 0; }}
.maps {{ display: flex; flex-wrap: wrap; gap: 1rem 2.2rem; align-items: flex-start; }}
.maps > div {{ max-width: 100%; min-width: 0; }}
.map {{ font-size: 12px; }}
.map td {{ min-width: 1.9rem; height: 1.6rem; padding: 0 .25rem; text-align: center; border: 1px solid var(--page);
  background: var(--card); }}
.map th {{ padding: 0 .4rem; white-space: nowrap; font-weight: 500; color: var(--soft); background: var(--page); }}
.map thead th {{ text-align: center; }}
.map thead > tr > * {{ position: sticky; top: 0; z-index: 1; }}
.map tr > :first-child {{ position: sticky; left: 0; }}
.map thead tr > :first-child {{ z-index: 2; }}
.map .self {{ background: var(--page); }}
.map.small {{ font-size: 9px; line-height: 1; }}
.map.small td {{ min-width: .8rem; width: .8rem; height: .8rem; padding: 0; }}
.map.small th {{ padding: 0 .3rem; }}
.map.small thead th, .map.many thead th {{ writing-mode: vertical-rl; text-align: left; padding: .3rem 0; }}
.map .no {{ background: var(--bad); color: var(--page); font-weight: 700; }}
.map .unsure {{ background: var(--warn); color: var(--page); font-weight: 700; }}
.map .strong {{ color: var(--page); font-weight: 600; }}
.map tr.edge > * {{ border-top: 1px solid var(--soft); }}
.map tr > .edge {{ border-left: 1px solid var(--soft); }}
{_SHADES}
.lines {{ width: 100%; }} .list.lines td, .list.lines th {{ border: 0; padding-top: .1rem; padding-bottom: .1rem;
  white-space: nowrap; }}
.list .track {{ position: relative; width: 85%; border-left: 1px solid var(--line);
  border-right: 1px solid var(--line); overflow: hidden; }}
.track span {{ position: absolute; top: .25rem; height: 1rem; min-width: 1px; border-right: 1px solid var(--page); }}
.wait {{ background: var(--line); }} .work {{ background: var(--bar); }} .broken {{ background: var(--bad); }}
footer {{ margin-top: 2.5rem; color: var(--soft); font-size: .85rem; }}
@media (max-width: 600px) {{
  body {{ padding: .6rem .7rem 2rem; }}
  header {{ padding: .6rem .8rem; }}
  h1 {{ font-size: 1.05rem; }}
  .word {{ font-size: 1.4rem; }}
  .facts, .counts, .chips, nav ul {{ font-size: .82rem; margin-top: .45rem; }}
  nav ul {{ flex-wrap: nowrap; overflow-x: auto; white-space: nowrap; padding-bottom: .3rem; }}
  .finding {{ padding: .5rem .7rem .6rem; }}
  .finding dl {{ grid-template-columns: 1fr; gap: .1rem; }}
  .finding dd {{ margin-bottom: .4rem; }}
  .list .track {{ width: 60%; }}
  .list td, .list th {{ padding-right: .6rem; }}
  .map {{ font-size: 11px; }}
  .map td {{ min-width: 1.5rem; padding: 0 .1rem; }}
  .map th {{ padding: 0 .15rem; }}
}}
@page {{ size: A4; margin: 14mm 12mm 16mm; }}
@media print {{
  :root {{ color-scheme: light; {_colours(LIGHT)} }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  html {{ font-size: 11px; }}
  body {{ max-width: none; padding: 0; font-size: 11px; }}
  pre, .map {{ font-size: 9px; }}
  .map td {{ min-width: 1.5rem; height: 1.3rem; padding: 0 .1rem; }}
  .map.many {{ font-size: 7px; }} .map.many td {{ min-width: 0; padding: 0 1px; }}
  .map.small {{ font-size: 6px; }}
  h2, h3, h4, summary, thead {{ break-after: avoid; }}
  .map, tr, pre, li, .maps > div, .counts, .stages, header {{ break-inside: avoid; }}
  thead {{ display: table-header-group; }}
  .wide {{ overflow: visible; max-height: none; }}
  .page {{ max-width: none; }}
  .map tr > *, .map thead > tr > * {{ position: static; }}
  nav, #order, .every {{ display: none; }}
  .page::details-content {{ display: block; content-visibility: visible; height: auto; }}
}}
"""
