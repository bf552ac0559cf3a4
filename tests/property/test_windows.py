"""The coverage algebra against plain enumeration of instances."""

from __future__ import annotations

from math import lcm

from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.edges import composite_edges
from weft.testing.strategies import periodic_windows
from weft.window import Edges, PeriodicWindow, edge_classes

windows = periodic_windows(12)


def inside(window: PeriodicWindow, start: int, end: int) -> list[tuple[int, int]]:
    """The instances that lie wholly in `[start, end)`."""
    first = start + (window.offset_us - start) % window.slide_us
    starts = range(first, end - window.range_us + 1, window.slide_us)
    return [(start, start + window.range_us) for start in starts]


def probe(outer: PeriodicWindow, feeder: PeriodicWindow) -> list[tuple[int, int]]:
    """One period of instances of the outer window, relative to both windows."""
    period = lcm(outer.slide_us, feeder.slide_us)
    return inside(outer, -outer.range_us, period + outer.range_us)


@given(windows, st.integers(-60, 60))
def test_instances_are_those_that_hold_the_time(window: PeriodicWindow, time: int) -> None:
    expected = [
        (
            window.offset_us + m * window.slide_us,
            window.offset_us + m * window.slide_us + window.range_us,
        )
        for m in range(-120, 121)
    ]
    assert list(window.instances(time)) == [(s, e) for s, e in expected if s <= time < e]


@settings(max_examples=400)
@given(windows, windows)
def test_covers_means_that_instances_inside_add_up_to_the_whole(
    feeder: PeriodicWindow, outer: PeriodicWindow
) -> None:
    def covered(start: int, end: int) -> bool:
        found = inside(feeder, start, end)
        points = {t for s, e in found for t in range(s, e)}
        starts_and_ends = any(s == start for s, _ in found) and any(e == end for _, e in found)
        return points == set(range(start, end)) and starts_and_ends

    by_enumeration = all(covered(s, e) for s, e in probe(outer, feeder))
    larger = outer.range_us > feeder.range_us or outer == feeder
    assert feeder.covers(outer) == (by_enumeration and larger)
    if feeder.covers(outer):
        assert all(
            len(inside(feeder, s, e)) == feeder.multiplier(outer) for s, e in probe(outer, feeder)
        )


@settings(max_examples=400)
@given(windows, windows)
def test_tiles_means_that_some_instances_lie_side_by_side(
    feeder: PeriodicWindow, outer: PeriodicWindow
) -> None:
    def tiled(start: int, end: int) -> bool:
        starts = {s for s, _ in inside(feeder, start, end)}
        return (end - start) % feeder.range_us == 0 and all(
            s in starts for s in range(start, end, feeder.range_us)
        )

    assert feeder.tiles(outer) == all(tiled(s, e) for s, e in probe(outer, feeder))
    if feeder.partitions(outer):
        assert feeder.tiles(outer)
        assert feeder.is_tumbling
    if feeder.tiles(outer):
        count, distance = outer.reads(feeder)
        assert (count * feeder.range_us, distance) == (outer.range_us, feeder.range_us)


@given(windows, windows)
def test_reuses_means_that_every_instance_is_one_of_the_feeder(
    feeder: PeriodicWindow, outer: PeriodicWindow
) -> None:
    same = all((s, e) in inside(feeder, s, e) for s, e in probe(outer, feeder))
    assert feeder.reuses(outer) == same


@given(st.lists(windows, min_size=1, max_size=4), st.sampled_from(["panes", "pairs", "begins"]))
def test_every_begin_is_an_edge_and_every_end_unless_begins_only(chosen, slicing) -> None:
    period, edges = composite_edges(edge_classes(chosen, slicing))
    for window in chosen:
        for start, end in inside(window, 0, 3 * period + window.range_us):
            assert start % period in edges
            assert slicing == "begins" or end % period in edges


@given(st.lists(windows, min_size=1, max_size=4))
def test_leaving_out_redundant_classes_keeps_all_edges(chosen) -> None:
    whole = edge_classes(chosen, "pairs")
    reduced = Edges.of(chosen).classes
    period = lcm(*(m for _, m in whole))
    positions = {p for r, m in reduced for p in range(r % m, period, m)}
    assert positions == set(composite_edges(whole)[1])


def test_slices_per_window_of_panes_pairs_and_begins() -> None:
    """Panes, pairs and begins-only cut (14, 8) into 7, 3 and 2 slices, and so on."""
    expected = {(14, 8): (7, 3, 2), (5, 3): (5, 3, 2), (10, 3): (10, 7, 4), (8, 2): (4, 4, 4)}
    expected |= {(12, 4): (3, 3, 3), (7, 5): (7, 3, 2)}
    for (range_us, slide_us), counts in expected.items():
        window = PeriodicWindow(range_us, slide_us)
        found = []
        for slicing in ("panes", "pairs", "begins"):
            period, edges = composite_edges(edge_classes([window], slicing))
            inside_window = [p for p in range(range_us) if p % period in edges]
            found.append(len(inside_window))
        assert tuple(found) == counts
