"""From events to the rows of all windows: one chain of aggregations that reads events once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.engines.spark.native.events import TIME, Events
from weft.engines.spark.native.levels import Level, Levels
from weft.engines.spark.sql.fan_out import NODE, START, constant, fan_out
from weft.engines.spark.sql.partials import Aggregation, NativePartial, SpreadPartial
from weft.engines.spark.text_rows import TextRows, taken

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from weft.aggregates import Partial
    from weft.engines.spark.sql.readings import Shape
    from weft.engines.spark.text_rows import Rows
    from weft.plan import Node, Roll

ENTRY, LAST = "entry", "last"


@dataclass(frozen=True, slots=True)
class Branch:
    """Windows that are computed together: the same partials of the same events."""

    rolls: tuple[Roll, ...]
    partials: tuple[Partial, ...]
    spread: bool = False  # the one partial is kept as rows


@dataclass(frozen=True)
class Flow:
    """Compiles one branch to rows (keys, window, start, partials)."""

    events: Events
    frame: DataFrame
    branch: Branch
    numbers: Mapping[Shape, int]  # the windows of the scope
    natives: Mapping[Partial, NativePartial]
    names: Mapping[Partial, str]
    with_last: bool  # keep the time of the last event, which ends a session
    own_partials_only: bool  # other partials of a window come from elsewhere
    whole: Levels | None = field(default=None, kw_only=True)  # where others have the same first one

    @cached_property
    def levels(self) -> Levels:
        """The order in which the windows are computed."""
        return Levels(self.branch.rolls, self.numbers, self.whole)

    def first_level(self) -> DataFrame:
        """Return what is made of events, for all windows of the branch."""
        return taken(next(self.steps()))

    def above(self, first: DataFrame, rolls: tuple[Roll, ...]) -> Rows:
        """Return the rows of some windows, made of the rows of the first level."""
        partials = tuple(dict.fromkeys(p for roll in rolls for p in roll.partials))
        own = replace(self, branch=Branch(rolls, partials), whole=self.levels)
        (lowest, *_), (needed, *others) = self.levels, own.levels
        rows: Rows = TextRows(first)
        if needed.places < lowest.places:
            listed = ", ".join(map(str, sorted(needed.places)))
            rows = rows.where(f"{NODE} IN ({listed})")
        for level in others:
            rows = own._from_rows(rows, level)
        return own._handed_out(rows)

    def _handed_out(self, rows: Rows) -> Rows:
        return self._by_window(rows)

    def rows(self) -> Rows:
        """Return the rows of every window of the branch."""
        *_, rows = self.steps()
        if self.branch.spread:
            rows = self._collapsed(rows)
        return self._by_window(rows)

    def steps(self) -> Iterator[Rows]:
        """Yield the rows of level after level, the last of which has every window."""
        first, *others = self.levels
        rows = self._from_events(first)
        yield rows
        if others:
            rows = self._clustered(rows)
        for level in others:
            rows = self._from_rows(rows, level)
            yield rows

    def _clustered(self, rows: Rows) -> Rows:
        """Bring rows of a key together: no further level moves a row."""
        return rows.repartition(*self.events.keys) if self.events.keys else rows

    def counts(self) -> dict[Node, int]:
        """Count the rows of every node of the branch; nothing where a partial is many rows."""
        if self.branch.spread:
            return {}
        counted = [
            taken(rows).groupBy(NODE).count().selectExpr(f"{height} AS height", NODE, "count")
            for height, rows in enumerate(self.steps(), 1)
        ]
        found = reduce(lambda a, b: a.union(b), counted).collect()
        return self.levels.by_node({(row[0], row[1]): row[2] for row in found})

    @property
    def _keys(self) -> tuple[str, ...]:
        return (*self.events.keys, ENTRY) if self.branch.spread else self.events.keys

    @property
    def _columns(self) -> tuple[str, ...]:
        own = tuple(self.names[p] for p in self.branch.partials)
        return (*own, LAST) if self.with_last else own

    @property
    def _source(self) -> Rows:
        return TextRows(self.frame)

    def _from_events(self, level: Level) -> Rows:
        rows = self._source
        if self.branch.spread:
            (partial,) = self.branch.partials
            native = self.natives[partial]
            assert isinstance(native, SpreadPartial)
            rows = rows.selectExpr("*", f"{native.entry(self.events.args(partial))} AS {ENTRY}")
        kept = (*self._keys, TIME, *self.events.argument_columns)
        return self._aggregated(rows, kept, level, self._lifted(), from_rows=False)

    def _lifted(self) -> dict[str, Aggregation]:
        """How events are folded into each column."""
        made = {
            self.names[p]: self.natives[p].lift(self.names[p], self.events.args(p), TIME)
            for p in self.branch.partials
        }
        if self.with_last:
            made[LAST] = Aggregation({LAST: f"max({TIME})"})
        return made

    def _from_rows(self, rows: Rows, level: Level) -> Rows:
        made = {
            self.names[p]: self.natives[p].combine(self.names[p], self.events.arg_types(p))
            for p in self.branch.partials
        }
        if self.with_last:
            made[LAST] = Aggregation({LAST: f"max({LAST})"})
        return self._aggregated(rows, (*self._keys, *self._columns), level, made, from_rows=True)

    def _aggregated(
        self,
        rows: Rows,
        kept: Sequence[str],
        level: Level,
        made: Mapping[str, Aggregation],
        *,
        from_rows: bool,
    ) -> Rows:
        """Fan rows out to the places of one level, and aggregate."""
        copies = self._copied(rows, kept, level, from_rows=from_rows)
        if len(level.places) > 1:
            return aggregated(copies, (*self._keys, NODE, START), made)
        # A column that is everywhere the same would still be hashed and moved.
        node = f"{min(level.places)} AS {NODE}"
        return aggregated(copies, (*self._keys, START), made, (node,))

    def _copied(self, rows: Rows, kept: Sequence[str], level: Level, *, from_rows: bool) -> Rows:
        """Fan rows out to the places of one level."""
        # Where sessions begin is told by columns of their own.
        narrow = from_rows and not self.with_last
        return fan_out(rows, kept, level.readings, level.special, from_rows=narrow)

    def _collapsed(self, rows: Rows) -> Rows:
        (partial,) = self.branch.partials
        native, name = self.natives[partial], self.names[partial]
        assert isinstance(native, SpreadPartial)
        made = {name: native.collapse(name, ENTRY)}
        if self.with_last:
            made[LAST] = Aggregation({LAST: f"max({LAST})"})
        return aggregated(rows, (*self.events.keys, NODE, START), made)

    def _by_window(self, rows: Rows) -> Rows:
        """Number rows by their window, and blank partials that its Roll does not have.

        All nodes of a level are aggregated alike, so a row also carries partials that were asked
        of other windows; from an overlapping feeder they may even be wrong.
        """
        emitted = self.levels.emitted
        windows = [self.numbers[shape] for _, shape in emitted if shape is not None]
        columns = {name: name for name in self._columns}
        if self.own_partials_only:
            for partial in self.branch.partials:
                has = [partial in node.partials for node, _ in emitted]
                if not all(has):
                    name = self.names[partial]
                    known = f"get({constant(has, 'array<boolean>')}, {NODE})"
                    columns[name] = f"CASE WHEN {known} THEN {name} END"
        if windows == list(range(len(windows))) and all(n == c for n, c in columns.items()):
            return rows
        return rows.selectExpr(
            *self.events.keys,
            f"get({constant(windows, 'array<int>')}, {NODE}) AS {NODE}",
            START,
            *(f"{column} AS {name}" for name, column in columns.items()),
        )


def aggregated(
    rows: Rows,
    by: Sequence[str],
    made: Mapping[str, Aggregation],
    constants: Sequence[str] = (),
) -> Rows:
    """Group rows, aggregate, and finish partials that are made of several aggregates.

    Spark's quick hash table mixes the first column best and the last hardly at all: starts that
    lie a slide apart, taken last, collide with those of other keys and leave it for a slower one.
    """
    first_starts = sorted(by, key=lambda name: name != START)
    whole = all(a.result is None for a in made.values())
    finished = [f"{a.result or name} AS {name}" for name, a in made.items()]
    if isinstance(rows, TextRows) and all(a.is_text for a in made.values()):
        texts = [f"{e} AS {name}" for a in made.values() for name, e in a.aggregates.items()]
        if whole:
            return rows.grouped(first_starts, [*texts, *constants])
        return rows.grouped(first_starts, texts).selectExpr(*by, *finished, *constants)
    calls = [column for a in made.values() for column in a.columns()]
    grouped = taken(rows).groupBy(*first_starts)
    if whole:
        return grouped.agg(*calls, *map(F.expr, constants))
    return grouped.agg(*calls).selectExpr(*by, *finished, *constants)
