"""The errors that weft raises, found in its source: what they say, and what they advise.

`make docs` puts the list into the page on errors. A text is read where an error is made; where a
function makes it of what it is given, where that function is called. What passes on words of
others, such as Spark's, has no text of its own; and exceptions that weft catches itself are none
of its errors. `unlisted` names every `raise` that is none of these: there must be none.
"""

from __future__ import annotations

import ast
import builtins
import sys
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOURCE = Path(__file__).resolve().parent.parent / "src" / "weft"
# What makes each kind; the parser and the statements have functions of their own for it.
KINDS = {
    "QueryError": ("QueryError", "error", "_error", "fault", "ClauseFault", "SparkRefusal"),
    "DataError": ("DataError",),
    "InputError": ("InputError",),
    "UnsupportedError": ("UnsupportedError", "Obstacle", "Unsupported", "Unable"),
    "InternalError": ("InternalError",),
}
_KIND_OF = {name: kind for kind, names in KINDS.items() for name in names}
_UNKNOWN = "..."


class Told(NamedTuple):
    """One text of an error; what is filled in stands in braces, or as `...`."""

    kind: str
    room: str  # the package it is raised in
    message: str
    hint: str


@dataclass(frozen=True)
class Module:
    """One file of the source."""

    path: Path
    room: str
    tree: ast.Module = field(repr=False)

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        """What is assigned to names of the module."""
        return {
            target.id: node.value
            for node in self.tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree."""
        return [*ast.walk(self.tree)]

    @cached_property
    def makers(self) -> dict[str, list[tuple[list[str], ast.Call]]]:
        """The functions that make errors: their parameters, and how each is made."""
        found: dict[str, list[tuple[list[str], ast.Call]]] = {}
        waiting: list[tuple[ast.AST, ast.FunctionDef | None]] = [(self.tree, None)]
        while waiting:
            node, inside = waiting.pop()
            if isinstance(node, ast.FunctionDef) and node.name not in _KIND_OF:
                inside = node
            if inside is not None and isinstance(node, ast.Call) and _name(node.func) in _KIND_OF:
                given = (*inside.args.args, *inside.args.kwonlyargs)
                names = [argument.arg for argument in given]
                own = [name for name in names if name not in ("self", "cls")]
                found.setdefault(inside.name, []).append((own, node))
            waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
        return found


def _name(node: ast.expr) -> str:
    return str(getattr(node, "id", getattr(node, "attr", "")))


@cache
def modules(source: Path = SOURCE) -> list[Module]:
    """Read all of the source."""
    return [
        Module(
            path,
            path.relative_to(source).parts[0].removesuffix(".py"),
            ast.parse(path.read_text(encoding="utf-8")),
        )
        for path in sorted(source.rglob("*.py"))
    ]


def errors_of(source: Path = SOURCE) -> list[Told]:
    """Find the errors of all modules, in the order of packages; each text once."""
    known = modules(source)
    shared = _shared_templates(known)
    return list(dict.fromkeys(told for one in known for told in _errors_in(one, shared)))


Templates = dict[str, list[tuple[list[str], Told]]]


def _shared_templates(known: list[Module]) -> Templates:
    """Return the texts that functions fill in for other modules; their names are of one alone."""
    names = [name for one in known for name in one.makers if name[0] != "_"]
    return {
        name: told
        for one in known
        for name, told in _templates(one).items()
        if names.count(name) == 1
    }


def _templates(module: Module) -> Templates:
    """Return the texts with places for what functions of a module are given."""
    found: Templates = {}
    for name, made in module.makers.items():
        for parameters, call in made:
            for told in _told(module, _KIND_OF[_name(call.func)], call):
                if any("{" + own + "}" in told.message + told.hint for own in parameters):
                    found.setdefault(name, []).append((parameters, told))
    return found


def _errors_in(module: Module, shared: Templates) -> Iterator[Told]:
    templates = {**shared, **_templates(module)}
    for node in module.nodes:
        if not isinstance(node, ast.Call):
            continue
        name = _name(node.func)
        if name in _KIND_OF:
            yield from _told(module, _KIND_OF[name], node)
        for parameters, told in templates.get(name, ()):
            given = dict(zip(parameters, map(text_of, node.args), strict=False))
            given |= {word.arg: text_of(word.value) for word in node.keywords if word.arg}
            literal = {name: text for name, text in given.items() if _says(text)}
            filled = Told(*(_filled(text, literal) for text in told))
            if filled != told:
                yield filled._replace(room=module.room)


def _filled(text: str, given: Mapping[str, str]) -> str:
    for name, value in given.items():
        text = text.replace("{" + name + "}", value)
    return text


def _told(module: Module, kind: str, call: ast.Call) -> Iterator[Told]:
    """Write the texts that a call makes an error of: several where it picks one of a table."""
    named = [text_of(word.value, module) for word in call.keywords if word.arg == "hint"]
    for texts in _picked(call, module):
        said = [text for text in texts if _says(text) or text.startswith("{")]
        if said:
            yield Told(kind, module.room, said[0], "".join((named or said[1:])[:1]))


def _picked(call: ast.Call, module: Module) -> Iterator[list[str]]:
    """Yield the texts that a call is given; with `*TABLE[name]`, those of every entry."""
    for node in call.args:
        if isinstance(node, ast.Starred) and isinstance(node.value, ast.Subscript):
            table = module.constants.get(_name(node.value.value))
            for value in table.values if isinstance(table, ast.Dict) else ():
                if isinstance(value, ast.Tuple):
                    yield [text_of(part, module) for part in value.elts]
            return
    yield [text_of(node, module) for node in call.args]


def _says(text: str) -> bool:
    return len(text.replace(_UNKNOWN, "").split()) > 1


def text_of(node: ast.expr, module: Module | None = None) -> str:
    """Write an expression that makes a text as that text, as far as it is known.

    >>> text_of(ast.parse("f'no {noun} of ' + 'that name'", mode="eval").body)
    'no {noun} of that name'
    """
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(text_of(part, module) for part in parts)
        case ast.FormattedValue(value=ast.Name() | ast.Attribute() as value):
            return "{" + ast.unparse(value).rpartition(".")[2].strip("_") + "}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text_of(left, module) + text_of(right, module)
        case ast.IfExp(body=one, orelse=other):
            both = [text_of(one, module), text_of(other, module)]
            return " | ".join(text for text in both if text not in ("", _UNKNOWN)) or _UNKNOWN
        case ast.BoolOp(values=several):
            found = [text_of(one, module) for one in several]
            return " | ".join(text for text in found if _says(text)) or _UNKNOWN
        case ast.Call(func=ast.Name(id="suggest"), args=[_, _, otherwise]):
            return f"did you mean ...? | {text_of(otherwise, module)}"
        case ast.Name(id=name) if module is not None and name in module.constants:
            return text_of(module.constants[name])
        case ast.Name(id=name):
            return "{" + name.strip("_") + "}"
        case _:
            return _UNKNOWN


def unlisted(source: Path = SOURCE) -> list[str]:
    """Name every place that raises what is neither listed, nor passed on, nor caught by weft."""
    known = modules(source)
    inner = _inner_exceptions(known)
    shared = {name for one in known for name in one.makers if name[0] != "_"}
    return [
        f"{one.path.relative_to(source)}:{node.lineno}: {ast.unparse(node.exc)}"
        for one in known
        for node in one.nodes
        if isinstance(node, ast.Raise)
        and node.exc is not None
        and not _is_listed(node.exc, one, shared, inner)
    ]


def _inner_exceptions(known: list[Module]) -> set[str]:
    """Return the exceptions that are none of weft's errors, Python's own with them.

    A class that is one of weft's errors and has no kind here is not among them, and so missed.
    """
    bases = {
        node.name: {_name(base) for base in node.bases}
        for one in known
        for node in one.nodes
        if isinstance(node, ast.ClassDef) and node.bases
    }
    ours = {"WeftError"}
    while more := {name for name, above in bases.items() if ours & above} - ours:
        ours |= more
    return {*vars(builtins), "Exit"} | (bases.keys() - ours)


def _is_listed(raised: ast.expr, module: Module, shared: set[str], inner: set[str]) -> bool:
    name = _name(raised.func if isinstance(raised, ast.Call) else raised)
    if name in inner or not isinstance(raised, ast.Call):
        return name in inner or name.islower()  # an error that was caught, and goes on
    if name in _KIND_OF:
        return bool([*_told(module, _KIND_OF[name], raised)]) or _passes_on(raised)
    return name in module.makers or name in shared


def _passes_on(call: ast.Call) -> bool:
    """Tell whether an error has no words of its own but those that another one had."""
    literals = [n for n in ast.walk(call) if isinstance(n, ast.Constant) and _says(str(n.value))]
    return not literals


def markdown() -> str:
    """Write the list as sections by kind and package."""
    lines: list[str] = []
    errors = [told for told in errors_of() if _says(told.message)]
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
