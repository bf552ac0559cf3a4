"""The online auction on Spark: placements of early aggregation against stock Spark.

Stock Spark joins every bid with its auction and its seller, copies the match to the sixty windows
that it is in, and aggregates the copies. What weft measures of the inputs beforehand, rates and
how many auctions get bids at a time, tells it which inputs to aggregate early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import weft
from weft.bench.frame import Bar, Case, Contender, Race
from weft.bench.suite.spark.runs import stored
from weft.generate import nexmark
from weft.parsing import parse
from weft.planners.portfolio import optimize
from weft.query import JoinQuery

if TYPE_CHECKING:
    from weft.bench.frame import Runner
    from weft.cost.joins.tuples import SideLoad

AUCTION = """SELECT a.category, COUNT(*) AS bids, SUM(b.price) AS total, MAX(b.price) AS top
FROM bid AS b TIMESTAMP BY date_time [RANGE 1 HOUR SLIDE 1 MINUTE],
     auction AS a TIMESTAMP BY date_time [UNTIL NOW], person AS p
WHERE b.auction = a.id AND a.seller = p.id AND p.state <> 'CA'
GROUP BY a.category"""


class _Auctions(NamedTuple):
    """Bids, auctions and people in parquet files, and what they bring to the join."""

    frames: dict[str, Any]
    loads: tuple[SideLoad, ...]


def _auctions(events: int) -> _Auctions:
    from weft.engines.joins import measured_loads

    tables = nexmark(events, 7, rate=events / 3600, padding=False)
    frames = {name: stored(table, f"{name}-{events}") for name, table in tables.items()}
    (query,) = parse(AUCTION)
    assert isinstance(query, JoinQuery)
    return _Auctions(frames, measured_loads(query, tables))


def _weft(planner: str) -> Contender:
    def start(auctions: _Auctions) -> Runner:
        workload = weft.parse(AUCTION)
        loads = {query.name: auctions.loads for query in workload}
        plan = optimize(workload, planner, "spark", join_loads=loads)

        def runner() -> Any:
            return weft.run(plan, auctions.frames, engine="spark").toArrow()

        return runner

    return Contender(start, ("pyspark",))


def _stock(auctions: _Auctions) -> Runner:
    """Join, then window, then aggregate, as one writes it on stock Spark."""

    def runner() -> Any:
        from pyspark.sql import functions as F

        bids = auctions.frames["bid"].alias("b")
        opened = auctions.frames["auction"].alias("a")
        people = auctions.frames["person"].alias("p")
        joined = bids.join(opened, F.expr("b.auction = a.id")).join(
            people, F.expr("a.seller = p.id AND p.state <> 'CA'")
        )
        window = F.window("b.date_time", "1 hour", "1 minute")
        rows = joined.select("a.category", "b.price", F.col("a.date_time").alias("opened"), window)
        return (
            rows.where("opened < window.end")
            .groupBy("category", "window")
            .agg(
                F.count("*").alias("bids"),
                F.sum("price").alias("total"),
                F.max("price").alias("top"),
            )
            .selectExpr("category", "window.end AS window_end", "bids", "total", "top")
            .toArrow()
        )

    return runner


def _same_rows(expected: Any, answer: Any) -> str:
    """Compare all rows; stock Spark does not name the windows."""
    names = ["category", "window_end", "bids", "total", "top"]
    order = [(name, "ascending") for name in names[:2]]
    rows = [table.select(names).sort_by(order).combine_chunks() for table in (expected, answer)]
    if rows[0].num_rows != rows[1].num_rows:
        return f"expected {rows[0].num_rows} rows, got {rows[1].num_rows}"
    wrong = [name for name in names if not rows[0][name].equals(rows[1][name])]
    return f"other values of {', '.join(wrong)} than stock Spark" if wrong else ""


AUCTIONS = Race(
    name="joins/spark_auction",
    question="How much faster is early aggregation on Spark than to join, window and aggregate?",
    inputs=_auctions,
    expected=None,
    contenders={
        "stock": Contender(_stock, ("pyspark",)),
        "weft": _weft("auto"),
        "LAP": _weft("LAP"),
        "EAP100": _weft("EAP100"),
        "EAP111": _weft("EAP111"),
    },
    baseline="stock",
    full=(Case("1M bids in an hour", {"events": 1_090_000}, 1_000_000),),
    quick=(Case("20k events", {"events": 20_000}, 20_000),),
    bars=(Bar("weft", "stock", 5.0),),
    same=_same_rows,
    rounds=3,
    item="bid",
)
