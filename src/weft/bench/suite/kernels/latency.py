"""How even the slides of a technique are: the slowest stretch, and the spread of single answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft.bench.frame import Column, Entry, Limit, Panel, Row, Sheet, Table
from weft.bench.suite.kernels.oracles import identical, moving_max

if TYPE_CHECKING:
    import numpy.typing as npt

_STRETCH = 1000
_PASSES = 7
# In the order of Figure 14 of Shein & Chrysanthis, then what has come since.
ANSWERING = (
    "naive", "flat_fat", "b_int", "flat_fit", "two_stacks", "daba", "slick_deque",
    "two_stacks_lite", "daba_lite",
)  # fmt: skip


def _stream(values: int) -> npt.NDArray[np.float64]:
    return np.random.default_rng(29).random(values)


def _stretches(quick: bool) -> Sheet:
    from weft.bench.suite.kernels.probes import time_stretches
    from weft.kernels.operations import MAX_FLOAT64

    n, values = (16_384, _stream(300_000)) if quick else (65_536, _stream(2_000_000))
    expected = moving_max(values, n)
    rows: list[Row] = []
    wrong: list[str] = []
    lines: dict[str, Any] = {}
    for name in ("two_stacks_lite", "daba_lite"):
        timed = time_stretches(name, MAX_FLOAT64, values, n, stretch=_STRETCH, passes=_PASSES)
        if difference := identical(expected[: len(timed.answers)], timed.answers):
            wrong.append(f"{name}: {difference}")
        per_slide = timed.stretch_ns / _STRETCH
        median, slowest = float(np.median(per_slide)), float(per_slide.max())
        rows.append(
            {
                "technique": name,
                "n": n,
                "median ns/slide": median,
                "slowest ns/slide": slowest,
                "slowest / median": slowest / median,
            }
        )
        slides = np.arange(len(per_slide)) * float(_STRETCH)
        lines[name] = (tuple(slides.tolist()), tuple(per_slide.tolist()))
    panel = Panel(
        f"stretches of {_STRETCH} slides, n = {n}", "slide", "ns per slide", lines, log_y=True
    )
    return Sheet(tuple(rows), tuple(wrong), (panel,))


STRETCHES = Table(
    name="kernels/latency",
    question="Does DABA-lite stay even where TwoStacks-lite stops to flip its whole window?",
    columns=(
        Column("technique"),
        Column("n", ",d"),
        Column("median ns/slide", ".3g"),
        Column("slowest ns/slide", ".3g"),
        Column("slowest / median", ".2f"),
    ),
    compute=_stretches,
    limits=(
        Limit("slowest / median", at_most=3, rows={"technique": "daba_lite"}, at_quick=False),
        Limit(
            "slowest / median", at_least=3, rows={"technique": "two_stacks_lite"}, at_quick=False
        ),
    ),
)


def _single_answers(quick: bool) -> Sheet:
    from weft.bench.suite.kernels.probes import time_stretches
    from weft.kernels.operations import MAX_FLOAT64

    n, values = (256, _stream(5_000)) if quick else (1024, _stream(30_000))
    expected = moving_max(values, n)
    rows: list[Row] = []
    wrong: list[str] = []
    boxes: dict[str, Any] = {}
    for name in ANSWERING:
        timed = time_stretches(name, MAX_FLOAT64, values, n, stretch=1, passes=_PASSES)
        if difference := identical(expected, timed.answers):
            wrong.append(f"{name}: {difference}")
        least, low, median, high, greatest = (
            float(x) for x in np.percentile(timed.stretch_ns, (0, 25, 50, 75, 100))
        )
        boxes[name] = (least, low, median, high, greatest)
        rows.append(
            {
                "technique": name,
                "least ns": least,
                "25 %": low,
                "median": median,
                "75 %": high,
                "99.9 %": float(np.percentile(timed.stretch_ns, 99.9)),
                "greatest ns": greatest,
            }
        )
    panel = Panel(f"MAX, n = {n}", "", "ns per answer", boxes=boxes, log_y=True)
    notes = (
        "every answer includes two readings of the clock, about 25 ns",
        "Shein & Chrysanthis, Figure 14: spikes of SlickDeque 283 % below the next best on average",
    )
    return Sheet(tuple(rows), tuple(wrong), (panel,), notes)


SINGLE_ANSWERS = Table(
    name="kernels/latency_distribution",
    question="How long does one answer take, at best, mostly and at worst?",
    columns=(
        Column("technique"),
        Column("least ns", ",.0f"),
        Column("25 %", ",.0f"),
        Column("median", ",.0f"),
        Column("75 %", ",.0f"),
        Column("99.9 %", ",.0f"),
        Column("greatest ns", ",.0f"),
    ),
    compute=_single_answers,
)

ENTRIES: tuple[Entry, ...] = (STRETCHES, SINGLE_ANSWERS)
