"""The `native` strategy: Catalyst expressions only, no Python on the way of an event.

Events are hash-aggregated once per key and slice; slices are fanned out to their windows by a
constant table and aggregated again. That is the technique `fan_out`; a plan that names another is
refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.cost.strategies import native_obstacles
from weft.engines.base import Unsupported
from weft.engines.spark.native.aggregation import LAST, Branch, Flow
from weft.engines.spark.native.emit import Emission
from weft.engines.spark.native.events import Events, check_inputs
from weft.engines.spark.native.sessions import (
    SessionFlow,
    from_events,
    gaps_of,
    may_be_sliced,
    with_sessions,
)
from weft.engines.spark.native.shared_events import events_of
from weft.engines.spark.native.shared_flow import SharedFlow
from weft.engines.spark.scopes import Compiled
from weft.engines.spark.shared_rows import IN_MEMORY
from weft.engines.spark.sql.fan_out import NODE, START
from weft.engines.spark.sql.kinds import is_holistic, is_spread, native_of
from weft.engines.spark.sql.lower import rank_of
from weft.engines.spark.sql.partials import NativePartial, Ranked
from weft.engines.spark.sql.readings import Shape, shapes_of
from weft.engines.spark.text_rows import taken
from weft.plan import Node, Roll, Scan
from weft.window import SessionWindow, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from weft.aggregates import Partial
    from weft.engines.spark.shared_rows import Keep
    from weft.engines.spark.text_rows import Rows
    from weft.plan import Emit
    from weft.plan.planned_scope import PlannedScope


class NativeStrategy:
    """Compiles a scope to DataFrames that Spark runs without leaving the JVM."""

    name = "native"

    def __init__(self, keep: Keep = IN_MEMORY) -> None:
        self._keep = keep

    def unsupported(self, scope: PlannedScope) -> tuple[Unsupported, ...]:
        """Windows that events delimit one by one, except sessions, and aggregates of your own."""
        found = [Unsupported(node, why) for node in scope.nodes for why in native_obstacles(node)]
        return tuple(found)

    def compile(self, scope: PlannedScope, source: DataFrame) -> Compiled:
        """Return the lazy result of each query; those of one scope share their rows."""
        events = Events.of(scope, source)
        check_inputs(scope.emits, events.types)
        return _Compilation(scope, events).compiled(self._keep)

    def compile_together(self, scopes: Sequence[PlannedScope], source: DataFrame) -> Compiled:
        """Return the lazy results of scopes with several key sets, of events that are read once."""
        events = events_of(scopes, source)
        flow = SharedFlow.of(scopes, events)
        by = tuple(flow.all_keys.values()) or (START,)
        early = self._keep.early
        rows = self._keep.hold(flow.first_level() if early else taken(flow.rows()), by)
        results: dict[str, Rows] = {}
        for scope, own in zip(scopes, events, strict=True):
            for query in scope.queries:
                emits = scope.emits_of(query)
                made = flow.above(rows, rolls_of(emits)) if early else rows
                results[query] = flow.emission(made, scope, own).result(emits)
        return Compiled(results, (rows,))

    def count_rows(self, scope: PlannedScope, source: DataFrame) -> dict[Node, int]:
        """Count the rows of slices and windows, those that no query sees included.

        This computes them once more: a run does not count what it hands from level to level.
        """
        if scope.regroups:
            return SharedFlow.of((scope,), events_of((scope,), source)).counts()
        return _Compilation(scope, Events.of(scope, source)).counts()


@dataclass(frozen=True)
class _Compilation:
    scope: PlannedScope
    events: Events

    @cached_property
    def _names(self) -> dict[Partial, str]:
        return {partial: f"p{i}" for i, partial in enumerate(self.scope.partials)}

    @cached_property
    def ranks(self) -> dict[Partial, tuple[float, ...]]:
        """The ranks asked of every partial that holds all values."""
        asked: dict[Partial, dict[float, None]] = {}
        for emit in self.scope.emits:
            for _, call in emit.outputs:
                for partial in call.partials:
                    if is_holistic(partial):
                        asked.setdefault(partial, {})[rank_of(call)] = None
        return {partial: tuple(ranks) for partial, ranks in asked.items()}

    @cached_property
    def _natives(self) -> dict[Partial, NativePartial]:
        made: dict[Partial, NativePartial] = {}
        for partial in self.scope.partials:
            if is_holistic(partial):
                made[partial] = Ranked.at(self.ranks[partial])
            else:
                made[partial] = native_of(partial)
        return made

    @cached_property
    def _windows(self) -> dict[Shape, int]:
        shapes = (shape for roll in self.scope.rolls for shape in shapes_of(roll.window))
        return {shape: i for i, shape in enumerate(dict.fromkeys(shapes))}

    def compiled(self, keep: Keep) -> Compiled:
        branches = self._branches(self.scope.rolls)
        delimited = any(isinstance(roll.window, SessionWindow) for roll in self.scope.rolls)
        if keep.early and not delimited and len(branches) == 1 and not branches[0].spread:
            return self._compiled_early(keep, branches[0])
        sessions = [r for r in self.scope.rolls if isinstance(r.window, SessionWindow)]
        timed = [r for r in self.scope.rolls if not isinstance(r.window, SessionWindow)]
        parts: list[Rows] = []
        if timed:
            parts.append(self._rows(timed, with_last=False))
        if sessions:
            parts.append(self._rows(from_events(sessions, self.scope.scan), with_last=True))
        rows = _united(parts)
        shared = len(self.scope.queries) > 1
        if shared:
            rows = keep.hold(taken(rows), (*(self.events.keys or (START,)), NODE))
        emission = Emission(rows, self.events, self._windows, self._names, self.ranks)
        results = {q: emission.result(self.scope.emits_of(q)) for q in self.scope.queries}
        return Compiled(results, (taken(rows),) if shared else ())

    def _compiled_early(self, keep: Keep, branch: Branch) -> Compiled:
        """Let each query make its windows of the rows that all have made of events."""
        flow = self._flow(branch, with_last=False, apart=False)
        own = {q: self.scope.emits_of(q) for q in self.scope.queries}
        made: dict[str, Rows]
        if len(own) == 1:
            made = dict.fromkeys(own, flow.rows())
        else:
            first = keep.hold(flow.first_level(), self.events.keys or (START,))
            made = {query: flow.above(first, rolls_of(emits)) for query, emits in own.items()}
        results = {
            query: Emission(rows, self.events, self._windows, self._names, self.ranks).result(
                own[query]
            )
            for query, rows in made.items()
        }
        return Compiled(results, ())

    def counts(self) -> dict[Node, int]:
        timed = [r for r in self.scope.rolls if not isinstance(r.window, SessionWindow)]
        flows = (self._flow(b, with_last=False, apart=False) for b in self._branches(timed))
        return {node: rows for flow in flows for node, rows in flow.counts().items()}

    def _rows(self, rolls: Sequence[Roll], *, with_last: bool) -> Rows:
        branches = self._branches(rolls)
        shapes = [s for branch in branches for r in branch.rolls for s in shapes_of(r.window)]
        apart = len(set(shapes)) < len(shapes)
        frames = [self._flow(b, with_last=with_last, apart=apart).rows() for b in branches]
        united = _united(frames)
        return self._merged(taken(united)) if apart else united

    def _flow(self, branch: Branch, *, with_last: bool, apart: bool) -> Flow:
        frame, sliced = self.events.frame, with_last and may_be_sliced(branch)
        if with_last and not sliced:
            frame = with_sessions(frame, self.events.keys, gaps_of(branch.rolls))
        return (SessionFlow if sliced else Flow)(
            self.events,
            frame,
            branch,
            self._windows,
            self._natives,
            self._names,
            with_last=with_last,
            own_partials_only=apart,
        )

    def _branches(self, rolls: Sequence[Roll]) -> list[Branch]:
        """Split by how partials are aggregated, so that what Spark can hash is not sorted."""
        holistic = {r.window for r in rolls if any(map(is_holistic, r.partials))}
        read = {f for node in self.scope.nodes if isinstance(node, Roll) for f in node.inputs}
        quick: list[Roll] = []
        slow: dict[Window, Roll] = {}
        for roll in rolls:
            if roll.window in holistic and isinstance(roll.feeder, Scan) and roll not in read:
                # Both read all events of the window: they may as well read them together.
                before = slow.get(roll.window, roll).partials
                both = tuple(dict.fromkeys((*before, *roll.partials)))
                slow[roll.window] = replace(roll, partials=both)
            else:
                quick.append(roll)
        found = [
            Branch(tuple(r for r in group if any(map(fits, r.partials))), _partials(group, fits))
            for group, fits in ((quick, _is_plain), (tuple(slow.values()), _is_one_column))
        ]
        spread = {p: None for r in rolls for p in r.partials if is_spread(p)}
        found += [
            Branch(tuple(r for r in rolls if partial in r.partials), (partial,), spread=True)
            for partial in spread
        ]
        return [branch for branch in found if branch.rolls]

    def _merged(self, rows: DataFrame) -> DataFrame:
        """Bring together partials of the same window that were computed apart."""
        by = (*self.events.keys, NODE, START)
        columns = [name for name in rows.columns if name not in by]
        picked = [
            (F.max(name) if name == LAST else F.first(name, ignorenulls=True)).alias(name)
            for name in columns
        ]
        return rows.groupBy(*by).agg(*picked)


def _united(parts: Sequence[Rows]) -> Rows:
    """Put rows below each other; columns that some do not have are NULL there."""
    if len(parts) == 1:
        return parts[0]
    frames = map(taken, parts)
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)


def rolls_of(emits: Sequence[Emit]) -> tuple[Roll, ...]:
    """Return the windows that results are made of, each once."""
    found = (roll for emit in emits for roll in emit.inputs if isinstance(roll, Roll))
    return tuple(dict.fromkeys(found))


def _is_one_column(partial: Partial) -> bool:
    return not is_spread(partial)


def _is_plain(partial: Partial) -> bool:
    return not is_spread(partial) and not is_holistic(partial)


def _partials(rolls: Sequence[Roll], fits: Callable[[Partial], bool]) -> tuple[Partial, ...]:
    return tuple(dict.fromkeys(p for roll in rolls for p in roll.partials if fits(p)))
