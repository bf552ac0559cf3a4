"""The final aggregation techniques side by side: combines, space, and throughput.

Table 2 and Figures 11 and 12 of Shein & Chrysanthis, multi-query optimization of incrementally
evaluated sliding-window aggregations (IEEE TKDE), measured on our kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft.bench.frame import (
    Bar,
    Case,
    Column,
    Contender,
    Entry,
    Limit,
    Panel,
    Race,
    Row,
    Sheet,
    Table,
)
from weft.bench.suite.kernels.latency import ANSWERING
from weft.bench.suite.kernels.oracles import identical, moving_max, moving_sum
from weft.bench.suite.kernels.speed import Stream, random_floats, sliding
from weft.techniques import TECHNIQUES

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft.bench.frame import Runner


class Published(NamedTuple):
    """A line of Table 2: combines per slide on average and at worst, for all ranges, and space."""

    amortized: str
    worst: str
    all_ranges: str
    space: str


_PUBLISHED: dict[str, Published] = {
    "naive": Published("n", "n", "n^2", "n"),
    "flat_fat": Published("log n", "log n", "n log n", "2n"),
    "b_int": Published("log n", "log n", "n log n", "2n"),
    "flat_fit": Published("3", "n", "3n", "2n"),
    "two_stacks": Published("3", "n", "-", "2n"),
    "daba": Published("5", "8", "-", "2n"),
    "slick_deque_inv": Published("2", "2", "2n", "n"),
    "slick_deque": Published("<2", "n", "n", "2..2n"),
}
# Not in the published table.
_NEWER = ("two_stacks_lite", "daba_lite", "subtract_on_evict", "prefix_ring")
_INVERTIBLE = ("slick_deque_inv", "subtract_on_evict", "prefix_ring")


def _complexity(quick: bool) -> Sheet:
    from weft.bench.suite.kernels.probes import count_combines
    from weft.kernels.operations import COUNT, MAX_INT64

    n = 64 if quick else 256
    values = np.random.default_rng(31).integers(0, 1_000_000_000, 40 * n)
    rows: list[Row] = []
    wrong: list[str] = []
    for name in (*_PUBLISHED, *_NEWER):
        operation = COUNT if name in _INVERTIBLE else MAX_INT64
        moving = moving_sum if name in _INVERTIBLE else moving_max
        counted = count_combines(name, operation, values, n)
        if difference := identical(moving(values, n), counted.answers):
            wrong.append(f"{name}: {difference}")
        steady = counted.combines[4 * n :]
        published = _PUBLISHED.get(name, Published("", "", "", ""))
        row: dict[str, Any] = {
            "technique": name,
            "combines": float(steady.mean()),
            "formula": float(TECHNIQUES[name].combines_per_slide(n)),
            "paper": published.amortized,
            "worst": int(steady.max()),
            "paper: worst": published.worst,
            "all": None,
            "paper: all": published.all_ranges,
            "words/n": counted.words / n,
            "paper: space": published.space,
        }
        if TECHNIQUES[name].several_ranges:
            row["all"], difference = _all_ranges(name, operation, values, n)
            wrong.extend([f"{name}, all ranges: {difference}"] if difference else [])
        rows.append(row)
    notes = (
        f"n = {n}; combines per slide: on average, at worst, and when all n ranges are asked",
        "the words include positions and pointers, not partials alone",
        "flat_fat reads its root when the combine commutes; its formula is for one that does not",
    )
    return Sheet(tuple(rows), tuple(wrong), notes=notes)


def _all_ranges(name: str, operation: Any, values: npt.NDArray[Any], n: int) -> tuple[float, str]:
    from weft.bench.suite.kernels.probes import count_all_ranges

    combines, answers = count_all_ranges(name, operation, values[: 8 * n], n)
    moving = moving_sum if name in _INVERTIBLE else moving_max
    every = [moving(values[: 8 * n], count)[2 * n :] for count in range(n, 0, -1)]
    return combines, identical(np.stack(every, axis=1), answers)


COMPLEXITY = Table(
    name="kernels/complexity",
    question="Do the techniques combine as often as Table 2 of Shein & Chrysanthis says?",
    columns=(
        Column("technique"),
        Column("combines", ".3f"),
        Column("formula", ".3f"),
        Column("paper", published=True),
        Column("worst", "d"),
        Column("paper: worst", published=True),
        Column("all", ",.0f"),
        Column("paper: all", published=True),
        Column("words/n", ".2f"),
        Column("paper: space", published=True),
    ),
    compute=_complexity,
    limits=(
        Limit("combines", at_most=3, rows={"technique": "two_stacks*"}),
        Limit("combines", at_most=3, rows={"technique": "flat_fit"}),
        Limit("combines", at_most=2, rows={"technique": "slick_deque*"}),
        Limit("worst", at_most=8, rows={"technique": "daba"}),
        Limit("worst", at_most=6, rows={"technique": "daba_lite"}),
    ),
)


def _throughput_panel(title: str, unit: str) -> Any:
    def panels(rows: tuple[Row, ...]) -> tuple[Panel, ...]:
        lines: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {}
        for row in rows:
            name, n, speed = str(row["contender"]), str(row["case"])[2:], row[f"million {unit}s/s"]
            assert isinstance(speed, int | float)
            xs, ys = lines.get(name, ((), ()))
            lines[name] = (*xs, float(n)), (*ys, float(speed))
        return (
            Panel(
                title, "values in the window", f"million {unit}s/s", lines, log_x=True, log_y=True
            ),
        )

    return panels


def _cases(sizes: dict[int, int]) -> tuple[Case, ...]:
    return tuple(
        Case(f"n={n}", {"values": values, "n": n}, items=values) for n, values in sizes.items()
    )


THROUGHPUT = Race(
    name="kernels/throughput",
    question="Which technique answers one MAX window fastest, and for which window sizes?",
    inputs=random_floats,
    expected=lambda stream: moving_max(*stream),
    same=identical,
    contenders={name: sliding(name, "max_float64") for name in ANSWERING},
    baseline="naive",
    full=_cases(dict.fromkeys((4, 16, 64, 256, 1024, 4096, 16_384), 100_000)),
    quick=_cases(dict.fromkeys((4, 64, 1024), 20_000)),
    bars=(
        Bar("slick_deque", "naive", 1.0, cases="n=????"),
        Bar("two_stacks_lite", "slick_deque", 1.0),
    ),
    rounds=5,
    item="answer",
    panels=_throughput_panel("one window, MAX", "answer"),
)


def every_range(technique_name: str) -> Contender:
    """Answer every range from 1 to n after each value."""

    def start(stream: Stream) -> Runner:
        from weft.kernels.operations import MAX_FLOAT64
        from weft.kernels.registry import technique

        kernel = technique(technique_name, MAX_FLOAT64)
        ranges = list(range(stream.n, 0, -1))
        return lambda: kernel.slide_ranges(stream.values, ranges)

    return Contender(start)


def _every_suffix(stream: Stream) -> Runner:
    from weft.kernels.operations import MAX_FLOAT64
    from weft.kernels.ranges.suffix_scan import suffixes

    ends = np.arange(1, len(stream.values) + 1)
    return lambda: suffixes(stream.values, ends, np.arange(stream.n, 0, -1), MAX_FLOAT64)


def _every_max(stream: Stream) -> npt.NDArray[Any]:
    return np.stack([moving_max(stream.values, n) for n in range(stream.n, 0, -1)], axis=1)


THROUGHPUT_ALL_RANGES = Race(
    name="kernels/throughput_all_ranges",
    question="Which technique is fastest when every range up to the window is asked?",
    inputs=random_floats,
    expected=_every_max,
    same=identical,
    contenders={
        **{n: every_range(n) for n in ("naive", "flat_fat", "b_int", "flat_fit", "slick_deque")},
        "suffix_scan": Contender(_every_suffix),
    },
    baseline="naive",
    full=_cases({4: 200_000, 16: 100_000, 64: 50_000, 256: 10_000, 1024: 2_000}),
    quick=_cases({4: 10_000, 64: 2_000}),
    bars=(Bar("slick_deque", "flat_fit", 1.0), Bar("slick_deque", "naive", 10.0, cases="n=1024")),
    rounds=5,
    item="slide",
    panels=_throughput_panel("all ranges up to the window, MAX", "slide"),
)

ENTRIES: tuple[Entry, ...] = (COMPLEXITY, THROUGHPUT, THROUGHPUT_ALL_RANGES)
