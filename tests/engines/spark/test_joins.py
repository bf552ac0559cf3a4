"""Joins on Spark give the rows of the definition, wherever they aggregate early."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, note, settings

import weft
from sampling import examples
from weft.bench.frame import Case
from weft.bench.race import run_entry
from weft.bench.suite.joins.spark import AUCTIONS
from weft.cost.joins.tuples import placement_name, placements
from weft.engines.reference.engine import ReferenceEngine
from weft.engines.spark.engine import SparkEngine
from weft.engines.spark.session import to_spark
from weft.plan import Slice
from weft.planners.portfolio import optimize
from weft.query import JoinQuery, Workload
from weft.running import bind_tables
from weft.testing import assert_same_rows
from weft.testing.joins import joins_with_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
S = 1_000_000


@settings(
    max_examples=examples(4),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(asked=joins_with_rows(joint=True))
def test_every_placement_gives_the_rows_of_the_definition(
    spark: SparkSession, asked: tuple[JoinQuery, Mapping[str, pa.Table]]
) -> None:
    query, tables = asked
    workload = Workload([query])
    plans = {
        placement_name(early): optimize(workload, placement_name(early), "spark")
        for early in placements(len(query.inputs))
    }
    assume(not any(SparkEngine().unsupported(plan) for plan in plans.values()))
    wanted = ReferenceEngine().answer(workload, tables)[query.name]
    frames = {name: to_spark(table, spark) for name, table in tables.items()}
    every = list(plans.items())
    for name, plan in (every[0], every[1], every[-1]):
        note(plan.explain())
        got = SparkEngine().run(plan, frames)[query.name]
        assert_same_rows(query, got.toArrow(), wanted, name)


def test_an_aggregate_that_cannot_be_repeated_is_refused() -> None:
    text = """SELECT MEDIAN(a.x) AS mid FROM a TIMESTAMP BY ts [RANGE 1 HOUR SLIDE 1 HOUR],
              b TIMESTAMP BY ts [RANGE 1 HOUR SLIDE 1 HOUR] WHERE a.k = b.k"""
    plan = optimize(weft.parse(text))
    assert [problem.reason for problem in SparkEngine().unsupported(plan)] == [
        "values(a.x) has no form that a join can repeat on Spark"
    ]


SHARED = """SELECT a.g, COUNT(*) AS n, SUM(b.x) AS s, MAX(b.x) AS top
            FROM a TIMESTAMP BY ts {0}, b{1} WHERE a.k = b.k GROUP BY a.g"""


@pytest.mark.parametrize("other", [" TIMESTAMP BY ts {0}", " TIMESTAMP BY ts [UNTIL NOW]", ""])
def test_joins_that_differ_in_windows_share_slices_and_nothing_else(
    spark: SparkSession, other: str
) -> None:
    """Ranges that are no multiples of their slides, and of different slides, meet in the slices."""
    random = np.random.default_rng(3)
    tables = {
        name: pa.table(
            {
                "ts": pa.array(random.integers(0, 40 * S, 200)).cast(pa.timestamp("us", "UTC")),
                "k": random.integers(0, 4, 200),
                "g": random.integers(0, 2, 200),
                "x": random.integers(-9, 9, 200),
            }
        )
        for name in ("a", "b")
    }
    windows = ("[RANGE 6 SECONDS SLIDE 2 SECONDS]", "[RANGE 5 SECONDS SLIDE 4 SECONDS]")
    workload = weft.parse("; ".join(SHARED.format(w, other.format(w)) for w in windows))
    known = weft.Statistics(rate=500.0, keys=2, join_values=4)
    plan = optimize(bind_tables(workload, tables), "EAP11", "spark", known)
    shared = [node for node in plan.nodes if isinstance(node, Slice)]
    assert len(shared) == (2 if "{" in other else 1)
    frames = {name: to_spark(table, spark) for name, table in tables.items()}
    wanted = ReferenceEngine().answer(bind_tables(workload, tables), tables)
    with SparkEngine().run(plan, frames) as results:
        for query in workload:
            assert_same_rows(query, results[query.name].toArrow(), wanted[query.name])


@pytest.mark.soak
def test_the_auction_has_the_rows_of_stock_spark_in_every_placement() -> None:
    small = replace(AUCTIONS, quick=(Case("3k events", {"events": 3_000}, 3_000),), rounds=1)
    outcome = run_entry(replace(small, bars=()), quick=True)
    assert outcome.status == "ok", outcome.notes
    assert {row["contender"] for row in outcome.rows} == set(AUCTIONS.contenders)


def test_an_auction_that_loses_a_bid_is_caught() -> None:
    names = ["category", "window_end", "bids", "total", "top"]
    rows = pa.table([[1, 2], [10, 10], [3, 4], [30, 40], [20, 30]], names=names)
    other = rows.set_column(2, "bids", pa.array([3, 5]))
    assert AUCTIONS.same(rows, rows) == ""
    assert AUCTIONS.same(rows, other) == "other values of bids than stock Spark"
    assert AUCTIONS.same(rows, rows.slice(1)) == "expected 2 rows, got 1"
