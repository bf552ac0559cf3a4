"""What kernels do, as the model counts it."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.aggregates import Partial
from weft.cost.batch import kernels
from weft.cost.batch.kernels import KernelWork
from weft.cost.volumes import Volumes
from weft.engines.local.windows.slices import edges_as_cut, slices_of_edges
from weft.kernels.grouping import dense, edges
from weft.kernels.grouping.slices import EdgeHorizon, slices_of
from weft.plan.nodes import FOLD, RANGES, Emit, Roll, Scan, Slice
from weft.statistics import Statistics
from weft.techniques import INCREMENTAL
from weft.window import Edges, tumbling

SPAN_US = 3_600_000_000


def hashes(keys: int, events: int, *ranges_us: int) -> bool:
    """Tell whether the model lets events of an hour be hashed for the slices of windows."""
    known = Statistics(rate=events / 3600, keys=keys, events=events)
    counted = KernelWork("local", Volumes(known, SPAN_US)).folded(
        (Partial("count_rows", ()),), 1.0, Edges.of(map(tumbling, ranges_us))
    )
    return ("local", "hash_event") in counted


def test_the_model_hashes_where_the_kernels_do() -> None:
    assert kernels.TABLE_EDGES == edges.TABLE_EDGES
    assert kernels.DENSE_ALWAYS == dense.DENSE_ALWAYS
    assert kernels.DENSE_PER_EVENT == dense.DENSE_PER_ROW


@pytest.mark.parametrize(
    ("keys", "range_us"), [(10, 1_000_000), (5_000, 1_000_000), (5_000, 10**9)]
)
def test_many_pairs_of_key_and_slice_are_hashed(keys: int, range_us: int) -> None:
    events = 100_000
    box = dense.Box.around((0, keys - 1), (0, SPAN_US // range_us))
    assert hashes(keys, events, range_us) != box.affordable(events)


def test_edges_that_hardly_ever_meet_are_hashed_however_few_keys_there_are() -> None:
    odd = (86_353_000, 86_399_000, 86_401_000)
    assert isinstance(slices_of(map(tumbling, odd)), EdgeHorizon)
    assert hashes(1, 100_000, *odd)
    assert not hashes(1, 100_000, 60_000_000, 90_000_000)


def test_edges_that_are_cut_evenly_are_not_hashed_however_long_they_take_to_meet() -> None:
    ranges_us = [seconds * 1_000_000 for seconds in range(10, 110, 5)]
    asked = Edges.of(map(tumbling, ranges_us))
    assert isinstance(slices_of_edges(asked), EdgeHorizon)
    assert isinstance(slices_of_edges(edges_as_cut(asked)), edges.PeriodTable)
    assert not hashes(10, 100_000, *ranges_us)


def test_windows_on_the_same_slices_close_together_in_a_session() -> None:
    windows = {f"{seconds}s": f"{seconds} seconds" for seconds in range(10, 110, 5)}
    asked = weft.Query("q", source="s", windows=windows, aggs={"n": weft.agg.count()})
    batch, session = (weft.optimize(asked, engine="local", session=s) for s in (False, True))
    assert batch.planner == "factor"
    assert {type(n.feeder) for n in session.nodes if isinstance(n, Roll)} == {Slice}
    assert "a session, priced as if a push had the events of 1s" in session.notes
    rare = weft.optimize(asked, engine="local", session=True, micro_batch="1 hour")
    assert "a session, priced as if a push had the events of 1h" in rare.notes
    assert rare.cost < session.cost
    # Only the local engine has sessions: a stream of Spark keeps its pace.
    stream = weft.optimize(asked, session=True, micro_batch="1 hour")
    assert stream.cost == weft.optimize(asked, micro_batch="1 hour").cost


@pytest.mark.parametrize("rate", [1.0, 200.0, 100_000.0])
@pytest.mark.parametrize("push", ["1 second", "1 minute"])
def test_a_long_hop_of_a_session_is_kept_as_events_come(rate: float, push: str) -> None:
    """Put together of what windows below it gave, it would read an hour with every push."""
    hops = {"1h/1s": weft.hopping("1 hour", "1 second"), "5m/1s": weft.hopping("5 m", "1 s")}
    asked = weft.Query("q", source="s", keys=["k"], windows=hops, aggs={"n": weft.agg.sum("x")})
    known = Statistics(rate=rate, keys=200)
    plan = weft.optimize(asked, "auto", "local", known, session=True, micro_batch=push)
    assert {n.technique in INCREMENTAL for n in plan.nodes if isinstance(n, Roll)} == {True}
    fed = weft.optimize(asked, "factor", "local", known, session=True, micro_batch=push)
    assert fed.cost > plan.cost


def test_what_a_session_puts_together_anew_is_priced_by_what_is_held() -> None:
    """A minute is read sixty times as often as it is new, if it is read every second."""
    minute = weft.hopping("1 minute", "1 second")
    slices = Slice(Scan("s", "t", None, ()), (), Edges.of([tumbling(1_000_000)]), ())
    count = (Partial("count_rows", ()),)
    known = Statistics(rate=50.0, keys=1)
    for technique, times in (("one_by_one", 61), ("two_stacks_lite", 1)):
        roll = Roll((slices,), minute, RANGES, (), count, technique)
        emit = Emit((roll,), "q", "w", ())
        volumes = Volumes(known, SPAN_US, pushes=3600)
        work = KernelWork("local", volumes).works((slices.input, slices, roll, emit))[roll]
        assert work["local", "read_partial"] == pytest.approx(times * 3600, rel=0.05)


def test_a_table_of_many_edges_is_right() -> None:
    table = edges.PeriodTable.of([(0, 97), (0, 101), (3, 13)])
    times = np.arange(-300_000, 300_000, 7)
    starts, ends = table.bounds(table.slice_of(times))
    wanted = EdgeHorizon.of([(0, 97), (0, 101), (3, 13)]).bounds(times)
    assert (starts == wanted[0]).all()
    assert (ends == wanted[1]).all()


def test_a_window_that_reads_events_is_hashed_like_its_slices() -> None:
    known = Statistics(rate=1.0, keys=1_000_000, events=3600)
    roll = Roll((Scan("events", None, None, ()),), tumbling(1_000_000), FOLD, (), ())
    counted = KernelWork("local", Volumes(known, SPAN_US)).rolled(roll)
    assert counted["local", "hash_event"] == pytest.approx(3600)
