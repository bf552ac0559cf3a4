"""Windows at anchors on Spark, against stock frames, with and without its segment tree.

A million payments of a thousand users over a month, in parquet files, on two cores. A label may be
joined to its events, or be a row among them that counts nowhere: the better of the two is stock.
What is shipped goes through the shuffle, the sort and Python as weft's rows do, and nothing is
computed: no features that Python computes can cost less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from weft.bench.frame import Bar, Case, Contender, Entry, Race
from weft.bench.suite.anchors.inputs import Payments, payments, payments_in_frames
from weft.bench.suite.spark.runs import same_answers, stored, write_nowhere

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from weft.bench.frame import Runner

_NEEDS = ("pyspark",)
_EVENTS, _QUICK_EVENTS = 1_000_000, 20_000
_USERS = 1_000
_SEGMENT_TREE = "spark.sql.window.segmentTree.enabled"
_WEIGHTS = 1009


class Stored(NamedTuple):
    """Payments and labels as Spark reads them."""

    asked: Payments
    events: DataFrame
    labels: DataFrame


_KEPT: dict[str, DataFrame] = {}  # what is stored, by name: entries share their tables


def _stored(make: Callable[..., Payments]) -> Callable[..., Stored]:
    def inputs(**arguments: int) -> Stored:
        made = make(**arguments)
        frames = []
        for kind, table in (("events", made.events), ("labels", made.labels)):
            told = "-".join(str(arguments[name]) for name in sorted(arguments))
            name = f"{make.__name__}-{kind}-{told}"
            if name not in _KEPT:
                _KEPT[name] = stored(table, name)
            frames.append(_KEPT[name])
        return Stored(made, *frames)

    return inputs


def _columns(inputs: Stored) -> list[str]:
    return [f"{name}_{label}" for label in inputs.asked.windows for name in inputs.asked.aggs]


def _with_one_range(inputs: Stored) -> Stored:
    asked = inputs.asked
    return inputs._replace(asked=Payments(asked.events, asked.labels, asked.ranges_us[-1:]))


def _answered(inputs: Stored, rows: DataFrame) -> dict[str, Any]:
    """Write the rows nowhere, and summarize every feature on the way."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    weight = F.pmod(F.xxhash64("id"), F.lit(_WEIGHTS)) + 1
    seen = Observation()
    columns = _columns(inputs)
    sums = (F.sum(weight * F.col(name).cast("double")).alias(name) for name in columns)
    write_nowhere(rows.observe(seen, F.count(F.lit(1)).alias("rows"), *sums))
    return {"features": seen}


def _start_rolling(inputs: Stored) -> Runner:
    import weft

    asked: dict[str, Any] = {"windows": inputs.asked.windows, "aggs": inputs.asked.aggs}
    return lambda: _answered(inputs, weft.rolling(inputs.events, time="ts", by=["user"], **asked))


def _start_one_range(inputs: Stored) -> Runner:
    return _start_rolling(_with_one_range(inputs))


def _start_as_of(inputs: Stored) -> Runner:
    import weft

    asked: dict[str, Any] = {"windows": inputs.asked.windows, "aggs": inputs.asked.aggs}
    return lambda: _answered(
        inputs,
        weft.as_of(inputs.labels, inputs.events, time="ts", at="ts", by=["user"], **asked),
    )


def _frames(inputs: Stored, count: Column, shorter_us: int = 0) -> list[Column]:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    found = []
    for label, range_us in inputs.asked.windows.items():
        frame = Window.partitionBy("user").orderBy("us").rangeBetween(shorter_us - range_us, 0)
        found += [
            F.min("amount").over(frame).alias(f"lo_{label}"),
            F.sum("amount").over(frame).alias(f"total_{label}"),
            F.avg("amount").over(frame).alias(f"mean_{label}"),
            count.over(frame).alias(f"n_{label}"),
        ]
    return found


def _start_stock_rolling(*, tree: bool) -> Callable[[Stored], Runner]:
    def start(inputs: Stored) -> Runner:
        from pyspark.sql import functions as F

        session = inputs.events.sparkSession

        def runner() -> dict[str, Any]:
            session.conf.set(_SEGMENT_TREE, str(tree).lower())
            stamped = inputs.events.withColumn("us", F.unix_micros("ts"))
            rows = stamped.select("id", *_frames(inputs, F.count(F.lit(1))))
            try:
                return _answered(inputs, rows)
            finally:
                session.conf.unset(_SEGMENT_TREE)

        return runner

    return start


def _start_stock_union(inputs: Stored) -> Runner:
    """Labels are rows among the events; an event counts from one microsecond later on."""
    from pyspark.sql import functions as F

    def runner() -> dict[str, Any]:
        labels = inputs.labels.selectExpr(
            "id", "user", "unix_micros(ts) AS us", "CAST(NULL AS double) AS amount"
        )
        events = inputs.events.selectExpr(
            "CAST(NULL AS bigint) AS id", "user", "unix_micros(ts) + 1 AS us", "amount"
        )
        rows = labels.union(events).select("id", *_frames(inputs, F.count("amount"), shorter_us=1))
        return _answered(inputs, rows.where("id IS NOT NULL"))

    return runner


def _start_stock_join(inputs: Stored) -> Runner:
    """Labels are joined to the events of the longest range, and aggregated with filters."""
    from pyspark.sql import functions as F

    longest = max(inputs.asked.ranges_us)

    def runner() -> dict[str, Any]:
        labels = inputs.labels.selectExpr("id", "user AS who", "unix_micros(ts) AS at")
        events = inputs.events.selectExpr("user", "unix_micros(ts) AS us", "amount")
        on = F.expr(f"who = user AND us >= at - {longest} AND us < at")
        aggs = []
        for label, range_us in inputs.asked.windows.items():
            value = F.when(F.expr(f"us >= at - {range_us}"), F.col("amount"))
            aggs += [
                F.min(value).alias(f"lo_{label}"),
                F.sum(value).alias(f"total_{label}"),
                F.avg(value).alias(f"mean_{label}"),
                F.count(value).alias(f"n_{label}"),
            ]
        return _answered(inputs, labels.join(events, on, "left").groupBy("id").agg(*aggs))

    return runner


def _shipped(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Send rows through shuffle, sort and Python as weft does, where columns are put beside some.

    Rows without an amount are points among events: they alone come back.
    """

    def filled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import numpy as np
        import pyarrow as pa

        for batch in batches:
            amounts = batch.column("amount")
            points = batch.filter(amounts.is_null()) if amounts.null_count else batch
            values = pa.array(np.random.default_rng(1).random(points.num_rows))
            names = [*points.schema.names, *columns]
            yield pa.RecordBatch.from_arrays([*points.columns, *[values] * len(columns)], names)

    own = [f"{f.name} {f.dataType.simpleString()}" for f in rows.schema]
    schema = ", ".join([*own, *(f"{name} double" for name in columns)])
    return rows.repartition("user").sortWithinPartitions("user", "ts").mapInArrow(filled, schema)


def _start_shipped_events(inputs: Stored) -> Runner:
    return lambda: _answered(inputs, _shipped(inputs.events, _columns(inputs)))


def _start_shipped_one_range(inputs: Stored) -> Runner:
    return _start_shipped_events(_with_one_range(inputs))


def _start_shipped_labels(inputs: Stored) -> Runner:
    def runner() -> dict[str, Any]:
        labels = inputs.labels.selectExpr("id", "user", "ts", "CAST(NULL AS double) AS amount")
        events = inputs.events.selectExpr("CAST(NULL AS bigint) AS id", "user", "ts", "amount")
        return _answered(inputs, _shipped(labels.union(events), _columns(inputs)))

    return runner


def _case(events: int, label: str = "", **arguments: int) -> Case:
    sizes = {"events": events, "users": min(_USERS, events // 30), **arguments}
    return Case(label or f"{events:,} events", sizes, events)


_WEFT = Contender(_start_rolling, _NEEDS)
_STOCK = Contender(_start_stock_rolling(tree=False), _NEEDS, runs=1)
_TREE = Contender(_start_stock_rolling(tree=True), _NEEDS, runs=1)

ROLLING = Race(
    name="rolling/spark",
    question="What do four ranges at every event cost on Spark, when one costs 1?",
    inputs=_stored(payments),
    expected=None,
    contenders={
        "stock": _STOCK,
        "segment_tree": _TREE,
        "weft": _WEFT,
        "weft_one_range": Contender(_start_one_range, _NEEDS, yardstick=True),
        "shipped": Contender(_start_shipped_events, _NEEDS, yardstick=True),
        "shipped_one_range": Contender(_start_shipped_one_range, _NEEDS, yardstick=True),
    },
    baseline="stock",
    full=(_case(_EVENTS),),
    quick=(_case(_QUICK_EVENTS),),
    bars=(Bar("weft", "stock", 5), Bar("weft", "weft_one_range", 1 / 1.2)),
    same=same_answers,
    rounds=5,
    item="event",
)

FRAMES = Race(
    name="rolling/spark_frames",
    question="What does a frame of a thousand rows cost, and one of ten?",
    inputs=_stored(payments_in_frames),
    expected=None,
    contenders={"stock": _STOCK, "segment_tree": _TREE, "weft": _WEFT},
    baseline="stock",
    full=tuple(_case(_EVENTS, f"frames of {n:,}", frame=n, users=10) for n in (10, 1_000)),
    quick=(_case(_QUICK_EVENTS, "frames of 10", frame=10, users=10),),
    bars=(
        Bar("weft", "stock", 20, cases="frames of 1,000"),
        Bar("weft", "segment_tree", 2, cases="frames of 1,000"),
    ),
    same=same_answers,
    rounds=5,
    item="event",
)

AS_OF = Race(
    name="as_of/spark",
    question="What do features of labels cost on Spark, few and many of them?",
    inputs=_stored(payments),
    expected=None,
    contenders={
        "stock_union": Contender(_start_stock_union, _NEEDS, runs=1),
        "stock_join": Contender(_start_stock_join, _NEEDS, runs=1),
        "weft": Contender(_start_as_of, _NEEDS),
        "shipped": Contender(_start_shipped_labels, _NEEDS, yardstick=True),
    },
    baseline="stock_union",
    full=tuple(_case(_EVENTS, f"{n:,} labels", labels=n) for n in (10_000, 100_000)),
    quick=(_case(_QUICK_EVENTS, "1,000 labels", labels=1_000),),
    bars=(
        Bar("weft", "stock_union", 5, cases="100,000 labels"),
        Bar("weft", "stock_join", 5, cases="100,000 labels"),
    ),
    same=same_answers,
    rounds=5,
    item="event",
)

ENTRIES: tuple[Entry, ...] = (ROLLING, FRAMES, AS_OF)
