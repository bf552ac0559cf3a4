"""Nodes and windows as JSON values and back, without loss."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, assert_never

from weft.aggregates import AggregateCall, Partial, partial_kind
from weft.errors import QueryError
from weft.plan.nodes import Emit, Join, JoinSide, Node, Roll, Scan, Slice
from weft.window import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    Edges,
    LandmarkWindow,
    MeasuredWindow,
    PeriodicWindow,
    PunctuatedWindow,
    SessionWindow,
    UserWindow,
    Window,
)
from weft.window.user import place_of, window_class

if TYPE_CHECKING:
    from collections.abc import Sequence

_WINDOWS: dict[str, type] = {
    "periodic": PeriodicWindow,
    "session": SessionWindow,
    "counting": CountingWindow,
    "cumulating": CumulatingWindow,
    "calendar": CalendarWindow,
    "punctuated": PunctuatedWindow,
    "measured": MeasuredWindow,
    "landmark": LandmarkWindow,
}
_KINDS = {cls: kind for kind, cls in _WINDOWS.items()}


def window_to_json(window: Window | LandmarkWindow) -> dict[str, Any]:
    """Return a window as JSON values.

    >>> window_to_json(SessionWindow(5))
    {'kind': 'session', 'gap_us': 5}
    """
    if isinstance(window, UserWindow):
        cls = type(window)
        settings = vars(window)
        if json.loads(json.dumps(settings, default=str)) != settings:
            raise QueryError(
                f"{window} cannot be written into a plan: its settings are not plain JSON values",
                hint="keep only numbers, text, booleans, lists and dicts in its attributes",
            )
        told = {"kind": "user", "class": place_of(cls), "settings": settings}
        return told if cls.version is None else {**told, "version": cls.version}
    return {"kind": _KINDS[type(window)], **asdict(window)}


def window_from_json(values: dict[str, Any]) -> Any:
    """Read a window back; a user-defined one is looked up where its class is defined."""
    if values["kind"] != "user":
        return _WINDOWS[values["kind"]](**{k: v for k, v in values.items() if k != "kind"})
    found = window_class(values["class"], values.get("version"))
    window = found.__new__(found)
    vars(window).update(values["settings"])
    return window


def partials_to_json(partials: Sequence[Partial]) -> list[Any]:
    """Return partials as JSON values; those with a condition as an object.

    >>> partials_to_json([Partial("sum", ("x",)), Partial("sum", ("x",), "y > 1")])
    [['sum', 'x'], {'partial': ['sum', 'x'], 'where': 'y > 1'}]
    """
    plain = ([p.kind, *p.args] for p in partials)
    return [
        told if p.where is None else {"partial": told, "where": p.where}
        for p, told in zip(partials, plain, strict=True)
    ]


def _read_partial(value: Any) -> Partial:
    told, where = (value["partial"], value["where"]) if isinstance(value, dict) else (value, None)
    kind, *args = told
    return Partial(partial_kind(kind), tuple(args), where)


def _read_partials(values: list[Any]) -> tuple[Partial, ...]:
    return tuple(map(_read_partial, values))


def _output(alias: str, call: AggregateCall) -> list[Any]:
    condition = [] if call.where is None else [call.where]
    return [alias, call.function, list(call.args), list(call.parameters), *condition]


def _read_output(value: list[Any]) -> tuple[str, AggregateCall]:
    alias, function, args, parameters, *where = value
    return alias, AggregateCall(function, tuple(args), tuple(parameters), *where)


def _pairs(values: list[list[Any]]) -> tuple[tuple[Any, Any], ...]:
    return tuple((a, b) for a, b in values)


def nodes_to_json(nodes: tuple[Node, ...]) -> list[dict[str, Any]]:
    """Return the nodes as JSON values, inputs as positions in the list."""
    at = {node: i for i, node in enumerate(nodes)}
    return [_node_to_json(node, at) for node in nodes]


def _node_to_json(node: Node, at: dict[Node, int]) -> dict[str, Any]:
    inputs = [at[i] for i in node.inputs]
    match node:
        case Scan():
            return {"node": "scan", **{f.name: getattr(node, f.name) for f in fields(node)}}
        case Slice():
            edges = {
                "classes": [list(c) for c in node.edges.classes],
                "windows": [window_to_json(w) for w in node.edges.windows],
                "slicing": node.edges.slicing,
            }
            return {
                "node": "slice",
                "inputs": inputs,
                "keys": [list(k) for k in node.keys],
                "edges": edges,
                "partials": partials_to_json(node.partials),
            }
        case Roll():
            return {
                "node": "roll",
                "inputs": inputs,
                "window": window_to_json(node.window),
                "read": node.read,
                "technique": node.technique,
                "keys": [list(k) for k in node.keys],
                "partials": partials_to_json(node.partials),
            }
        case Join():
            return {"node": "join", "inputs": inputs, **_join_to_json(node)}
        case Emit():
            return {
                "node": "emit",
                "inputs": inputs,
                "query": node.query,
                "label": node.label,
                "outputs": [_output(alias, call) for alias, call in node.outputs],
                "window_columns": list(node.window_columns),
                **({} if node.exists is None else {"exists": partials_to_json([node.exists])[0]}),
            }
        case _:
            assert_never(node)


def _join_to_json(node: Join) -> dict[str, Any]:
    return {
        "sides": [
            {
                "alias": side.alias,
                "window": None if side.window is None else window_to_json(side.window),
                "early": side.early,
                "keys": [list(k) for k in side.keys],
                "partials": partials_to_json(side.partials),
            }
            for side in node.sides
        ],
        "on": [list(pair) for pair in node.on],
        "keys": [list(k) for k in node.keys],
        "partials": partials_to_json(node.partials),
    }


def nodes_from_json(values: list[dict[str, Any]]) -> tuple[Node, ...]:
    """Read nodes back."""
    nodes: list[Any] = []
    for value in values:
        inputs = value.get("inputs", ())
        if any(not 0 <= i < len(nodes) for i in inputs):
            raise ValueError(f"node {len(nodes)} reads nodes {list(inputs)}")
        nodes.append(_node_from_json(value, [nodes[i] for i in inputs]))
    return tuple(nodes)


def _node_from_json(value: dict[str, Any], inputs: list[Any]) -> Node:
    match value["node"]:
        case "scan":
            settings = {k: v for k, v in value.items() if k != "node"}
            return Scan(**{**settings, "columns": tuple(settings["columns"])})
        case "slice":
            edges = Edges(
                _pairs(value["edges"]["classes"]),
                tuple(window_from_json(w) for w in value["edges"]["windows"]),
                value["edges"]["slicing"],
            )
            keys = _pairs(value["keys"])
            return Slice(inputs[0], keys, edges, _read_partials(value["partials"]))
        case "roll":
            return Roll(
                tuple(inputs),
                window_from_json(value["window"]),
                value["read"],
                _pairs(value["keys"]),
                _read_partials(value["partials"]),
                value["technique"],
            )
        case "join":
            sides = tuple(
                JoinSide(
                    scan,
                    side["alias"],
                    None if side["window"] is None else window_from_json(side["window"]),
                    side["early"],
                    _pairs(side["keys"]),
                    _read_partials(side["partials"]),
                )
                for scan, side in zip(inputs, value["sides"], strict=True)
            )
            partials = _read_partials(value["partials"])
            return Join(sides, _pairs(value["on"]), _pairs(value["keys"]), partials)
        case "emit":
            outputs = tuple(map(_read_output, value["outputs"]))
            a, b, c = value["window_columns"]
            exists = None if "exists" not in value else _read_partial(value["exists"])
            return Emit(tuple(inputs), value["query"], value["label"], outputs, (a, b, c), exists)
        case other:
            raise QueryError(
                f"a plan of this version has no node {other!r}",
                hint="read it with the version of weft that wrote it",
            )
