"""Functions OVER frames in the hands of weft: rows of Spark through one shuffle for each order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from weft.aggregates import AggregateCall
from weft.engines.spark.session import arrow_schema
from weft.engines.spark.sql.timestamps import micros_of
from weft.errors import WeftError
from weft.features.runs import bind_features, plan_bound, run_plan
from weft.plan.anchors import EventFeatures, FeatureQuery
from weft.statement.over.rows import OverRows, star_column
from weft.statement.projection import own_name
from weft.statement.relations import Obstacle
from weft.statement.spark.results import REAL, plain_type
from weft.statement.syntax import written_of
from weft.window.trailing import Trailing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame
    from sqlglot import exp

    from weft.plan.anchors import FeaturePlan
    from weft.statement.over.rows import Taken
    from weft.window.frame import Order
    from weft.window.trailing import AnchoredWindow

_ROWS, _TIME = "rows", "weft_time"
# Where rows without a value stand: no window of a value goes so far that Spark can compute it.
_FIRST, _LAST = -(2**63) + 1, 2**63 - 2
_PEERS = Trailing(1)  # of rows without a value: all of them


class Unable(Exception):
    """Some functions cannot be taken over; the others may be."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__()
        self.reasons = reasons  # by the place of the function among all of the SELECT


class Refused(Exception):
    """Frames of a stream cannot be computed as they are asked, and Spark computes none."""

    def __init__(self, error: WeftError) -> None:
        super().__init__()
        self.error = error


@dataclass(frozen=True)
class RolledSelect:
    """A SELECT whose frames are taken over: rows with results, and the SELECT over them."""

    frame: DataFrame
    select: Callable[[str], exp.Select]  # over a table of this name
    plans: tuple[FeaturePlan, ...]
    text: str  # of the rows


@dataclass(frozen=True)
class Around:
    """What a SELECT means depends on: tables, what it reads, and the zone of times."""

    run: Callable[[exp.Expr], DataFrame]
    columns_of: Callable[[exp.Select], frozenset[str]]
    zone: str


def rolled(select: exp.Select, around: Around) -> tuple[RolledSelect | None, dict[int, str]]:
    """Take over what can be; return it, and why other functions are left, by their place."""
    reasons: dict[int, str] = {}
    while True:
        try:
            rows = OverRows(select, around.columns_of)
            places = _take(rows, reasons)
            if not places:
                return None, reasons
            return _rolled(rows, places, around), reasons
        except Unable as unable:
            reasons |= unable.reasons
        except Refused as refused:
            raise refused.error from None
        except (Obstacle, WeftError) as obstacle:
            return None, _all_left(select, reasons, str(obstacle).splitlines()[0])
        except PySparkException as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            reason = f"Spark does not take it in parts: {lines[0] if lines else error}"
            return None, _all_left(select, reasons, reason)


def _all_left(select: exp.Select, reasons: Mapping[int, str], reason: str) -> dict[int, str]:
    return {at: reasons.get(at, reason) for at, _ in enumerate(OverRows.windows_of(select))}


def _take(rows: OverRows, reasons: dict[int, str]) -> list[int]:
    places = []
    for at, node in enumerate(OverRows.windows_of(rows.select)):
        if at in reasons:
            continue
        try:
            rows.take(node)
            places.append(at)
        except Obstacle as obstacle:
            reasons[at] = str(obstacle)
    return places


def _rolled(rows: OverRows, places: Sequence[int], around: Around) -> RolledSelect:
    rows.prepare()
    stars = [around.run(rows.select_of([star.copy()])).columns for star in rows.stars]
    starred = rows.starred([name for names in stars for name in names])
    text = rows.rows(starred)
    frame = around.run(text)
    count = sum(map(len, stars))
    frame = frame.toDF(*(star_column(i) for i in range(count)), *frame.columns[count:])
    carried = [star_column(i) for i in range(count)]
    carried += sorted({starred.get(name, name) for name in rows.carried} - set(carried))
    _check_carried(frame.select(*carried))
    windows, groups = _groups(rows, places, frame.schema, starred, around.zone)
    if frame.isStreaming:
        frame = _streamed(frame, groups, starred)
    plans: list[FeaturePlan] = []
    results: list[str] = []
    for number, group in enumerate(groups):
        later = [t for others in groups[number + 1 :] for t in others]
        read = {starred.get(n, n) for t in later for n in (*t.keys, t.order, *t.arguments)}
        handed = [*carried, *results, *sorted(read - set(carried))]
        try:
            frame, plan = _with_group(frame, group, windows, starred, handed)
        except WeftError as error:
            if frame.isStreaming:
                raise Refused(error) from error
            raise
        plans.append(plan)
        results += [t.column for t in group]
    _check_types(rows, places, frame.schema, around)
    names = [_name(rows, item, around) for item in rows.select.expressions]
    return RolledSelect(
        frame,
        lambda table: rows.after(table, stars, names, starred),
        tuple(plans),
        written_of(text),
    )


def _check_carried(frame: DataFrame) -> None:
    for own in frame.schema:
        try:
            arrow_schema(T.StructType([own]))
        except PySparkException:
            raise Obstacle(f"a column of type {own.dataType.simpleString()} is Spark's") from None


def _groups(
    rows: OverRows,
    places: Sequence[int],
    schema: T.StructType,
    starred: Mapping[str, str],
    zone: str,
) -> tuple[dict[str, AnchoredWindow], list[list[Taken]]]:
    """Return the window of each function, and those functions together that share an order."""
    windows: dict[str, AnchoredWindow] = {}
    groups: dict[tuple[object, ...], list[Taken]] = {}
    unable: dict[int, str] = {}
    for at, taken in zip(places, rows.taken, strict=True):
        types = {n: schema[starred.get(n, n)].dataType for n in (*taken.keys, *taken.arguments)}
        try:
            for name in taken.keys:
                if not plain_type(types[name]) and not isinstance(types[name], REAL):
                    raise Obstacle(f"a key is of type {types[name].simpleString()}")
            for name in taken.arguments:
                if not plain_type(types[name]) and not isinstance(types[name], REAL):
                    kind = types[name].simpleString()
                    raise Obstacle(f"{taken.call.function} is over type {kind}")
            order = _order_of(taken, schema[starred.get(taken.order, taken.order)].dataType)
            windows[taken.column] = taken.over.frame.window(order, zone)
        except (Obstacle, WeftError) as obstacle:
            unable[at] = str(obstacle).splitlines()[0]
        by = (taken.keys, taken.order, taken.over.descends, taken.over.nulls_first)
        groups.setdefault(by, []).append(taken)
    if unable:
        raise Unable(unable)
    return windows, list(groups.values())


def _order_of(taken: Taken, type: T.DataType) -> Order:
    if isinstance(type, T.TimestampType):
        return "instant"
    if isinstance(type, T.TimestampNTZType):
        return "local instant"
    if isinstance(type, T.DateType):
        return "day"
    if not isinstance(type, T.IntegralType):
        raise Obstacle(f"an order by {type.simpleString()} is Spark's")
    turned = taken.over.descends or not taken.over.nulls_first
    if isinstance(type, T.LongType) and turned:
        raise Obstacle("an order by bigint that descends, or with NULL last, is Spark's")
    return "number"


def _streamed(
    frame: DataFrame, groups: Sequence[Sequence[Taken]], starred: Mapping[str, str]
) -> DataFrame:
    """Refuse what no stream can give in its order; rows without a time end it."""
    if len(groups) > 1:
        raise Obstacle("in a stream all frames have one order")
    first = groups[0][0]
    order = starred.get(first.order, first.order)
    if first.over.descends or not isinstance(frame.schema[order].dataType, T.TimestampType):
        raise Obstacle("in a stream frames are in the order of a timestamp that ascends")
    # They are peers of one another, also of those to come: no row of them would ever be complete.
    wrong = "a row of the stream has no time to be ordered by; leave it out by WHERE"
    return frame.where(f"if({order} IS NULL, raise_error('{wrong}'), true)")


def _with_group(
    frame: DataFrame,
    group: Sequence[Taken],
    windows: Mapping[str, AnchoredWindow],
    starred: Mapping[str, str],
    handed: Sequence[str],
) -> tuple[DataFrame, FeaturePlan]:
    """Return rows with the results of functions that share their keys and their order."""
    first = group[0]
    order = starred.get(first.order, first.order)
    micros = micros_of(order, frame.schema[order].dataType, order)
    edge = _FIRST if first.over.nulls_first else _LAST
    value = f"-({micros})" if first.over.descends else micros
    at, timed = _TIME, frame.withColumn(_TIME, F.expr(f"coalesce({value}, {edge}L)"))
    if frame.isStreaming:
        at, timed = order, frame  # as the watermark speaks of it
    keys = tuple(dict.fromkeys(starred.get(name, name) for name in first.keys))
    calls = {
        taken.column: AggregateCall(
            taken.call.function,
            tuple(starred.get(name, name) for name in taken.arguments),
            taken.call.parameters,
        )
        for taken in group
    }
    # Rows without a value see one another, wherever their frame is to end.
    peers = {
        column: f"{column}_peers"
        for column in calls
        if at == _TIME and frame.schema[order].nullable and _lags(windows[column])
    }
    outputs = [(column, windows[column], call) for column, call in calls.items()]
    outputs += [(name, _PEERS, calls[column]) for column, name in peers.items()]
    by = tuple((name, name) for name in keys)
    asked = EventFeatures(_ROWS, at, by, None, tuple(outputs))
    tables = {_ROWS: timed}
    query = bind_features(FeatureQuery(_ROWS, at, rolling=True, inputs=(asked,)), tables)
    plan = plan_bound(query, tables, "spark")
    found = run_plan(plan, tables, tables, "spark", [*handed, _TIME] if peers else handed)
    for column, name in peers.items():
        among_peers = F.when(F.col(_TIME) == edge, F.col(name)).otherwise(F.col(column))
        found = found.withColumn(column, among_peers)
    return found.select(*handed, *calls), plan


def _lags(window: AnchoredWindow) -> bool:
    return isinstance(window, Trailing) and window.lag_us > 0


def _check_types(
    rows: OverRows, places: Sequence[int], schema: T.StructType, around: Around
) -> None:
    """Raise what results have other types than those that Spark gives them."""
    known = [(at, t) for at, t in zip(places, rows.taken, strict=True) if t.call.known_to_spark]
    wanted = _types_in_spark([taken for _, taken in known], rows, around)
    unable = {}
    for at, taken in known:
        own, spark = schema[taken.column].dataType, wanted.get(taken.column)
        if spark is not None and own != spark:
            unable[at] = f"it would be of type {own.simpleString()}, not {spark.simpleString()}"
    if unable:
        raise Unable(unable)


def _types_in_spark(
    known: Sequence[Taken], rows: OverRows, around: Around
) -> dict[str, T.DataType]:
    """Return the types of functions in Spark, of those that it takes."""
    if not known:
        return {}
    try:
        found = around.run(rows.select_of([taken.node.copy() for taken in known])).schema
    except PySparkException:
        if len(known) == 1:
            return {}
        apart = [_types_in_spark([taken], rows, around) for taken in known]
        return {column: type for types in apart for column, type in types.items()}
    return {taken.column: own.dataType for taken, own in zip(known, found, strict=True)}


def _name(rows: OverRows, item: exp.Expr, around: Around) -> str:
    """Return the name of a column; Spark is asked for those that it makes."""
    name = own_name(item)
    if name is not None:
        return name
    try:
        return around.run(rows.select_of([item.copy()])).columns[0]
    except PySparkException:
        return written_of(item)  # Spark does not take it
