"""Payments of users over a month, labels of the same users, and answers that can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from weft.aggregates import AggregateCall

HOUR_US = 3_600_000_000
MONTH_US = 30 * 24 * HOUR_US
_SEED = 23
RANGES_H = (1, 6, 24, 168)
# Sums are added up in another order by everyone.
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Payments:
    """Events in order of time, labels in any, and the ranges asked for."""

    events: pa.Table
    labels: pa.Table
    ranges_us: tuple[int, ...]

    @property
    def windows(self) -> Mapping[str, int]:
        """The windows, named by their place."""
        return {f"w{place}": range_us for place, range_us in enumerate(self.ranges_us)}

    @property
    def aggs(self) -> Mapping[str, AggregateCall]:
        """What is asked of every window."""
        from weft import agg

        calls = {"lo": agg.min("amount"), "total": agg.sum("amount"), "mean": agg.avg("amount")}
        return {**calls, "n": agg.count()}


@cache
def _table(rows: int, users: int, seed: int, *, sorted_by_time: bool) -> Any:
    import numpy as np
    import pyarrow as pa

    draw = np.random.default_rng(seed)
    times = draw.integers(0, MONTH_US, rows)
    if sorted_by_time:
        times.sort()
    return pa.table(
        {
            "id": pa.array(np.arange(rows)),
            "user": pa.array(draw.integers(0, users, rows)),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "amount": pa.array(draw.normal(50.0, 20.0, rows)),
        }
    )


def payments(events: int, users: int, windows: int = 4, labels: int = 0) -> Payments:
    """Make payments, and labels if any; the first windows of an hour to a week."""
    made = _table(events, users, _SEED, sorted_by_time=True)
    points = _table(labels, users, _SEED + 1, sorted_by_time=False).drop_columns(["amount"])
    return Payments(made, points, tuple(h * HOUR_US for h in RANGES_H[:windows]))


def payments_in_frames(events: int, users: int, frame: int) -> Payments:
    """Make payments, and one window that holds about `frame` of a user's."""
    made = payments(events, users, windows=1)
    return Payments(made.events, made.labels, (frame * MONTH_US * users // events,))


def same_features(expected: Any, answer: Any) -> str:
    """Say which feature differs first; rows come in any order, and have an `id`.

    >>> import pyarrow as pa
    >>> same_features(pa.table({"id": [1, 2], "n": [3, 4]}), pa.table({"n": [4, 3], "id": [2, 1]}))
    ''
    """
    import numpy as np
    import pyarrow as pa

    want, got = (pa.table(rows).sort_by("id") for rows in (expected, answer))
    if want.num_rows != got.num_rows:
        return f"expected {want.num_rows} rows, got {got.num_rows}"
    names = [name for name in want.column_names if name not in ("user", "ts", "amount")]
    for name in names:
        a, b = (
            t[name].cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
            for t in (want, got)
        )
        wrong = ~np.isclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            return f"{name} of row {at}: expected {a[at]}, got {b[at]}"
    return ""
