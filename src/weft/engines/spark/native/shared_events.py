"""Events of several scopes: read once, each event copied to the scopes that keep it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from weft.engines.spark.native.events import TIME, Events, check_inputs
from weft.engines.spark.sql.fan_out import FEEDER, START
from weft.engines.spark.sql.timestamps import micros_of
from weft.errors import InternalError
from weft.expression import column
from weft.plan.conditions import cannot_fail, weakest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from weft.plan import Scan
    from weft.plan.planned_scope import PlannedScope
    from weft.query import Keys

    Root = tuple[Scan, Keys]

_KEPT = "kept"


def events_of(scopes: Sequence[PlannedScope], source: DataFrame) -> tuple[Events, ...]:
    """Prepare the events of each scope, all of one source and time column; they share one frame.

    With several roots a column `feeder` has the root's number, and keys that events are not
    grouped by there are NULL in its copies.
    """
    scan = scopes[0].scan
    time_name = scan.time
    if time_name is None:
        raise InternalError(f"the time column of {scan.source!r} was not looked up")
    time, time_type = column(time_name), source.schema[time_name].dataType
    texts = dict.fromkeys(a for s in scopes for p in s.partials for a in p.reads)
    # A number that is written out stays one: functions of Spark ask for constants.
    arguments = {t: t if t.isdigit() else f"a{i}" for i, t in enumerate(texts)}
    columns = {text: name for text, name in arguments.items() if text != name}
    names = key_names(scopes)
    roots = roots_of(scopes)
    micros = micros_of(time, time_type, time_name)
    kept = weakest(scope.scan.where for scope in scopes)  # which readers of files can go by
    grouping = {text: [s.where for s, own in roots if text in dict(own).values()] for text in names}
    reading = {
        text: [s.scan.where for s in scopes if any(text in p.reads for p in s.partials)]
        for text in columns
    }
    timed = source.where(f"{time} IS NOT NULL")
    picked = (timed if kept is None else timed.where(kept)).select(
        *(_computed(text, name, grouping[text], kept) for text, name in names.items()),
        *(F.expr(f"{micros} AS {name}") for name in (TIME, START)),
        *(_computed(text, name, reading[text], kept) for text, name in columns.items()),
        *(F.expr(f"{scan.where or 'true'} AS {_KEPT}{i}") for i, (scan, _) in enumerate(roots)),
    )
    frame = _copied(roots, picked, names, tuple(columns.values()))
    fields = {field.name: field.dataType for field in frame.schema}
    types = {text: fields.get(name, LongType()) for text, name in arguments.items()}
    check_inputs((emit for scope in scopes for emit in scope.emits), types)
    return tuple(
        Events(frame, tuple(names[text] for _, text in s.keys), arguments, types, time_type)
        for s in scopes
    )


def key_names(scopes: Sequence[PlannedScope]) -> dict[str, str]:
    """Name the column of every key that rows of some scope are grouped by, by its expression."""
    keys = (own for scope in scopes for own in (scope.keys, *(keys for _, keys in scope.roots)))
    texts = dict.fromkeys(text for own in keys for _, text in own)
    return {text: f"k{i}" for i, text in enumerate(texts)}


def roots_of(scopes: Sequence[PlannedScope]) -> tuple[Root, ...]:
    """List what events are grouped by anywhere below these scopes: what copies of them are for."""
    return tuple(dict.fromkeys(root for scope in scopes for root in scope.roots))


def _computed(text: str, name: str, wheres: Sequence[str | None], kept: str | None) -> Column:
    """Compute an expression for the events of those who ask for it: of others it may fail.

    The column is without metadata: only ends of windows speak of the watermark.
    """
    asked = weakest(wheres)
    value = F.expr(text)
    if asked not in (None, kept) and not cannot_fail(text):
        value = F.when(F.expr(str(asked)), value)
    return value.alias(name, metadata={})


def _copied(
    roots: Sequence[Root],
    picked: DataFrame,
    keys: dict[str, str],
    arguments: tuple[str, ...],
) -> DataFrame:
    if len(roots) == 1:
        return picked.where(f"{_KEPT}0").drop(f"{_KEPT}0")
    flags = ", ".join(f"CASE WHEN {_KEPT}{i} THEN {i} END" for i in range(len(roots)))
    copies = picked.selectExpr("*", f"explode(array_compact(array({flags}))) AS {FEEDER}")
    own = []
    for text, name in keys.items():
        having = [i for i, (_, own_keys) in enumerate(roots) if text in dict(own_keys).values()]
        listed = ", ".join(map(str, having))
        whole = len(having) == len(roots)
        own.append(name if whole else f"CASE WHEN {FEEDER} IN ({listed}) THEN {name} END AS {name}")
    return copies.selectExpr(FEEDER, *own, TIME, START, *arguments)
