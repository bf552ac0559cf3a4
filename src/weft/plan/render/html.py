"""EXPLAIN as one HTML page that needs nothing else: no script, no network, light or dark."""

from __future__ import annotations

from html import escape
from math import isfinite
from typing import TYPE_CHECKING

from weft.plan.render.graph import Limits, drawing
from weft.plan.render.svg import svg
from weft.plan.render.text import text
from weft.plan.render.words import (
    STRATEGY_HEADS,
    counted,
    grouped,
    statistics_text,
    strategy_rows,
    unshared_cost,
)

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from weft.plan.body import PlanBody
    from weft.plan.render.graph import Kind

LIMITS = Limits(boxes=32, results=12, columns=5)
MOST_ROWS = 500  # of the table of windows
_STYLE = """
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1b2430;--soft:#5d6b7c;
--line:#dde3ea;--arrow:#93a1b3;--track:#e9edf2;--scan:#64748b;--slice:#0d9488;--window:#2563eb;--factor:#d97706;
--join:#7c3aed;--result:#15803d;--good:#15803d;--pick:#eef4ff}
@media(prefers-color-scheme:dark){:root{--page:#11161d;--card:#1a212b;--ink:#e6ebf2;--soft:#98a6b8;
--line:#2e3947;--arrow:#61718a;--track:#2a3442;--scan:#94a3b8;--slice:#2dd4bf;--window:#60a5fa;
--factor:#fbbf24;--join:#a78bfa;--result:#4ade80;--good:#4ade80;--pick:#1d2b44}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:14px/1.45 system-ui,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif}
main{max-width:1560px;margin:0 auto;padding:28px 28px 40px}
h1{font-size:20px;margin:0 0 2px;font-weight:650}
h2{font-size:15px;margin:0 0 10px;font-weight:650}
p{margin:0}.soft{color:var(--soft)}
.card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:18px 20px;
margin-top:16px}
.figures{display:flex;flex-wrap:wrap;gap:14px 44px;margin-top:18px}
.figures b{display:block;font-size:26px;font-weight:650;line-height:1.2;
font-variant-numeric:tabular-nums}
.figures .good{color:var(--good)}
.scroll{overflow:auto}.rows{max-height:32em}
.legend{display:flex;flex-wrap:wrap;gap:6px 18px;margin-top:12px;font-size:12px;color:var(--soft)}
.legend i{display:inline-block;width:14px;height:10px;border-radius:3px;border:2px solid;
margin-right:6px;vertical-align:-1px}
.legend .dashed{border-style:dashed}
table{border-collapse:collapse;min-width:min(100%,860px);font-variant-numeric:tabular-nums}
th{position:sticky;top:0;background:var(--card);text-align:left;font-weight:600;color:var(--soft);
font-size:12px}
th,td{padding:6px 18px 6px 8px;border-bottom:1px solid var(--line);vertical-align:top}
th.number,td.number{text-align:right;white-space:nowrap}
tr.chosen td{background:var(--pick);font-weight:600}
.meter{width:180px;min-width:90px}
.meter span{display:block;height:8px;margin-top:6px;border-radius:4px;background:var(--window)}
ul{margin:0;padding-left:20px}
summary{cursor:pointer;font-weight:650;font-size:15px}
pre{overflow:auto;font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
margin:12px 0 0}
svg.graph{display:block;margin:0 auto;max-width:100%;height:auto;font-family:inherit}
.frame{fill:var(--card);stroke-width:1.6}
.scan{--c:var(--scan)}.slice{--c:var(--slice)}.window,.group{--c:var(--window)}
.factor{--c:var(--factor)}.join{--c:var(--join)}.result{--c:var(--result)}
.frame{stroke:var(--c)}.box:hover .frame{stroke-width:2.6}
.factor .frame{stroke-dasharray:6 4}
.group .frame{filter:drop-shadow(3px 3px 0 var(--track)) drop-shadow(3px 3px 0 var(--line))}
.box text{fill:var(--ink)}
.name{font-size:13px;font-weight:620}
.below,.cost,.tag,.times{font-size:11px}
.box .below,.box .tag{fill:var(--soft)}
.cost,.tag{text-anchor:end}.cost{font-weight:600}
.tag{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.times{text-anchor:end;fill:var(--ink);font-weight:600;paint-order:stroke;stroke:var(--card);
stroke-width:4px}
.track{fill:var(--track)}.bar{fill:var(--c)}
.arrow{fill:none;stroke:var(--arrow);stroke-width:1.4}#tip path{fill:var(--arrow)}
footer{margin-top:18px;font-size:12px;color:var(--soft)}
"""
_LEGEND = (
    ("scan", "events"),
    ("slice", "slices"),
    ("window", "window"),
    ("factor", "factor window: feeds others, reaches no user"),
    ("join", "join"),
    ("result", "result"),
    ("group", "several windows"),
)


def page(plan: PlanBody) -> str:
    """Write the whole page; the same plan gives the same bytes."""
    graph = drawing(plan, LIMITS)
    drawn = {box.kind for box in graph.boxes}
    note = f'<p class="soft">{escape(graph.note)}</p>' if graph.note else ""
    body = [
        _heading(plan),
        f'<section class="card">{note}<div class="scroll">{svg(graph)}</div>'
        f"{_legend(drawn)}</section>",
        _candidates(plan),
        _strategies(plan),
        _windows(plan),
        _notes(plan),
        f'<details class="card"><summary>EXPLAIN as text</summary><pre>{escape(text(plan))}</pre>'
        "</details>",
        f"<footer>fingerprint {plan.fingerprint}</footer>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        # A browser that obeys this policy loads nothing and runs no script, whatever a label says.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>weft plan: {escape(plan.planner)}, cost {grouped(plan.cost)}</title>\n"
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def _heading(plan: PlanBody) -> str:
    windows = counted(len(plan.emits), "window")
    sources = ", ".join(dict.fromkeys(scan.source for scan in plan.scans))
    figures = [_figure(grouped(plan.cost), f"cost, {plan.unit}")]
    unshared = unshared_cost(plan)
    if unshared is not None:
        figures.append(_figure(grouped(unshared), "unshared"))
        if 0 < plan.cost < unshared:
            figures.append(_figure(f"{unshared / plan.cost:.3g}x", "less", good=True))
    figures.append(_figure(plan.planner, "planner"))
    figures.append(_figure(plan.engine, f"engine, {plan.model} costs"))
    return (
        f"<header><h1>{windows} over {escape(sources)}</h1>"
        f'<p class="soft">{escape(statistics_text(plan.statistics))}</p>'
        f'<div class="figures">{"".join(figures)}</div></header>'
    )


def _figure(value: str, meaning: str, *, good: bool = False) -> str:
    mark = ' class="good"' if good else ""
    return f'<div><b{mark}>{escape(value)}</b><span class="soft">{escape(meaning)}</span></div>'


def _legend(drawn: Set[Kind]) -> str:
    items = (
        f'<span><i class="{"dashed" if kind == "factor" else ""}" '
        f'style="border-color:var(--{"window" if kind == "group" else kind})"></i>{meaning}</span>'
        for kind, meaning in _LEGEND
        if kind in drawn
    )
    return f'<div class="legend">{"".join(items)}<span>bars show cost</span></div>'


def _candidates(plan: PlanBody) -> str:
    if not plan.candidates:
        return ""
    most = max((c.cost for c in plan.candidates if isfinite(c.cost)), default=0.0)
    rows = []
    for planner, cost, reason in plan.candidates:
        share = 100 * cost / most if most > 0 and isfinite(cost) else 0.0
        meter = f'<td class="meter"><span style="width:{share:.1f}%"></span></td>'
        chosen = ' class="chosen"' if planner == plan.planner else ""
        number = f'<td class="number">{grouped(cost)}</td>'
        rows.append(f"<tr{chosen}>{_cells((planner,))}{number}{meter}{_cells((reason,))}</tr>")
    heads = '<th>planner</th><th class="number">cost</th><th></th><th>verdict</th>'
    return _table("Candidates", heads, rows)


def _strategies(plan: PlanBody) -> str:
    rows = [
        f"<tr>{_cells(row[:2])}"
        + "".join(f'<td class="number">{cost}</td>' for cost in row[2:4])
        + f"{_cells(row[4:])}</tr>"
        for row in strategy_rows(plan, grouped)
    ]
    heads = "".join(
        f'<th class="number">{head}</th>' if "cost" in head else f"<th>{head}</th>"
        for head in STRATEGY_HEADS
    )
    return _table("Strategies", heads, rows) if rows else ""


def _windows(plan: PlanBody) -> str:
    if not plan.shares:
        return ""
    reasons = any(share.reason for share in plan.shares)
    rows = []
    for s in plan.shares[:MOST_ROWS]:
        numbers = "".join(f'<td class="number">{grouped(v)}</td>' for v in (s.marginal, s.alone))
        reason = _cells((s.reason,)) if reasons else ""
        rows.append(f"<tr>{_cells((s.query, s.label, s.window, s.feeder))}{numbers}{reason}</tr>")
    rest = len(plan.shares) - MOST_ROWS
    if rest > 0:
        rows.append(f'<tr><td colspan="7">... {rest:,} more (format "json" has all)</td></tr>')
    heads = "".join(f"<th>{head}</th>" for head in ("query", "label", "window", "fed by"))
    heads += '<th class="number">marginal cost</th><th class="number">cost alone</th>'
    return _table("Windows", heads + ("<th>not shared because</th>" if reasons else ""), rows)


def _table(title: str, heads: str, rows: Sequence[str]) -> str:
    body = "\n".join(rows)
    return (
        f'<section class="card"><h2>{title}</h2><div class="scroll rows"><table><thead><tr>{heads}'
        f"</tr></thead>\n<tbody>{body}</tbody></table></div></section>"
    )


def _cells(values: Sequence[str]) -> str:
    return "".join(f"<td>{escape(value)}</td>" for value in values)


def _notes(plan: PlanBody) -> str:
    if not plan.notes:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in plan.notes)
    return f'<section class="card"><h2>Notes</h2><ul>{items}</ul></section>'
