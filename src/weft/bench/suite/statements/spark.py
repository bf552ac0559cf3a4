"""Statements that users have: a model of eight windows that are joined, and grouping sets.

Five million readings of a thousand devices in a day, in a parquet file, in a session as users start
it: Spark plans anew after every exchange. What `weft.sql` takes to plan is timed too.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.bench.frame import Bar, Case, Contender, Entry, Race
from weft.bench.suite.spark.runs import readings, same_answers, write_nowhere

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from weft.bench.frame import Runner

_NEEDS = ("pyspark",)
_EVENTS, _QUICK_EVENTS, _WARM_UP_EVENTS = 5_000_000, 20_000, 200_000
_DEVICES = 1_000
_DAY_S = 86_400
_SETTINGS = {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "8"}
_WEIGHTS = 1009
# What each of the windows, of ten minutes to eighty, is asked for.
_FEATURES = (
    "COUNT(*) AS n_{0}, AVG(temp) AS mean_{0}",
    "SUM(temp) AS total_{0}, MAX(temp) AS most_{0}",
    "STDDEV(temp) AS spread_{0}",
    "COUNT_IF(status <> 0) AS faults_{0}",
    "MAX(humidity) - MIN(humidity) AS wet_{0}",
    "AVG(humidity) AS humid_{0}, COUNT(*) AS n_{0}",
    "MIN(temp) AS least_{0}, MAX(temp) AS most_{0}",
    "SUM(humidity) AS damp_{0}, COUNT(humidity) AS n_{0}",
)


def feature_model() -> str:
    """Eight windows over one table, each a common table expression, joined on device and end.

    >>> feature_model().count("window(ts")
    8
    """
    minutes = [10 * count for count in range(1, 9)]
    parts = ["base AS (SELECT ts, device, temp, humidity, status FROM readings)"]
    for length, features in zip(minutes, _FEATURES, strict=True):
        parts.append(
            f"w{length} AS (SELECT device, window.end AS at, {features.format(f'{length}m')} "
            f"FROM base GROUP BY device, window(ts, '{length} minutes', '10 minutes'))"
        )
    joins = " ".join(f"LEFT JOIN w{length} USING (device, at)" for length in minutes[1:])
    return f"WITH {', '.join(parts)} SELECT * FROM w10 {joins}"


def rollup() -> str:
    """One window by device and status, by device, and by neither."""
    return (
        "SELECT device, status, window.start AS since, COUNT(*) AS n, AVG(temp) AS mean, "
        "MAX(temp) AS most, MIN(humidity) AS least, STDDEV(temp) AS spread FROM readings "
        "GROUP BY ROLLUP (device, status), window(ts, '1 hour')"
    )


class Asked(NamedTuple):
    """A statement, and the readings that it is about."""

    events: DataFrame
    text: str


@contextmanager
def _as_users_have_it(events: DataFrame) -> Iterator[None]:
    conf = events.sparkSession.conf
    before = {name: conf.get(name) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        conf.set(name, value)
    try:
        yield
    finally:
        for name, known in before.items():
            if known is not None:
                conf.set(name, known)


def _stock(events: DataFrame, text: str) -> DataFrame:
    return events.sparkSession.sql(
        text.replace("FROM readings", "FROM {readings}"), readings=events
    )


def _shared(events: DataFrame, text: str) -> DataFrame:
    import weft

    found: DataFrame = weft.sql(text, readings=events)
    return found


def _started(run: Callable[[DataFrame, str], DataFrame]) -> Callable[[Asked], Runner]:
    def start(asked: Asked) -> Runner:
        def runner() -> dict[str, Any]:
            with _as_users_have_it(asked.events):
                return {"statement": _answered(run(asked.events, asked.text))}

        return runner

    return start


def _answered(rows: DataFrame) -> Any:
    """Write the rows nowhere, and take a weighted sum of every column of numbers on the way."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F
    from pyspark.sql.types import NumericType

    others = [f.name for f in rows.schema if not isinstance(f.dataType, NumericType)]
    weight = F.pmod(F.xxhash64(*others), F.lit(_WEIGHTS)) + 1
    numbers = [f.name for f in rows.schema if isinstance(f.dataType, NumericType)]
    sums = (F.sum(weight * F.col(name).cast("double")).alias(name) for name in numbers)
    seen = Observation()
    write_nowhere(rows.observe(seen, F.count(F.lit(1)).alias("rows"), *sums))
    return seen


def _inputs(text: Callable[[], str]) -> Callable[..., Asked]:
    @cache
    def inputs(events: int) -> Asked:
        if events > _WARM_UP_EVENTS:
            # What runs first pays for classes that Java loads and code that it compiles.
            some = Asked(readings(_WARM_UP_EVENTS, _DEVICES, _WARM_UP_EVENTS / _DAY_S), text())
            for run in (_shared, _stock):
                _started(run)(some)()
        return Asked(readings(events, _DEVICES, events / _DAY_S), text())

    return inputs


def _race(name: str, question: str, text: Callable[[], str], at_least: float) -> Race:
    return Race(
        name=f"spark-batch/{name}",
        question=question,
        inputs=_inputs(text),
        expected=None,
        contenders={
            "spark.sql": Contender(_started(_stock), _NEEDS, runs=1),
            "weft.sql": Contender(_started(_shared), _NEEDS),
        },
        baseline="spark.sql",
        full=(Case(f"{_EVENTS:,} events", {"events": _EVENTS}, _EVENTS),),
        quick=(Case(f"{_QUICK_EVENTS:,} events", {"events": _QUICK_EVENTS}, _QUICK_EVENTS),),
        bars=(Bar("weft.sql", "spark.sql", at_least),),
        same=same_answers,
        rounds=3,
        item="event",
    )


ENTRIES: tuple[Entry, ...] = (
    _race(
        "feature_model",
        "What does a model of eight windows that are joined cost through the front door?",
        feature_model,
        at_least=5.0,
    ),
    _race(
        "rollup",
        "And ROLLUP over one window, where finer groups are regrouped?",
        rollup,
        at_least=1.0,
    ),
)
