"""The errors that weft raises, found in its source: what they say, and what they advise.

`make docs` puts the list into the page on errors. An error whose text is not written where it is
made is not found.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).resolve().parent.parent / "src" / "weft"
# What raises each kind; the parser and the statements have functions of their own for it.
KINDS = {
    "QueryError": ("QueryError", "error", "_error", "fault", "ClauseFault"),
    "DataError": ("DataError",),
    "InputError": ("InputError",),
    "UnsupportedError": ("UnsupportedError", "Obstacle", "NotColumnar"),
    "InternalError": ("InternalError",),
}
_KIND_OF = {name: kind for kind, names in KINDS.items() for name in names}


class Told(NamedTuple):
    """One place where an error is made; what is filled in stands in braces, or as `...`."""

    kind: str
    room: str  # the package it is raised in
    message: str
    hint: str


def errors_of(source: Path = SOURCE) -> list[Told]:
    """Find the errors of all modules, in the order of packages; each text once."""
    found = {
        told: None
        for path in sorted(source.rglob("*.py"))
        for told in _errors_in(path, path.relative_to(source).parts[0].removesuffix(".py"))
    }
    return list(found)


def _errors_in(path: Path, room: str) -> Iterator[Told]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        texts = [text for text in map(text_of, node.args) if _says_something(text)]
        if name in _KIND_OF and texts:
            hints = [text_of(word.value) for word in node.keywords if word.arg == "hint"]
            yield Told(_KIND_OF[name], room, texts[0], hints[0] if hints else "")


def _says_something(text: str) -> bool:
    return len(text.replace("...", "").split()) > 1


def text_of(node: ast.expr) -> str:
    """Write an expression that makes a text as that text, as far as it is known.

    >>> text_of(ast.parse("f'no {noun} of ' + 'that name'", mode="eval").body)
    'no {noun} of that name'
    """
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(text_of(part) for part in parts)
        case ast.FormattedValue(value=ast.Name() | ast.Attribute() as value):
            return "{" + ast.unparse(value).rpartition(".")[2].strip("_") + "}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text_of(left) + text_of(right)
        case ast.IfExp(body=one, orelse=other):
            texts = [text for text in map(text_of, (one, other)) if text not in ("", "...")]
            return " | ".join(texts) or "..."
        case _:
            return "..."


def markdown() -> str:
    """Write the list as sections by kind and package."""
    lines: list[str] = []
    errors = errors_of()
    for kind in KINDS:
        own = [told for told in errors if told.kind == kind]
        lines += ["", f"## {kind}: {len(own)}", ""]
        for room in dict.fromkeys(told.room for told in own):
            lines += ["", f"### {kind} in {room}", "", "| it says | do this |", "|---|---|"]
            lines += [
                f"| {_cell(told.message)} | {_cell(told.hint)} |"
                for told in own
                if told.room == room
            ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Write a text as code in a cell of a table."""
    line = " ".join(text.split()).replace("|", "\\|")
    fence = "``" if "`" in line else "`"
    return f"{fence} {line} {fence}" if line else ""


if __name__ == "__main__":
    sys.stdout.write(markdown())
