"""Runs that `weft run --stats` measured: what was expected of every node, and what came."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from weft.calibration.past_runs import past_runs, runs_file
from weft.ui.frame import table

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_RUNS = 30
_TOGETHER = (
    "Spark computes these nodes in the same stages, and takes one time for them. A node that reads "
    "events is finished after the shuffle, but expected as a whole before it."
)
_HEADS = ("node", "", "rows expected", "rows", "ms expected", "ms")


def content() -> str:
    """Write the page: the latest run first, open."""
    runs = [run for run in past_runs() if run.get("nodes")][-_MOST_RUNS:]
    if not runs:
        return (
            '<section class="card"><h1>Runs</h1><p>No run was measured yet: '
            f"<code>weft run --stats</code> writes them to {escape(str(runs_file()))}</p></section>"
        )
    head = '<section class="card"><h1>Runs</h1><p class="soft">the latest first</p></section>'
    return head + "".join(_run(run, at == 0) for at, run in enumerate(reversed(runs)))


def _run(run: dict[str, Any], is_open: bool) -> str:
    expected = [node["expected_ms"] for node in run["nodes"]]
    known = None if None in expected else sum(expected)
    measured = float(run["ms"])
    beside = "" if known is None else f", {known:,.1f} ms expected ({known / measured:.2f}x)"
    line = f"{run.get('at', '')} · {run['engine']} · {measured:,.1f} ms{beside}"
    rows = [_row(node) for node in run["nodes"]]
    steps = run.get("steps", ())  # what was measured before they were known has none
    bars = _bars([_as_bar(step) for step in steps] if steps else run["nodes"])
    shown = f"{bars}{table(_HEADS, rows, numbers=(2, 3, 4, 5))}{_steps(steps)}"
    return (
        f'<details class="card"{" open" if is_open else ""}><summary>{escape(line)}</summary>'
        f"{shown}</details>"
    )


def _as_bar(step: dict[str, Any]) -> dict[str, Any]:
    return {**step, "name": ", ".join(step["nodes"])}


def _steps(steps: Sequence[dict[str, Any]]) -> str:
    """Write what nodes took that Spark computes in the same stages, and so times together."""
    if not steps:
        return ""
    rows = [
        (
            ", ".join(step["nodes"]),
            step["what"],
            ", ".join(map(str, step["stages"])),
            f"{step['tasks']:,}",
            "–" if step["expected_ms"] is None else f"{step['expected_ms']:,.2f}",
            f"{step['ms']:,.2f}",
            f"{step['task_ms']:,.2f}",
        )
        for step in steps
    ]
    heads = ("nodes", "", "stages", "tasks", "ms expected", "ms", "ms of tasks")
    return f'<p class="soft">{_TOGETHER}</p>{table(heads, rows, numbers=(3, 4, 5, 6))}'


def _row(node: dict[str, Any]) -> Sequence[str]:
    def text(value: float | None, form: str) -> str:
        return "–" if value is None else format(value, form)

    return (
        node["name"],
        node["what"],
        text(node["estimated"], ",.0f"),
        text(node["actual"], ","),
        text(node["expected_ms"], ",.2f"),
        text(node["ms"], ",.2f"),
    )


def _bars(nodes: Sequence[dict[str, Any]]) -> str:
    """Draw the times of each node, expected above measured."""
    told = [n for n in nodes if n["expected_ms"] is not None or n["ms"] is not None]
    most = max((max(n["expected_ms"] or 0.0, n["ms"] or 0.0) for n in told), default=0.0)
    if most <= 0:
        return ""
    rows = []
    for at, node in enumerate(told):
        wide = [300 * (node[name] or 0.0) / most for name in ("expected_ms", "ms")]
        name = f"{node['name']} {node['what']}"
        rows.append(
            f'<text class="tick" x="0" y="{at * 26 + 16}">{escape(name[:44])}</text>'
            f'<rect class="expected" x="300" y="{at * 26 + 4}" width="{wide[0]:.1f}" height="8"/>'
            f'<rect class="measured" x="300" y="{at * 26 + 13}" width="{wide[1]:.1f}" height="8"/>'
        )
    return (
        f'<svg class="bars" viewBox="0 0 610 {len(told) * 26 + 4}" role="img" '
        f'aria-label="ms of every node">{"".join(rows)}</svg>'
        '<p class="legend"><span><i class="expected"></i>expected</span>'
        '<span><i class="measured"></i>measured</span></p>'
    )
