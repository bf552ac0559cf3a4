"""Events of several scopes: read once, each event copied to the scopes that keep it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.engines.spark.native.events import TIME, Events, check_inputs
from weft.engines.spark.sql.fan_out import FEEDER, START
from weft.engines.spark.sql.timestamps import micros_of
from weft.errors import InternalError
from weft.expression import column
from weft.plan.conditions import weakest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from weft.plan.planned_scope import PlannedScope

_KEPT = "kept"


def events_of(scopes: Sequence[PlannedScope], source: DataFrame) -> tuple[Events, ...]:
    """Prepare the events of each scope, all of one source and time column; they share one frame.

    With several scopes a column `feeder` has the scope's number, and keys that a scope does not
    group by are NULL in its copies.
    """
    scan = scopes[0].scan
    time_name = scan.time
    if time_name is None:
        raise InternalError(f"the time column of {scan.source!r} was not looked up")
    time, time_type = column(time_name), source.schema[time_name].dataType
    texts = dict.fromkeys(a for s in scopes for p in s.partials for a in p.reads)
    arguments = {text: f"a{i}" for i, text in enumerate(texts)}
    keys = dict.fromkeys(text for scope in scopes for _, text in scope.keys)
    names = {text: f"k{i}" for i, text in enumerate(keys)}
    micros = micros_of(time, time_type, time_name)
    kept = weakest(scope.scan.where for scope in scopes)  # which readers of files can go by
    timed = source.where(f"{time} IS NOT NULL")
    picked = (timed if kept is None else timed.where(kept)).select(
        *(_plain(text, name) for text, name in names.items()),
        *(F.expr(f"{micros} AS {name}") for name in (TIME, START)),
        *(_plain(text, name) for text, name in arguments.items()),
        *(F.expr(f"{scope.scan.where or 'true'} AS {_KEPT}{i}") for i, scope in enumerate(scopes)),
    )
    frame = _copied(scopes, picked, names, tuple(arguments.values()))
    fields = {field.name: field.dataType for field in frame.schema}
    types = {text: fields[name] for text, name in arguments.items()}
    check_inputs((emit for scope in scopes for emit in scope.emits), types)
    return tuple(
        Events(frame, tuple(names[text] for _, text in s.keys), arguments, types, time_type)
        for s in scopes
    )


def _plain(text: str, name: str) -> Column:
    """Take a column without its metadata: only ends of windows speak of the watermark."""
    return F.expr(text).alias(name, metadata={})


def _copied(
    scopes: Sequence[PlannedScope],
    picked: DataFrame,
    keys: dict[str, str],
    arguments: tuple[str, ...],
) -> DataFrame:
    if len(scopes) == 1:
        return picked.where(f"{_KEPT}0").drop(f"{_KEPT}0")
    flags = ", ".join(f"CASE WHEN {_KEPT}{i} THEN {i} END" for i in range(len(scopes)))
    copies = picked.selectExpr("*", f"explode(array_compact(array({flags}))) AS {FEEDER}")
    own = []
    for text, name in keys.items():
        having = [i for i, scope in enumerate(scopes) if text in dict(scope.keys).values()]
        listed = ", ".join(map(str, having))
        whole = len(having) == len(scopes)
        own.append(name if whole else f"CASE WHEN {FEEDER} IN ({listed}) THEN {name} END AS {name}")
    return copies.selectExpr(FEEDER, *own, TIME, START, *arguments)
