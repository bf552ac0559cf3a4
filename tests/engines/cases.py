"""Cases taken from other systems' tests: events, a query, expected rows.

They are not part of the project; the test looks for them beside the checkout, or where the
environment variable WEFT_CASES points to, and is skipped where they are absent.
"""

from __future__ import annotations

import csv
import json
import math
import os
from pathlib import Path
from typing import Any

import pyarrow as pa

import weft
from weft.window import CountingWindow, SessionWindow

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("WEFT_CASES", ROOT.parent / "shared" / "cases"))
_UNIT_US = {"us": 1, "ms": 1000, "s": 1_000_000}
_FUNCTIONS = {"count_star", "count", "sum", "min", "max", "avg", "median", "first", "last"}


class OutOfScope(Exception):
    """The case asks for something that weft does not have, or means differently."""


def load() -> list[dict[str, Any]]:
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        found += json.loads(path.read_text())
    return found


def events(case: dict[str, Any]) -> list[dict[str, Any]]:
    if "events" in case:
        rows = case["events"]
    else:
        spec = case["events_file"]
        convert = {"int": int, "float": float, "str": str}
        with (FOLDER / spec["path"]).open() as file:
            rows = [
                {c: convert[t](row[c]) if row[c] != "" else None for c, t in spec["types"].items()}
                for row in csv.DictReader(file)
            ]
    unit = _UNIT_US[case["time_unit"]]
    return [
        {**row, "ts": None if row["ts"] is None else row["ts"] * unit}
        for row in rows
        if not row.get("expect_dropped")
    ]


def table(rows: list[dict[str, Any]]) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["ts"]
    columns = {name: pa.array([row.get(name) for row in rows]) for name in names}
    columns["ts"] = pa.array([row["ts"] for row in rows], pa.int64()).cast(
        pa.timestamp("us", "UTC")
    )
    return pa.table(columns)


def query(case: dict[str, Any]) -> weft.Query:
    asked = case["query"]
    unit = _UNIT_US[case["time_unit"]]
    if asked.get("late") and not _nothing_is_late(case):
        raise OutOfScope("late rows are dropped by another system's rule, window by window")
    for spec in asked["windows"]:
        if spec.get("added_after_events") or spec.get("added_after_watermark"):
            raise OutOfScope("a window is added while the stream runs")
    return weft.Query(
        "case",
        source="events",
        time="ts",
        keys=asked.get("keys", []),
        where=_conjunction(asked.get("filter")),
        windows={str(i): window(w, asked, unit) for i, w in enumerate(asked["windows"])},
        aggs={a["as"]: call(a) for a in asked["aggregates"]},
    )


def _nothing_is_late(case: dict[str, Any]) -> bool:
    """True when no row is older than the watermark of the case's system when it arrives."""
    late = case["query"]["late"]
    delay = late.get("delay", 0) + late.get("lateness", 0) + late.get("grace", 0)
    newest, mark, batch = -math.inf, -math.inf, None
    for row in case.get("events", []):
        if row["ts"] is None or row.get("expect_dropped"):
            continue
        if late["policy"] != "batch" or row.get("batch") != batch:
            mark, batch = newest - delay, row.get("batch")
        if row["ts"] < mark:
            return False
        newest = max(newest, row["ts"])
    return True


def window(spec: dict[str, Any], asked: dict[str, Any], unit: int) -> Any:
    if spec.get("closed", "left") != "left":
        raise OutOfScope("windows closed on the right")
    if asked.get("time_zone"):
        return _in_zone(spec, asked["time_zone"], unit)
    offset = (spec.get("offset") or 0) * unit
    match spec["kind"]:
        case "tumbling":
            return weft.tumbling(spec["range"] * unit, offset)
        case "hopping":
            return weft.hopping(spec["range"] * unit, spec["slide"] * unit, offset)
        case "cumulate":
            if offset:
                raise OutOfScope("a cumulating window with an offset")
            return weft.cumulating(spec["range"] * unit, spec["slide"] * unit)
        case "session":
            if spec.get("merge", "touch") != "touch":
                raise OutOfScope("sessions that do not merge when they touch")
            return weft.session(spec["gap"] * unit)
        case "count":
            if spec.get("order", "event_time") != "event_time":
                raise OutOfScope("count windows in the order of arrival")
            return weft.counting(spec["range"], spec.get("slide"))
        case other:
            raise OutOfScope(f"weft has no {other} windows")


def _in_zone(spec: dict[str, Any], zone: str, unit: int) -> Any:
    if spec["kind"] == "tumbling" and spec["range"] * unit == 86_400_000_000:
        return weft.calendar("day", zone)
    raise OutOfScope("windows aligned to local time that are not calendar units")


def call(spec: dict[str, Any]) -> Any:
    if spec["fn"] not in _FUNCTIONS:
        raise OutOfScope(f"weft has no aggregate {spec['fn']}")
    condition = _conjunction(spec.get("filter"))
    column = spec.get("column")
    if spec["fn"] == "count_star":
        return weft.agg.count() if condition is None else weft.agg.count(_when(condition, "1"))
    argument = f"`{column}`" if condition is None else _when(condition, f"`{column}`")
    if spec.get("distinct"):
        if spec["fn"] != "count":
            raise OutOfScope(f"{spec['fn']} of distinct values")
        return weft.agg.count_distinct(argument)
    return getattr(weft.agg, spec["fn"])(argument)


def _when(condition: str, value: str) -> str:
    return f"CASE WHEN {condition} THEN {value} END"


def _conjunction(conditions: list[list[Any]] | None) -> str | None:
    if not conditions:
        return None
    texts = []
    for column, operator, constant in conditions:
        sign = {"==": "=", "!=": "<>"}.get(operator, operator)
        value = f"'{constant}'" if isinstance(constant, str) else constant
        texts.append(
            f"`{column}` IS NULL" if operator == "is_null" else f"`{column}` {sign} {value}"
        )
    return " AND ".join(texts)


def result_rows(case: dict[str, Any], asked: weft.Query, result: pa.Table) -> list[dict[str, Any]]:
    """Bring weft's rows to the form of the case: its time unit, its filters on results."""
    unit = _UNIT_US[case["time_unit"]]
    spec = case["query"]
    label, start, end = asked.window_columns
    whole = result.set_column(
        result.schema.get_field_index(start), start, result[start].cast(pa.int64())
    )
    whole = whole.set_column(result.schema.get_field_index(end), end, result[end].cast(pa.int64()))
    rows = []
    for row in whole.to_pylist():
        index = int(row[label])
        kind = dict(asked.windows)[row[label]]
        made = {
            "window": index,
            "key": [row[name] for name, _ in asked.keys],
            "values": {alias: row[alias] for alias, _ in asked.aggs},
        }
        if not isinstance(kind, CountingWindow):  # weft gives times, the cases give row numbers
            made["window_start"] = row[start] // unit
            made["window_end"] = row[end] // unit
            if (
                isinstance(kind, SessionWindow)
                and spec["windows"][index].get("end") == "last_event"
            ):
                made["window_end"] -= kind.gap_us // unit
        rows.append(made)
    return [row for row in rows if _kept(row, spec)]


def _kept(row: dict[str, Any], spec: dict[str, Any]) -> bool:
    first = spec.get("min_window_start")
    if first is not None and row.get("window_start", first) < first:
        return False
    until = spec.get("emit_until")
    if until is not None and row.get("window_end", until) > until:
        return False
    compare = {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
        "==": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
    }
    return all(
        row["values"][c] is not None and compare[op](row["values"][c], v)
        for c, op, v in spec.get("having") or []
    )


def same(a: Any, b: Any) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def matches(expected: dict[str, Any], row: dict[str, Any]) -> bool:
    fields = ("window", "window_start", "window_end")
    if any(expected.get(f) is not None and f in row and expected[f] != row[f] for f in fields):
        return False
    if "key" in expected and not same(expected["key"], row["key"]):
        return False
    return all(same(v, row["values"].get(k)) for k, v in expected.get("values", {}).items())


def problems(case: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """Compare as the case says: exactly these rows, or at least these."""
    found = []
    count = case.get("expected_row_count")
    if count is not None and len(rows) != count:
        found.append(f"{len(rows)} rows instead of {count}")
    pool = list(rows)
    for expected in case.get("expected", []):
        hit = next((i for i, row in enumerate(pool) if matches(expected, row)), None)
        if hit is None:
            found.append(f"missing {expected}")
        else:
            pool.pop(hit)
    if case.get("match", "exact") == "exact" and count is None and pool:
        found.append(f"extra {pool[:3]}")
    return found + [
        f"should be empty: {absent}"
        for absent in case.get("absent", [])
        if any(all(row.get(k) == v for k, v in absent.items()) for row in rows)
    ]
