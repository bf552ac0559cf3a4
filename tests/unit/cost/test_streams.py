"""Prices of streams: what a micro-batch adds to the price of events."""

from __future__ import annotations

from dataclasses import replace

import pytest

import weft
from weft import agg
from weft.cost import streams
from weft.cost.streams import CATCHING_UP_US, StreamModel, rows_kept
from weft.plan import Roll, Slice
from weft.statistics import Statistics

KNOWN = Statistics(rate=1000.0, keys=50)
S = 1_000_000


def planned(*windows: weft.Window, planner: str = "slice", **more: object) -> weft.Plan:
    query = weft.Query(
        "q",
        source="r",
        time="ts",
        keys=["k"],
        windows={str(window): window for window in windows},
        aggs=more.pop("aggs", {"lo": agg.min("v")}),
        watermark="10 seconds",
    )
    pace = more.pop("micro_batch", CATCHING_UP_US)
    return weft.optimize(
        weft.Workload([query]), planner, statistics=KNOWN, micro_batch=pace, **more
    )  # type: ignore[arg-type]


def test_the_shorter_the_micro_batches_the_more_a_second_of_the_stream_costs() -> None:
    tens = weft.tumbling("10 seconds")
    costs = [planned(tens, micro_batch=us).cost / us for us in (S // 10, S, 60 * S, 600 * S)]
    assert costs == sorted(costs, reverse=True)
    assert len(set(costs)) == len(costs)


def test_a_short_micro_batch_updates_the_rows_of_a_slice_again_and_again() -> None:
    (found,) = [n for n in planned(weft.tumbling("10 seconds")).nodes if isinstance(n, Roll)]
    long, short = (StreamModel.of(KNOWN, us) for us in (600 * S, S))
    assert long.updates_per_second(found) == pytest.approx(long.rows_per_second(found))
    assert short.updates_per_second(found) == pytest.approx(short.keys_in(S))
    assert long.rows_held(found) == pytest.approx(100)  # 10 s of the window and 10 s of lateness


def test_slices_are_kept_once_for_all_windows_that_read_them() -> None:
    plan = planned(weft.hopping("60 seconds", "10 seconds"), weft.hopping("30 seconds", "10 s"))
    (sliced,) = [node for node in plan.nodes if isinstance(node, Slice)]
    model = StreamModel.of(KNOWN, S)
    expected = model.rows_per_second(sliced) * 70
    assert rows_kept(plan.nodes, model) == pytest.approx(expected)


def test_a_plan_of_many_levels_is_no_chain_of_states() -> None:
    ladder = [weft.tumbling(f"{n} seconds") for n in (10, 20, 40, 80)]
    (choice,) = planned(*ladder, planner="factor").strategies
    assert choice.native is None
    assert "TUMBLE 40s is 3 steps above the events" in choice.reason
    (choice,) = planned(*ladder, planner="slice").strategies
    assert choice.native is not None


@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_every_column_of_a_result_has_its_price(strategy: str, monkeypatch) -> None:
    """One partial has three names in a result: that is three columns."""
    real = streams.coefficients_of
    monkeypatch.setattr(
        streams, "coefficients_of", lambda name: replace(real(name), emit_value_ns=1e6)
    )
    one, three = (
        planned(weft.tumbling("10 seconds"), strategy=strategy, micro_batch=10 * S, aggs=aggs)
        for aggs in ({"lo": agg.min("v")}, {name: agg.min("v") for name in ("a", "b", "c")})
    )
    # 50 keys a second, nearly all of them in every ten seconds, and a millisecond a value.
    assert three.cost - one.cost == pytest.approx(2 * 50, rel=0.01)


def test_micro_batches_are_spark_s_alone() -> None:
    with pytest.raises(weft.QueryError, match="the local engine has no micro-batches"):
        planned(weft.tumbling("1 second"), engine="local")
    with pytest.raises(weft.QueryError, match="the events of no time"):
        planned(weft.tumbling("1 second"), micro_batch=0)
