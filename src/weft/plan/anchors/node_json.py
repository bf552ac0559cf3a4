"""Nodes of features as JSON and back, without loss."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from weft.aggregates import AggregateCall, Partial
from weft.plan.anchors.nodes import Features, Points, Trail
from weft.plan.anchors.query import EventFeatures
from weft.plan.nodes import Scan
from weft.window.trailing import AnchoredWindow, Trailing, TrailingRows

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
                "window": _window_to_json(t.window),
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
            _window_from_json(t["window"]),
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


def _window_to_json(window: AnchoredWindow) -> dict[str, Any]:
    return {"kind": _KINDS[type(window)], **asdict(window)}


def _window_from_json(value: dict[str, Any]) -> AnchoredWindow:
    return _WINDOWS[value["kind"]](**{k: v for k, v in value.items() if k != "kind"})


def asked_to_json(asked: EventFeatures) -> dict[str, Any]:
    """Return what is asked of a source as JSON values."""
    return {
        "source": asked.source,
        "time": asked.time,
        "keys": [list(key) for key in asked.keys],
        "where": asked.where,
        "outputs": [
            [name, _window_to_json(window), call.function, list(call.args), list(call.parameters)]
            for name, window, call in asked.outputs
        ],
    }


def asked_from_json(value: dict[str, Any]) -> EventFeatures:
    """Read back what is asked of a source."""
    return EventFeatures(
        value["source"],
        value["time"],
        tuple((column, expression) for column, expression in value["keys"]),
        value["where"],
        tuple(
            (
                name,
                _window_from_json(window),
                AggregateCall(function, tuple(args), tuple(parameters)),
            )
            for name, window, function, args, parameters in value["outputs"]
        ),
    )
