"""One word for one thing: the words that stand for others name nothing in the code."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "weft"
# A window has a range, a slide and an offset; what is cut is a slice, what it holds a partial.
# What was measured of times or keys are their bounds.
BANNED = {"reach", "span", "extent", "pane", "extents", "panes"}
BANNED |= {f"{word}_us" for word in (*BANNED, "size", "length")}
# How many items something has is a size; how long a window is, is not.
WINDOW_ROOMS = ("window", "parsing", "plan", "planners")


def names_of(path: Path) -> set[str]:
    """Every attribute, field, parameter and method that a file defines."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            fields = (s for s in node.body if isinstance(s, ast.AnnAssign))
            found |= {s.target.id for s in fields if isinstance(s.target, ast.Name)}
        elif isinstance(node, ast.FunctionDef):
            found |= {node.name, *(arg.arg for arg in (*node.args.args, *node.args.kwonlyargs))}
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return {name.strip("_") for name in found}


def test_no_banned_word_names_anything() -> None:
    found = {str(p.relative_to(SOURCE)): names_of(p) & BANNED for p in SOURCE.rglob("*.py")}
    assert {path: words for path, words in found.items() if words} == {}


def test_windows_and_plans_have_ranges_and_no_sizes() -> None:
    paths = (p for room in WINDOW_ROOMS for p in (SOURCE / room).rglob("*.py"))
    drawn = SOURCE / "plan" / "render"  # boxes on a sheet do have sizes
    assert [str(p) for p in paths if drawn not in p.parents and "size" in names_of(p)] == []
