"""How fast the kernels slide, answer many ranges and slice, against peers on the same arrays.

One thread unless a contender's name says otherwise. Peers: bottleneck (compiled moving windows),
DuckDB and polars (GROUP BY).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from weft.bench.frame import Bar, Case, Contender, Entry, Race
from weft.bench.suite.kernels.oracles import close, identical, moving_max, moving_sum

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from weft.bench.frame import Runner

_RANGES = 100
_SLICE_US = 5_000_000
_KEYS = 10


class Stream(NamedTuple):
    """Random values and the number of them in a window."""

    values: npt.NDArray[Any]
    n: int


def random_floats(values: int, n: int) -> Stream:
    """Draw values from [0, 1); the same ones for the same size."""
    return Stream(np.random.default_rng(17).random(values), n)


def random_integers(values: int, n: int) -> Stream:
    """Draw integers of which some are equal."""
    return Stream(np.random.default_rng(17).integers(0, 1_000_000, values), n)


def sliding(technique_name: str, operation_name: str, *, reuse: bool = False) -> Contender:
    """Slide one window over the stream by a technique of ours, perhaps into the same output."""

    def start(stream: Stream) -> Runner:
        from weft.kernels.operations import OPERATIONS
        from weft.kernels.registry import technique

        kernel = technique(technique_name, OPERATIONS[operation_name])
        out = np.empty_like(stream.values) if reuse else None
        return lambda: kernel.slide(stream.values, stream.n, out=out)

    return Contender(start)


def _raw_subtraction(*, reuse: bool) -> Contender:
    def start(stream: Stream) -> Runner:
        from weft.kernels.techniques.subtract_on_evict import slide_drifting

        kept = np.empty_like(stream.values)

        def runner() -> npt.NDArray[np.float64]:
            out = kept if reuse else np.empty_like(stream.values)
            slide_drifting(stream.values, stream.n, out)
            return out

        return runner

    return Contender(start)


def _bottleneck(function: str) -> Contender:
    def start(stream: Stream) -> Runner:
        import bottleneck

        move = getattr(bottleneck, function)
        return lambda: move(stream.values, stream.n, min_count=1)

    return Contender(start, needs=("bottleneck",))


def _windows(values: int) -> tuple[Case, ...]:
    return tuple(
        Case(f"n={n}", {"values": values, "n": n}, items=values) for n in (64, 1024, 65_536)
    )


MAX = Race(
    name="kernels/max",
    question="How fast is a sliding MAX, against compiled moving windows?",
    inputs=random_floats,
    expected=lambda stream: moving_max(*stream),
    same=identical,
    contenders={
        "two_stacks_lite": sliding("two_stacks_lite", "max_float64"),
        "daba_lite": sliding("daba_lite", "max_float64"),
        "bottleneck": _bottleneck("move_max"),
    },
    baseline="bottleneck",
    full=_windows(5_000_000),
    quick=_windows(300_000),
    bars=(Bar("two_stacks_lite", "bottleneck", 2.5), Bar("daba_lite", "bottleneck", 1.5)),
    rounds=21,
    item="value",
)

SUM = Race(
    name="kernels/sum",
    # bottleneck cannot write into an output that is there, and a sum is so cheap that new memory
    # is half of its time. It is timed as it is called; our kernels both ways, and the bars judge
    # the way a loop over batches calls them, with an output of its own.
    warm_heap=False,
    question="How fast is a sliding SUM, into a new and into a reused output?",
    inputs=random_floats,
    expected=lambda stream: moving_sum(*stream),
    same=close,
    contenders={
        "subtract_on_evict_raw": _raw_subtraction(reuse=True),
        "subtract_on_evict_raw, new output": _raw_subtraction(reuse=False),
        "two_stacks_lite": sliding("two_stacks_lite", "sum_float64", reuse=True),
        "two_stacks_lite, new output": sliding("two_stacks_lite", "sum_float64"),
        "bottleneck": _bottleneck("move_sum"),
    },
    baseline="bottleneck",
    full=_windows(5_000_000),
    quick=_windows(300_000),
    bars=(
        Bar("subtract_on_evict_raw", "bottleneck", 1.2),
        Bar("two_stacks_lite", "bottleneck", 1.0),
    ),
    rounds=21,
    item="value",
)


def evenly_spaced_ranges(n: int) -> list[int]:
    """List a hundred ranges up to n, the longest last.

    >>> evenly_spaced_ranges(1000)[:3], evenly_spaced_ranges(1000)[-1]
    ([10, 20, 30], 1000)
    """
    return [n * i // _RANGES for i in range(1, _RANGES + 1)]


def answering_ranges(technique_name: str, operation_name: str) -> Contender:
    """Answer a hundred ranges after each value by a technique of ours."""

    def start(stream: Stream) -> Runner:
        from weft.kernels.operations import OPERATIONS
        from weft.kernels.registry import technique

        kernel, counts = (
            technique(technique_name, OPERATIONS[operation_name]),
            evenly_spaced_ranges(stream.n),
        )
        return lambda: kernel.slide_ranges(stream.values, counts)

    return Contender(start)


def _each_range(
    moving: Callable[[npt.NDArray[Any], int], npt.NDArray[Any]],
) -> Callable[[Stream], npt.NDArray[Any]]:
    def expected(stream: Stream) -> npt.NDArray[Any]:
        ranges = evenly_spaced_ranges(stream.n)
        return np.stack([moving(stream.values, count) for count in ranges], axis=1)

    return expected


_RANGE_CASES: Mapping[str, Any] = {
    "full": (Case("n=1000", {"values": 20_000, "n": 1000}, items=20_000),),
    "quick": (Case("n=200", {"values": 2_000, "n": 200}, items=2_000),),
}

RANGES_MAX = Race(
    name="kernels/ranges_max",
    question="What does one structure save when a hundred MAX ranges are asked of one stream?",
    inputs=random_floats,
    expected=_each_range(moving_max),
    same=identical,
    contenders={
        name: answering_ranges(name, "max_float64")
        for name in ("naive", "flat_fat", "b_int", "flat_fit", "slick_deque")
    },
    baseline="naive",
    **_RANGE_CASES,
    bars=(Bar("slick_deque", "naive", 10.0),),
    rounds=5,
    item="value",
)

RANGES_SUM = Race(
    name="kernels/ranges_sum",
    question="What does one structure save when a hundred SUM ranges are asked of one stream?",
    inputs=random_integers,
    expected=_each_range(moving_sum),
    same=identical,
    contenders={
        name: answering_ranges(name, "sum_int64")
        for name in ("naive", "slick_deque_inv", "prefix_ring")
    },
    baseline="naive",
    **_RANGE_CASES,
    bars=(Bar("prefix_ring", "naive", 10.0),),
    rounds=5,
    item="value",
)


def event_table(events: int) -> pa.Table:
    """Draw events of ten keys, a thousand a second, in order of time."""
    rng = np.random.default_rng(17)
    columns: dict[str, Any] = {
        "ts": np.arange(events, dtype=np.int64) * 1000,
        "k": rng.integers(0, _KEYS, events).astype(np.int32),
        "v": rng.random(events),
    }
    return pa.table(columns)


Minima = tuple[Any, Any, Any]  # keys, slices, least values


def _sorted_minima(table: pa.Table) -> Minima:
    keys, slices, least = (table.column(name).to_numpy() for name in ("k", "s", "m"))
    order = np.lexsort((slices, keys))
    return keys[order], slices[order], least[order]


def _minima_by_sorting(table: pa.Table) -> Minima:
    times, keys, values = (table.column(name).to_numpy() for name in ("ts", "k", "v"))
    order = np.lexsort((times, keys))
    groups = np.stack([keys[order].astype(np.int64), times[order] // _SLICE_US])
    starts = np.flatnonzero(np.any(np.diff(groups, prepend=-1), axis=0))
    return groups[0, starts], groups[1, starts], np.minimum.reduceat(values[order], starts)


def _same_minima(expected: Minima, answer: pa.Table | Minima) -> str:
    found = answer if isinstance(answer, tuple) else _sorted_minima(answer)
    return next(filter(None, map(identical, expected, found)), "")


def _slicing(threads: int) -> Contender:
    def start(table: pa.Table) -> Runner:
        from weft.kernels.grouping.batches import Column, Request, slice_events
        from weft.kernels.grouping.edges import PeriodTable

        times, keys, values = (table.column(c).chunk(0).to_numpy() for c in ("ts", "k", "v"))
        slices = PeriodTable.of([(0, _SLICE_US)])

        def runner() -> Minima:
            request = Request("min", Column.of(values))
            batch = slice_events(times, keys, slices, [request], threads=threads)
            return batch.keys, batch.ordinals, batch.partials[0].columns

        return runner

    return Contender(start)


def _duckdb(table: pa.Table) -> Runner:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.register("t", table)
    query = f"SELECT k, ts // {_SLICE_US} AS s, MIN(v) AS m FROM t GROUP BY 1, 2"
    return lambda: connection.sql(query).to_arrow_table()


def _polars(table: pa.Table) -> Runner:
    import polars as pl

    frame = pl.DataFrame(table)

    def runner() -> pa.Table:
        keys = [pl.col("k"), (pl.col("ts") // _SLICE_US).alias("s")]
        return frame.group_by(keys).agg(pl.col("v").min().alias("m")).to_arrow()

    return runner


SLICING = Race(
    name="kernels/slicing",
    question="Is cutting events into (key, slice) minima as fast as GROUP BY of a database?",
    inputs=event_table,
    expected=_minima_by_sorting,
    same=_same_minima,
    contenders={
        "weft_1_thread": _slicing(1),
        "weft_2_threads": _slicing(2),
        "duckdb_2_threads": Contender(_duckdb, needs=("duckdb",)),
        "polars": Contender(_polars, needs=("polars",)),
    },
    baseline="duckdb_2_threads",
    full=(Case("10M events", {"events": 10_000_000}, items=10_000_000),),
    quick=(Case("500k events", {"events": 500_000}, items=500_000),),
    bars=(Bar("weft_1_thread", "duckdb_2_threads", 1.0),),
    item="event",
)

ENTRIES: tuple[Entry, ...] = (MAX, SUM, RANGES_MAX, RANGES_SUM, SLICING)
