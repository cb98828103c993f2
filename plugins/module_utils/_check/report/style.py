# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the page of a report looks: light and dark, on a screen and on paper."""

from __future__ import annotations

#: Shades of a heat map, from as good as the others to much worse.
SHADES = 10

LIGHT = """
  --page: #ffffff; --card: #f6f7f9; --line: #d5dae1; --text: #1b2129; --soft: #57616e;
  --good: #1a7f4b; --bad: #b42318; --warn: #8a5a00; --hot: #c2410c; --bar: #5b7fb0;
"""
DARK = """
  --page: #14181d; --card: #1c2229; --line: #37414d; --text: #e4e8ed; --soft: #9aa6b3;
  --good: #4cc38a; --bad: #ff7a6b; --warn: #e0b050; --hot: #e8590c; --bar: #6f97cc;
"""
_SHADES = "\n".join(
    f".map .h{number} {{ background: color-mix(in srgb, var(--hot) {number * 100 // (SHADES - 1)}%, var(--card)); }}"
    for number in range(SHADES)
)

CSS = f"""
:root {{ color-scheme: light dark; {LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; padding: 1.5rem 1.25rem 3rem; max-width: 76rem; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }}
h1 {{ font-size: 1.2rem; font-weight: 600; margin: .35rem 0 0; }}
h2 {{ font-size: 1.05rem; margin: 2rem 0 .6rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }}
h3 {{ font-size: 1rem; margin: .1rem 0 .5rem; }}
p {{ margin: .4rem 0; }}
.soft {{ color: var(--soft); }}
header {{ border: 1px solid var(--line); border-left: .5rem solid var(--tone); border-radius: .4rem;
  background: var(--card); padding: .9rem 1.1rem; }}
.word {{ font-size: 1.7rem; font-weight: 700; line-height: 1.1; margin: 0; color: var(--tone); }}
.passed {{ --tone: var(--good); }} .failed, .error {{ --tone: var(--bad); }}
.notvalidated, .warning, .skipped {{ --tone: var(--warn); }}
.facts {{ display: flex; flex-wrap: wrap; gap: .2rem 1.6rem; margin: .7rem 0 0; }}
.facts div {{ display: flex; gap: .45rem; }}
dt {{ color: var(--soft); }} dd {{ margin: 0; }}
.stages {{ display: flex; gap: .3rem; list-style: none; margin: 0 0 1rem; padding: 0; }}
.stages li {{ flex: 1 1 0; min-width: 7rem; border-top: .35rem solid var(--tone); background: var(--card);
  padding: .4rem .6rem; }}
.stages b {{ display: block; }}
.finding {{ border: 1px solid var(--line); border-left: .35rem solid var(--tone); border-radius: .3rem;
  padding: .7rem 1rem; margin: .7rem 0; break-inside: avoid; }}
.badge {{ color: var(--tone); font-weight: 700; text-transform: uppercase; font-size: .8rem; letter-spacing: .04em; }}
.finding dl {{ display: grid; grid-template-columns: 8rem 1fr; gap: .3rem 1rem; margin: 0; }}
.finding dd {{ min-width: 0; }}
.finding ul, .plain {{ margin: 0; padding-left: 1.1rem; }}
pre {{ margin: 0; padding: .5rem .7rem; background: var(--card); border: 1px solid var(--line); border-radius: .3rem;
  font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th {{ text-align: left; font-weight: 600; }}
.list td, .list th {{ padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }}
.list .number {{ text-align: right; white-space: nowrap; }}
.list .bar {{ width: 16rem; }}
.bar span {{ display: block; height: .7rem; margin-top: .35rem; background: var(--bar);
  border-radius: 0 .2rem .2rem 0; }}
.maps {{ display: flex; flex-wrap: wrap; gap: 1rem 2.2rem; align-items: flex-start; }}
.maps > div {{ max-width: 100%; }}
.map {{ font-size: 12px; }}
.map td {{ min-width: 1.9rem; height: 1.6rem; padding: 0 .25rem; text-align: center; border: 1px solid var(--page);
  background: var(--card); }}
.map th {{ padding: 0 .4rem; white-space: nowrap; font-weight: 500; color: var(--soft); }}
.map thead th {{ text-align: center; }}
.map .self {{ background: none; }}
.map.small {{ font-size: 9px; }}
.map.small td {{ min-width: .8rem; width: .8rem; height: .85rem; padding: 0; }}
.map.small thead th {{ writing-mode: vertical-rl; text-align: left; padding: .3rem 0; }}
.map .no {{ background: var(--bad); color: var(--page); font-weight: 700; }}
.map .unsure {{ background: var(--warn); color: var(--page); font-weight: 700; }}
.map .strong {{ color: var(--page); font-weight: 600; }}
{_SHADES}
.lines {{ width: 100%; }} .lines td, .lines th {{ border: 0; padding-top: .1rem; padding-bottom: .1rem; }}
.track {{ position: relative; width: 85%; border-left: 1px solid var(--line); border-right: 1px solid var(--line); }}
.track span {{ position: absolute; top: .25rem; height: 1rem; min-width: 1px; border-right: 1px solid var(--page); }}
.wait {{ background: var(--line); }} .work {{ background: var(--bar); }} .broken {{ background: var(--bad); }}
footer {{ margin-top: 2.5rem; color: var(--soft); font-size: .85rem; }}
@media print {{
  :root {{ color-scheme: light; {LIGHT} }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  html {{ font-size: 11px; }}
  body {{ max-width: none; padding: 0; font-size: 11px; }}
  pre, .map {{ font-size: 9px; }}
  .map.small {{ font-size: 6px; }}
  h2, h3 {{ break-after: avoid; }}
  .map, .list tr, .maps > div {{ break-inside: avoid; }}
  .wide {{ overflow: visible; }}
}}
"""
