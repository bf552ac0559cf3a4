"""Statements whose windows end at events, over streams: each row comes when it is complete.

They have no windows that several queries could share, so each is a stream of its own: its rows go
to the sink with the number of their micro-batch, and are there once whatever happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from weft.errors import UnsupportedError
from weft.parsing.anchored import SlidingStatement
from weft.running import columns_of_table
from weft.statement.blocks import window_selects
from weft.statement.door import anchored_of, sql
from weft.statement.syntax import query_of, statements_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from weft.time import Duration


@dataclass(frozen=True)
class RowStatement:
    """A statement whose windows end at events, and the time that orders these where it says so."""

    text: str
    time: str | None

    def time_of(self, source: DataFrame) -> str:
        """Return the column of event time of a stream that it reads."""
        asked = anchored_of(self.text) if self.time is None else None
        if isinstance(asked, SlidingStatement):
            return asked.time_among(columns_of_table(source).timestamps)
        assert self.time is not None
        return self.time


def row_statement(text: str) -> RowStatement | None:
    """Return a statement that has aggregates OVER frames, or a window that slides, and no other.

    >>> row_statement("SELECT AVG(x) OVER (PARTITION BY k ORDER BY ts) AS m FROM t").time
    'ts'
    >>> row_statement("SELECT k, COUNT(*) AS n FROM t [RANGE 1 HOUR] GROUP BY k").time is None
    True
    >>> row_statement("SELECT k, AVG(x) FROM t GROUP BY k, window(ts, '1 hour')")
    """
    asked = anchored_of(text)
    if isinstance(asked, SlidingStatement):
        return RowStatement(text, asked.time)
    statements = list((statements_of(text) or {}).values())
    tree = query_of(statements[0]) if len(statements) == 1 else None
    if tree is None or window_selects(tree):
        return None
    ordered = [
        key.this
        for frame in tree.find_all(exp.Window)
        for key in (frame.args["order"].expressions if frame.args.get("order") else ())
    ]
    named = {column.name for column in ordered if isinstance(column, exp.Column)}
    if not ordered:
        return None
    if len(named) != 1 or len(ordered) != sum(isinstance(c, exp.Column) for c in ordered):
        raise UnsupportedError(
            "the frames of a stream are ordered by its event time, and these are ordered by "
            f"{', '.join(dict.fromkeys(str(one) for one in ordered))}",
            hint="order every frame by the same column of time",
        )
    return RowStatement(statements[0], named.pop())


def start_rows(
    text: str,
    sources: Mapping[str, DataFrame],
    sink: str,
    checkpoint: str,
    trigger: Duration | None = None,
) -> StreamingQuery:
    """Start a statement over streams; its rows go into the sink, each once."""
    from weft.engines.spark.streaming.checkpoint.occupancy import held
    from weft.engines.spark.streaming.checkpoint.places import Place
    from weft.engines.spark.streaming.checkpoint.record import Checkpoint
    from weft.engines.spark.streaming.columnar.strategy import stored_for
    from weft.engines.spark.streaming.journal import listener_of
    from weft.engines.spark.streaming.sinks import Origin, ToldSink, as_sink
    from weft.plan.body import COLUMNAR
    from weft.starting import triggered

    kept, target = Checkpoint(Place.of(checkpoint)), as_sink(sink)
    if isinstance(target, ToldSink):
        target.check("rows", None)

    def write(batch: DataFrame, batch_id: int) -> None:
        taken = batch.persist()
        try:
            if taken.count():  # every partition has to run, and leave its state behind
                if isinstance(target, ToldSink):
                    origin = Origin(kept.stream, "rows", shared=False, identity=None)
                    target.write_from(taken, batch_id, origin)
                else:
                    target.write(taken, batch_id, None)
        finally:
            taken.unpersist()

    session = next(iter(sources.values())).sparkSession
    with held(kept.own) as hold, stored_for(COLUMNAR, session):
        given: dict[str, Any] = dict(sources)
        rows = sql(text, **given)
        writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(kept.place))
        running = triggered(writer, trigger).start()
        listener_of(session).release_after(running, hold)
        return running
