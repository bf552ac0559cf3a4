"""What tests ask of windows at anchors: aggregates, windows of every magnitude, equal tables."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import weft
from weft.engines.local.anchors.rolling_rows import TIME, RollingRows
from weft.testing.strategies import DECOMPOSABLE, HOLISTIC

CONCATENATED = weft.agg.custom(
    "joined_in_time",
    lift=lambda i: "" if i is None else f"{i},",
    combine=lambda a, b: a + b,
    lower=lambda text: text,
    identity="",
    commutative=False,
    idempotent=False,
)
CALLS = (*DECOMPOSABLE, *HOLISTIC, weft.agg.min("k"), weft.agg.sum("x * 2"), CONCATENATED("i"))
ROW = "row"  # numbers the rows of a stream: the order of those at one instant
UNITS = (1, 1_000, 60_000_000, 86_400_000_000 * 30)  # from microseconds to months


def windows(unit_us: int) -> st.SearchStrategy[dict[str, Any]]:
    one = st.one_of(
        st.integers(1, 90).map(lambda n: n * unit_us),
        st.integers(1, 90).map(lambda n: n * unit_us + 1),
        st.integers(1, 5).map(weft.rows),
    )
    return st.lists(one, min_size=1, max_size=4).map(
        lambda found: {f"w{i}": window for i, window in enumerate(found)}
    )


def assert_same(got: pa.Table, want: pa.Table, aggs: dict[str, Any]) -> None:
    assert got.schema.names == want.schema.names
    for name in want.column_names:
        call = aggs.get(name.partition("_")[0])
        error = max(1e-9, 2 * call.aggregate.relative_error) if call else 0.0
        pairs = zip(got[name].to_pylist(), want[name].to_pylist(), strict=True)
        for place, (a, b) in enumerate(pairs):
            if isinstance(a, float) and isinstance(b, float) and call:
                near = 1e-6 if "var" in call.function else call.aggregate.absolute_error
                close = math.isclose(a, b, rel_tol=error, abs_tol=near)
                equal = (math.isnan(a) and math.isnan(b)) or close
            else:
                equal = repr(a) == repr(b) or a == b  # NaN is NaN, in lists too
            assert equal, f"{name} of row {place} is {a!r}, not {b!r}"


def described(rows: pa.Table, asked: dict[str, Any]) -> RollingRows:
    """Describe a stream whose keys and arguments are columns; a filter is the column `event`."""
    plan = weft.rolling(rows, time=TIME, explain=True, **asked)
    made = RollingRows.of_columns(plan, rows.schema, (ROW,))
    # The type of a custom aggregate is what its functions give: here text.
    types = [pa.string() if pa.types.is_null(type) else type for type in made.types]
    return replace(made, types=tuple(types))


def assert_same_by_id(got: pa.Table, want: pa.Table) -> None:
    """Compare tables whose rows are numbered; floats nearly."""
    got, want = got.sort_by("id"), want.sort_by("id")
    assert got.column_names == want.column_names
    for name in want.column_names:
        pairs = zip(got[name].to_pylist(), want[name].to_pylist(), strict=True)
        for place, (a, b) in enumerate(pairs):
            equal = a == b or (a != a and b != b)
            if isinstance(a, float) and isinstance(b, float):
                equal = equal or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
            assert equal, f"{name} of row {place} is {a!r}, not {b!r}"
