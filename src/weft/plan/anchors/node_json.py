"""Nodes of features as JSON and back, without loss."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from weft.aggregates import AggregateCall, Partial
from weft.plan.anchors.nodes import Features, Points, Trail
from weft.plan.nodes import Scan
from weft.window.trailing import Trailing, TrailingRows

_WINDOWS: dict[str, type[Trailing] | type[TrailingRows]] = {
    "trailing": Trailing,
    "trailing_rows": TrailingRows,
}
_KINDS = {cls: kind for kind, cls in _WINDOWS.items()}


def nodes_to_json(features: Features) -> dict[str, Any]:
    """Return the nodes as JSON values."""
    scans = list(dict.fromkeys(trail.events for trail in features.trails))
    return {
        "points": asdict(features.trails[0].points),
        "scans": [{f.name: getattr(s, f.name) for f in fields(s)} for s in scans],
        "trails": [
            {
                "events": scans.index(t.events),
                "window": {"kind": _KINDS[type(t.window)], **asdict(t.window)},
                "keys": [list(key) for key in t.keys],
                "partials": [[p.kind, *p.args] for p in t.partials],
                "techniques": list(t.techniques),
            }
            for t in features.trails
        ],
        "outputs": [
            [name, at, call.function, list(call.args), list(call.parameters)]
            for name, at, call in features.outputs
        ],
    }


def features_from_json(value: dict[str, Any]) -> Features:
    """Read nodes back."""
    points = Points(**value["points"])
    scans = [Scan(**{**scan, "columns": tuple(scan["columns"])}) for scan in value["scans"]]
    trails = tuple(
        Trail(
            scans[t["events"]],
            points,
            _WINDOWS[t["window"]["kind"]](**{k: v for k, v in t["window"].items() if k != "kind"}),
            tuple((column, expression) for column, expression in t["keys"]),
            tuple(Partial(kind, tuple(args)) for kind, *args in t["partials"]),
            tuple(t["techniques"]),
        )
        for t in value["trails"]
    )
    outputs = tuple(
        (name, at, AggregateCall(function, tuple(args), tuple(parameters)))
        for name, at, function, args, parameters in value["outputs"]
    )
    return Features(trails, outputs)
