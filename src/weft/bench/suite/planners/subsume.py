"""Subsumption: how many groups random windows fall into, beside the fewest there can be.

The three classes of windows of Patroumpas & Sellis, subsuming multiple sliding windows for shared
stream computation (ADBIS 2011), whose Figure 10 shows "just a handful of groups" for each.
"""

from __future__ import annotations

from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING, get_args

from weft.bench.frame import Column, Entry, Limit, Panel, Row, Sheet, Table
from weft.errors import InternalError
from weft.generate.workloads import SubsumptionClass, subsumption_windows
from weft.planners.subsume.groups import check_groups, minimum_groups, subsume_windows
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.planners.subsume.groups import Group

_COUNTS = (1_000, 2_000, 5_000, 10_000)
_QUICK_COUNTS = (200, 1_000)
_SEEDS = 5
_KEPT = {"tuples": False, "aggregates": True}


def windows_ending_together(
    kind: SubsumptionClass, count: int, seed: int, *, whole_slides: bool
) -> list[PeriodicWindow]:
    """Draw windows that end at multiples of their slides, as those of the paper do."""
    return [
        PeriodicWindow(w.range_us, w.slide_us, -w.range_us % w.slide_us)
        for w in subsumption_windows(kind, count, seed, whole_slides=whole_slides)
    ]


def groups_are_sound(
    groups: Sequence[Group], wanted: Sequence[PeriodicWindow], *, for_aggregates: bool
) -> str:
    """Check that the groups keep their promises and hold each window that is wanted."""
    try:
        check_groups(groups, for_aggregates=for_aggregates)
    except InternalError as error:
        return error.message
    placed = {window for group in groups for window in group.windows}
    return "" if placed == set(wanted) else "the groups hold other windows than are wanted"


def _row(kind: SubsumptionClass, count: int, kept: str, wrong: list[str], seeds: int) -> Row:
    whole = _KEPT[kept]
    found_counts, fewest_counts, found_seconds, fewest_seconds = [], [], [], []
    for seed in range(seeds):
        wanted = windows_ending_together(kind, count, seed, whole_slides=whole)
        start = perf_counter()
        found = subsume_windows(wanted, for_aggregates=whole)
        middle = perf_counter()
        fewest = minimum_groups(wanted, for_aggregates=whole)
        fewest_seconds.append(perf_counter() - middle)
        found_seconds.append(middle - start)
        differences = (groups_are_sound(g, wanted, for_aggregates=whole) for g in (found, fewest))
        wrong.extend(
            f"{kind}, {count} windows, seed {seed}: {text}" for text in differences if text
        )
        if len(fewest) > len(found):
            wrong.append(f"{kind}, {count} windows: {len(fewest)} groups are not the fewest")
        found_counts.append(len(found))
        fewest_counts.append(len(fewest))
    return {
        "class": kind,
        "windows": count,
        "kept": kept,
        "groups": fmean(found_counts),
        "fewest": fmean(fewest_counts),
        "seconds": max(found_seconds),
        "seconds, fewest": max(fewest_seconds),
    }


def _groups(quick: bool) -> Sheet:
    wrong: list[str] = []
    rows = tuple(
        _row(kind, count, kept, wrong, 2 if quick else _SEEDS)
        for kept in _KEPT
        for kind in get_args(SubsumptionClass)
        for count in (_QUICK_COUNTS if quick else _COUNTS)
    )
    return Sheet(rows, tuple(wrong), tuple(_panel(rows, kept) for kept in _KEPT))


def _panel(rows: tuple[Row, ...], kept: str) -> Panel:
    drawn: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["kept"] != kept:
            continue
        for series, column in (("heuristic", "groups"), ("fewest", "fewest")):
            windows, groups = row["windows"], row[column]
            assert isinstance(windows, int)
            assert isinstance(groups, float)
            drawn.setdefault(f"{row['class']}, {series}", []).append((float(windows), groups))
    lines = {
        series: (tuple(x for x, _ in points), tuple(y for _, y in points))
        for series, points in drawn.items()
    }
    return Panel(f"groups that keep {kept}", "windows", "groups", lines, log_x=True)


GROUPS = Table(
    name="planners/subsume_groups",
    question="How many groups do thousands of windows need, and how many did the heuristic make?",
    columns=(
        Column("class"),
        Column("windows", ",d"),
        Column("kept"),
        Column("groups", ".1f"),
        Column("fewest", ".1f"),
        Column("seconds", ".3f"),
        Column("seconds, fewest", ".3f"),
    ),
    compute=_groups,
    limits=(Limit("seconds", at_most=1, rows={"windows": "10000"}, at_quick=False),),
)

ENTRIES: tuple[Entry, ...] = (GROUPS,)
