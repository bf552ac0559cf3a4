"""EXPLAIN as a mermaid flowchart, for Markdown files, wikis and notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.plan.render.graph import Box, Limits, drawing
from weft.plan.render.words import amount, gain

if TYPE_CHECKING:
    from weft.plan.body import PlanBody

# Beyond this the arrows of a mermaid drawing can no longer be followed.
LIMITS = Limits(boxes=80, results=40, columns=80)
_SAFE = frozenset(" _.,:*+-/()=@'%|!?→…·")
_SHAPES = {
    "scan": ("[(", ")]"),
    "result": ("([", "])"),
    "join": ("{{", "}}"),
    "group": ("[[", "]]"),
}
_STYLES = ("classDef factor stroke-dasharray: 6 4", "classDef result stroke-width: 2px")


def mermaid(plan: PlanBody) -> str:
    """Print the plan as a mermaid graph; factor windows are dashed, results are rounded."""
    graph = drawing(plan, LIMITS)
    saved = gain(plan)
    cost = f"cost {amount(plan.cost)} {plan.unit}" + (f": {saved}" if saved else "")
    lines = ["flowchart LR", f"    %% {escape(f'{plan.planner}, {plan.engine}, {plan.model}')}"]
    lines.append(f"    %% {escape(cost)}")
    if graph.note:
        lines.append(f"    %% {escape(graph.note)}")
    lines.extend(f"    {_box(box)}" for box in graph.boxes)
    for arrow in graph.arrows:
        label = f'|"{escape(arrow.label)}"|' if arrow.label else ""
        lines.append(f"    {arrow.source} -->{label} {arrow.target}")
    lines.extend(f"    {style}" for style in _STYLES)
    for kind in ("factor", "result"):
        named = ",".join(box.id for box in graph.boxes if box.kind == kind)
        if named:
            lines.append(f"    class {named} {kind}")
    return "\n".join(lines)


def _box(box: Box) -> str:
    before, after = _SHAPES.get(box.kind, ("[", "]"))
    parts = [box.title, box.subtitle, f"cost {amount(box.cost)}"]
    label = "<br/>".join(escape(part) for part in parts if part)
    return f'{box.id}{before}"{label}"{after}'


def escape(text: str) -> str:
    """Write letters, digits and plain punctuation as they are, all else as entity codes.

    >>> escape('<b> "x"'), escape("min(temp)")
    ('#60;b#62; #34;x#34;', 'min(temp)')
    """
    return "".join(c if c.isalnum() or c in _SAFE else f"#{ord(c)};" for c in text)
