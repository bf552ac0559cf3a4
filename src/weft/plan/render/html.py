"""EXPLAIN as one HTML page that needs nothing else: no script, no network, light or dark."""

from __future__ import annotations

from html import escape
from math import isfinite
from typing import TYPE_CHECKING

from weft.plan.render.graph import Limits, drawing
from weft.plan.render.style import STYLE
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
        heading(plan),
        f'<section class="card">{note}<div class="scroll">{svg(graph)}</div>'
        f"{legend(drawn)}</section>",
        candidates(plan),
        strategies(plan),
        _windows(plan),
        notes(plan),
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
        f"<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def heading(plan: PlanBody) -> str:
    """Say what the plan is of, what it costs, and what it would cost unshared."""
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


def legend(drawn: Set[Kind]) -> str:
    """Say what the boxes of a drawing are."""
    items = (
        f'<span><i class="{kind}"></i>{meaning}</span>'
        for kind, meaning in _LEGEND
        if kind in drawn
    )
    rest = "<span>bars show cost; what more results rest on is thicker</span>"
    return f'<div class="legend">{"".join(items)}{rest}</div>'


def candidates(plan: PlanBody) -> str:
    """Put the proposals of all planners side by side."""
    if not plan.candidates:
        return ""
    most = max((c.cost for c in plan.candidates if isfinite(c.cost)), default=0.0)
    rows = []
    for planner, cost, reason in plan.candidates:
        share = 100 * cost / most if most > 0 and isfinite(cost) else 0.0
        bar = f'<rect width="{share:.1f}" height="8" rx="1"/>'
        meter = (
            '<td class="meter"><svg viewBox="0 0 100 8" preserveAspectRatio="none" '
            f'aria-hidden="true">{bar}</svg></td>'
        )
        chosen = ' class="chosen"' if planner == plan.planner else ""
        number = f'<td class="number">{grouped(cost)}</td>'
        rows.append(f"<tr{chosen}>{_cells((planner,))}{number}{meter}{_cells((reason,))}</tr>")
    heads = '<th>planner</th><th class="number">cost</th><th></th><th>verdict</th>'
    return _table("Candidates", heads, rows)


def strategies(plan: PlanBody) -> str:
    """Say how Spark runs every scope, and what either way costs."""
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


def notes(plan: PlanBody) -> str:
    """List what the planners remarked."""
    if not plan.notes:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in plan.notes)
    return f'<section class="card"><h2>Notes</h2><ul>{items}</ul></section>'
