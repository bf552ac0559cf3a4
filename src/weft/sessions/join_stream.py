"""A join in a session: batches of its inputs in, results out at each slide or after each batch.

Between batches the placement of early aggregation is looked at again: what the inputs bring is
measured, and the plan changes when that saves more until the next look than it costs to change.
"""

from __future__ import annotations

from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from weft.cost.joins.instants import InstantCost
from weft.cost.joins.tuples import (
    ExpectedEstimates,
    TupleCost,
    local_prices,
    placement_name,
    placements,
)
from weft.cost.prices import coefficients_of
from weft.engines.local.joins.continuous.join import ContinuousJoin
from weft.engines.local.joins.evaluate import instance_ends
from weft.engines.local.joins.operator import JoinOperator
from weft.engines.local.values.frame import plain
from weft.engines.local.windows.events import read_times
from weft.errors import QueryError
from weft.plan import Join
from weft.sessions.source_stream import check_batch
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from weft.cost.joins.tuples import Placement
    from weft.kernels.partials import Int64s
    from weft.plan import Emit, JoinSide, Plan

EPOCH_EVENTS = 1 << 15  # after so many events of a join its placement is looked at again
_SECOND_US = 1e6


class Switch(NamedTuple):
    """One change of placement: after how many events, from what, to what."""

    events: int
    before: str
    after: str


class JoinMetrics(NamedTuple):
    """What one join of a session has done, and how it runs now."""

    placement: str
    switches: tuple[Switch, ...]
    events: int
    late: int
    matched: int  # rows that updated the result


@dataclass(slots=True)
class JoinStream:
    """One join of a session; it starts when a batch of every input has told its columns."""

    plan: Plan  # of this join alone
    delay_us: int
    continuous: bool = False
    epoch_events: int = EPOCH_EVENTS
    waiting: list[tuple[str, pa.Table]] = field(default_factory=list)
    operator: JoinOperator | ContinuousJoin | None = None
    schemas: dict[str, pa.Schema] = field(default_factory=dict)  # of the sources, once it runs
    latest_us: dict[int, int] = field(default_factory=dict)  # per stream of the join
    first_us: dict[int, int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)  # events per input
    advanced_us: int | None = None
    late: int = 0
    looked_at: int = 0
    switches: list[Switch] = field(default_factory=list)

    @property
    def emit(self) -> Emit:
        """The result of the join."""
        return self.plan.emits[0]

    @property
    def sides(self) -> tuple[JoinSide, ...]:
        """The inputs of the join."""
        join = self.emit.inputs[0]
        assert isinstance(join, Join)
        return join.sides

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that are read."""
        return tuple(dict.fromkeys(side.scan.source for side in self.sides))

    @property
    def metrics(self) -> JoinMetrics:
        """Return counts, and the placement as it is now."""
        matched = 0
        if isinstance(self.operator, JoinOperator):
            matched = self.operator.matched
        elif self.operator is not None:
            matched = int(self.operator.state.counters[1])
        return JoinMetrics(
            placement_name(self.early),
            tuple(self.switches),
            sum(self.taken.values()),
            self.late,
            matched,
        )

    @property
    def early(self) -> Placement:
        """Which inputs are aggregated early at present."""
        if self.operator is None:
            return tuple(side.early for side in self.sides)
        return self.operator.early

    def push(self, batches: Mapping[str, pa.Table]) -> pa.Table | None:
        """Take batches; return the results they complete, None while nothing is known of them."""
        with self.unchanged_by_errors():
            for source, table in batches.items():
                self._check(source, table.schema)
            self.waiting = [*self.waiting, *batches.items()]
            if self.operator is None and not self.start():
                return None
            taken, self.waiting = self.waiting, []
            for source, table in taken:
                self._take(source, table)
            if isinstance(self.operator, ContinuousJoin):
                for together in _together(taken):
                    self.operator.push_together(together)
            self._look()
            if isinstance(self.operator, ContinuousJoin):
                return self.operator.result()
            return self._closed(self._watermark_us())

    def start(self) -> bool:
        """Make the operator once the columns of all sources are known; tell whether they are."""
        known = self.schemas or {name: batch.schema for name, batch in self.waiting}
        if not {*self.sources} <= known.keys():
            return False
        make = ContinuousJoin if self.continuous else JoinOperator
        self.operator, self.schemas = make.of(self.emit, known), known
        return True

    def _check(self, source: str, schema: pa.Schema) -> None:
        """Refuse columns of other types than those of the first batch."""
        known = self.schemas or {name: batch.schema for name, batch in reversed(self.waiting)}
        if source in known:
            scans = [side.scan for side in self.sides if side.scan.source == source]
            check_batch(source, known[source], schema, scans)

    @contextmanager
    def unchanged_by_errors(self) -> Iterator[None]:
        """Forget what a batch brought that cannot be taken; keys that it brought may stay known."""
        before = {each.name: copy(getattr(self, each.name)) for each in fields(self)}
        operator = self.operator
        stores = operator.stores if isinstance(operator, JoinOperator) else ()
        runs = [[*store.runs] for store in stores]
        try:
            yield
        except BaseException:
            for name, value in before.items():
                setattr(self, name, value)
            for store, held in zip(stores, runs, strict=True):
                store.runs = held
            raise

    def advance(self, to_us: int | None) -> pa.Table | None:
        """Move the watermark to a time, or to the end; return the results that this completes."""
        if self.operator is None:
            return None
        if isinstance(self.operator, ContinuousJoin):
            return self.operator.result()
        if to_us is None:
            return self.operator.advance(None)
        return self._closed(to_us)

    def _closed(self, to_us: int | None) -> pa.Table:
        assert isinstance(self.operator, JoinOperator)
        if to_us is None or (self.advanced_us is not None and to_us <= self.advanced_us):
            return self.operator.schema.empty_table()
        self.advanced_us = to_us
        return self.operator.advance(to_us)

    def _watermark_us(self) -> int | None:
        """The slowest stream decides, less the delay; None while one has sent nothing."""
        streams = [at for at, side in enumerate(self.sides) if side.window is not None]
        if any(at not in self.latest_us for at in streams):
            return None
        return min(self.latest_us[at] for at in streams) - self.delay_us

    def _take(self, source: str, table: pa.Table) -> None:
        for place, side in enumerate(self.sides):
            if side.scan.source == source:
                kept = self._in_time(place, side, table)
                self.taken[place] = self.taken.get(place, 0) + kept.num_rows
                if isinstance(self.operator, JoinOperator):
                    self.operator.process(place, kept)

    def _in_time(self, place: int, side: JoinSide, table: pa.Table) -> pa.Table:
        """Drop and count events that belong to a result which is out; note how far time has come.

        A table must be there before the first result, for it has no time.
        """
        passed_us = None if self.continuous else self.advanced_us
        if side.window is None:
            if passed_us is not None and table.num_rows:
                raise QueryError(
                    f"{side.alias} has no window, and rows came for it after the first results",
                    hint=f"push the table first, or give it a window: {side.alias} [UNTIL NOW]",
                )
            return table
        assert side.scan.time is not None
        times, valid = read_times(plain(table[side.scan.time]), side.scan.time)
        timed = times if valid is None else times[valid]
        if timed.size:
            latest, first = int(timed.max()), int(timed.min())
            self.latest_us[place] = max(self.latest_us.get(place, latest), latest)
            self.first_us[place] = min(self.first_us.get(place, first), first)
        if passed_us is None:
            return table
        late = self._first_instants(side, times) <= passed_us
        if valid is not None:
            late &= valid
        if not late.any():
            return table
        self.late += int(late.sum())
        return table.filter(~late)

    def _first_instants(self, side: JoinSide, times_us: Int64s) -> Int64s:
        """Return the first result that each event belongs to."""
        assert isinstance(self.operator, JoinOperator)
        windows = self.operator.shape.instants.periodic
        if isinstance(side.window, PeriodicWindow):
            windows = (side.window,)
        ends = [instance_ends(window, times_us + window.slide_us) for window in windows]
        found: Int64s = np.minimum.reduce(ends)
        return found

    def _look(self) -> None:
        """Measure the inputs, and change the placement if that pays within the next epoch."""
        events = sum(self.taken.values())
        if self.operator is None or events - self.looked_at < self.epoch_events:
            return
        loads = self.operator.loads(tuple(map(self._rate, range(len(self.sides)))))
        fastest = max((load.rate for load in loads), default=0.0)
        epoch_seconds = (events - self.looked_at) / fastest if fastest else 0.0
        self.looked_at = events
        if isinstance(self.operator, ContinuousJoin):
            prices = local_prices(len(loads))
            model: TupleCost | InstantCost = TupleCost(ExpectedEstimates(loads), prices)
            rebuild = prices.set_update
        else:
            coefficients = coefficients_of("local-joins")
            widths = tuple(len(side.partials) for side in self.sides)
            instants = self.operator.shape.instants
            model = InstantCost(loads, instants, widths, coefficients)
            rebuild = coefficients.fold_event_ns + coefficients.lift_ns
        now, best = self.early, min(placements(len(loads)), key=model.cost)
        changed = [load for load, a, b in zip(loads, now, best, strict=True) if a != b]
        saved = (model.cost(now) - model.cost(best)) * epoch_seconds
        if saved > rebuild * sum(load.window_tuples for load in changed):
            self.place(best)
        if isinstance(self.operator, ContinuousJoin):
            self.operator.order_probes(loads)

    def place(self, early: Placement) -> None:
        """Change which inputs are aggregated early; results stay what they are."""
        if self.operator is None or early == self.early:
            return
        before, events = placement_name(self.early), sum(self.taken.values())
        self.operator.place(early)
        self.switches.append(Switch(events, before, placement_name(early)))

    def _rate(self, place: int) -> float:
        if place not in self.latest_us:
            return 0.0
        span = self.latest_us[place] - self.first_us[place]
        return self.taken.get(place, 0) * _SECOND_US / max(span, 1)


def _together(batches: Sequence[tuple[str, pa.Table]]) -> list[dict[str, pa.Table]]:
    """Put batches of different sources together; those of one source stay in their order."""
    found: list[dict[str, pa.Table]] = []
    for source, table in batches:
        free = next((one for one in found if source not in one), None)
        if free is None:
            found.append(free := {})
        free[source] = table
    return found
