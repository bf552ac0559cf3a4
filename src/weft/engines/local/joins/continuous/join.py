"""A join whose result is up to date after every batch: windows, aggregation sets, increments.

The execution of Tran & Lee: each tuple that arrives or expires is probed against the aggregation
sets, or the windows, of the other inputs, and what matches is added to the result or taken out.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.cost.joins.tuples import ExpectedEstimates, TupleCost, local_prices
from weft.engines.joins import join_schema, variable_types
from weft.engines.local.joins.continuous.columns import JoinColumns, drifted
from weft.engines.local.joins.continuous.extremes import extremes_of
from weft.engines.local.joins.continuous.pool import (
    emptied,
    live_slots,
    loads_of,
    regrouped,
    state_of,
    thinned,
    with_pairs,
    with_room,
    with_values,
)
from weft.engines.local.joins.continuous.state import (
    EARLY,
    FIRST_ROW,
    GROUP,
    LAST,
    LOST,
    NOTHING,
    PAIR,
    RANGE_US,
    ROW,
    SIDE,
    STOP_ROW,
    TIME,
    TOTAL,
    TUPLES,
    VALUE,
    Admitted,
    State,
)
from weft.engines.local.joins.continuous.tuples import place, run
from weft.engines.local.joins.inputs import InputCodes, encoded, read_input
from weft.engines.local.output.closed import Closed
from weft.engines.local.output.tables import result_table
from weft.engines.local.partials.columns import KernelPartials
from weft.engines.local.values.distinct import distinct
from weft.engines.local.values.keys import ColumnCodes, KeyCodes
from weft.engines.local.windows.close import lowered
from weft.errors import DataError, UnsupportedError
from weft.kernels.partials import Partials, operation_of
from weft.kernels.ranges.prefix_sums import largest_magnitude
from weft.plan import Join
from weft.plan.joins import JOINT, JoinShape, join_query
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.aggregates import Partial
    from weft.cost.joins.tuples import Method, Placement, SideLoad
    from weft.engines.local.joins.continuous.state import Int64s
    from weft.engines.local.partials.columns import Held
    from weft.engines.local.windows.events import Events
    from weft.plan import Emit
    from weft.query import JoinQuery

MOST_GROUPS = 1 << 24  # of the result, which is a dense array of them
_LEAST_ROOM = 1024
Arrival = tuple[int, "Events"]  # an input, and what came for it
LONG_AGO_US = -(2**61)  # when rows of tables came that were there before any event


@dataclass(slots=True)
class ContinuousJoin:
    """One join, its windows up to the latest event, and its result as of then.

    A window holds what is younger than its range, whatever its slide; late tuples that are still
    inside take part. All inputs must share the same join columns.
    """

    query: JoinQuery
    shape: JoinShape
    join: Join
    schema: pa.Schema
    types: tuple[pa.DataType, ...]
    columns: JoinColumns
    variables: tuple[ColumnCodes, ...]
    values: KeyCodes  # of all variables together: the join value
    codes: tuple[InputCodes, ...]
    keys: KeyCodes
    state: State
    pairs_of_side: list[Int64s]  # local pair -> pair
    group_room: list[int]  # per input, how many groups the result has places for
    used: int = 0  # slots of the pool
    now_us: int | None = None
    greatest_whole: int = 0
    rebuilds: int = 0
    timeless: int = 0

    @classmethod
    def of(
        cls, emit: Emit, sources: Mapping[str, pa.Schema], method: Method = "hash"
    ) -> ContinuousJoin:
        """Prepare a join as its plan places it, over sources of these schemas."""
        join, query = emit.inputs[0], join_query(emit)
        assert isinstance(join, Join)
        shape = JoinShape.of(query)
        inputs = range(len(query.inputs))
        if any(shape.variables_of(side) != shape.variables_of(0) for side in inputs):
            raise UnsupportedError(
                f"join {query.name!r} ties its inputs by different columns, and only inputs with "
                "the same join columns are joined tuple by tuple",
                hint="take the results at each slide",
            )
        for (_, call), (side, _) in zip(query.aggs, shape.calls, strict=True):
            if side == JOINT:
                raise UnsupportedError(
                    f"{call} reads columns of several inputs, and is not kept up to date tuple by "
                    "tuple",
                    hint="take the results at each slide",
                )
        partials = [(side, p) for side in inputs for p in shape.partials_of(side)]
        columns = JoinColumns.of(partials, [sources[i.source] for i in query.inputs])
        return cls(
            query,
            shape,
            join,
            join_schema(query, sources),
            variable_types(query, sources),
            columns,
            tuple(ColumnCodes() for _ in shape.variables),
            KeyCodes(len(shape.variables)),
            tuple(InputCodes.of(shape, side) for side in inputs),
            KeyCodes(len(query.keys)),
            state_of(join, columns, method),
            [np.empty(0, np.int64) for _ in inputs],
            [1 for _ in inputs],
        )

    @property
    def _now_us(self) -> int:
        return LONG_AGO_US if self.now_us is None else self.now_us

    @property
    def early(self) -> Placement:
        """Which inputs are aggregated early at present."""
        return tuple(bool(e) for e in self.state.rules[:, EARLY])

    def push_together(self, batches: Mapping[str, pa.Table]) -> None:
        """Take batches of several sources, all their tuples in the order of time."""
        self.settle(self.admit(batches))

    def admit(self, batches: Mapping[str, pa.Table]) -> Admitted:
        """Write down the tuples of batches, in the order of time; the result is as it was.

        That is the same for every placement; `settle` does what they differ in.
        """
        arrived: list[Arrival] = []
        for side, given in enumerate(self.join.sides):
            if given.scan.source in batches:
                timed = read_input(given, batches[given.scan.source])
                self.timeless += timed.timeless
                own, shared = self.codes[side], self.variables
                events = encoded(timed, self.shape, side, self.types, own, shared)
                arrived += [(side, events)] if len(events) else []
        if not arrived:
            return Admitted(self.used, True)
        self._make_room(arrived)
        first, stop = self.used, self.used + sum(len(events) for _, events in arrived)
        in_order = self._append(arrived)
        self._check_sums(first, stop)
        for side, events in arrived:
            if self.join.sides[side].window is not None:
                self.now_us = max(self._now_us, int(events.times_us.max()))
        self.used = stop
        return Admitted(first, in_order)

    def settle(self, admitted: Admitted) -> None:
        """Let tuples that were written down arrive, and others expire; the result is up to date."""
        if not admitted.in_order:
            self._rebuild(admitted.first)
        elif admitted.first < self.used:
            run(self.state, admitted.first, self.used, self._now_us)

    def _append(self, arrived: Sequence[Arrival]) -> bool:
        """Write tuples into the pool, oldest first; tell whether none is older than those there."""
        placed: list[tuple[Int64s, ...]] = []
        for side, events in arrived:
            moving = self.join.sides[side].window is not None
            times = events.times_us if moving else np.full(len(events), self._now_us)
            pairs = self.pairs_of_side[side][events.keys]
            placed.append((np.full(len(events), side), times, pairs))
        sides, times, pairs = (np.concatenate(parts) for parts in zip(*placed, strict=True))
        order = np.argsort(times, kind="stable")
        state, rows = self.state, slice(self.used, self.used + order.size)
        read = [self.columns.read(side, events.timed) for side, events in arrived]
        for at, array in enumerate((state.tuple_whole, state.tuple_real, state.tuple_order)):
            array[rows] = np.concatenate([columns[at] for columns in read])[order]
        for at, column in ((SIDE, sides), (TIME, times), (PAIR, pairs)):
            state.tuples[rows, at] = column[order]
        return all(self._follow(side, int(times[sides == side].min())) for side, _ in arrived)

    def _follow(self, side: int, time_us: int) -> bool:
        """Tell whether tuples from a time on come after all those of an input's window."""
        window = self.state.windows[side]
        return bool(window[TUPLES] == 0 or self.state.tuples[window[LAST], TIME] <= time_us)

    def _make_room(self, arrived: Sequence[Arrival]) -> None:
        """Number new join values, pairs and groups, and make the arrays large enough for them."""
        state, rows = self.state, sum(len(events) for _, events in arrived)
        if self.used + rows > state.tuples.shape[0] and self.used > _LEAST_ROOM:
            state, self.used = thinned(state, self.used)
        self.state = with_room(state, tuples=self.used + rows)
        for side, _ in arrived:
            known = self.pairs_of_side[side]
            more = len(self.codes[side].pairs) - known.size
            self.pairs_of_side[side] = np.append(known, np.full(max(more, 0), NOTHING))
        wanted = {side: distinct(events.keys) for side, events in arrived}
        for side in wanted:
            self._number_pairs(side, wanted)
        for side in wanted:
            self._number_groups(side)

    def _number_pairs(self, side: int, wanted: Mapping[int, Int64s]) -> None:
        """Give pairs of an input places in its set; those that other inputs want keep theirs."""
        fresh = wanted[side][self.pairs_of_side[side][wanted[side]] < 0]
        if not fresh.size:
            return
        rows = np.concatenate([self.pairs_of_side[s][local] for s, local in wanted.items()])
        *columns, _ = self.codes[side].split()
        values = self.values.encode([pa.array(c[fresh]) for c in columns], fresh.size)
        self.state, self.pairs_of_side = with_pairs(
            with_values(self.state, len(self.values)),
            self.used,
            self.pairs_of_side,
            side,
            rows[rows >= 0],
            fresh,
            values.astype(np.int64),
        )

    def _number_groups(self, side: int) -> None:
        """Give the groups of an input places in the result; all move when there are too many."""
        wanted = list(self.group_room)
        while wanted[side] < len(self.codes[side].groups):
            wanted[side] *= 2
        if prod(wanted) > MOST_GROUPS:
            raise UnsupportedError(
                f"join {self.query.name!r} has more than {MOST_GROUPS:,} combinations of groups",
                hint="take the results at each slide, or group by fewer columns",
            )
        if wanted != self.group_room or not self.state.sizes.size:
            self.state = regrouped(self.state, self.group_room, wanted, prod(wanted))
            self.group_room = wanted
            for other in range(len(wanted)):
                self._place_groups(other)
        self._place_groups(side)

    def _place_groups(self, side: int) -> None:
        rows = self.pairs_of_side[side]
        local = np.flatnonzero(rows >= 0)
        if local.size:
            stride = prod(self.group_room[side + 1 :])
            pairs, own = self.state.pairs, rows[local]
            pairs[own, GROUP] = self.codes[side].split()[-1][local] * stride
            early = own[pairs[own, ROW] != NOTHING]
            self.state.rows[pairs[early, ROW], GROUP] = pairs[early, GROUP]

    def _check_sums(self, first: int, stop: int) -> None:
        """Refuse integers whose sums could leave 64 bits, which wrap without a sign."""
        whole = self.state.tuple_whole[first:stop]
        if whole.size:
            self.greatest_whole = max(self.greatest_whole, largest_magnitude(whole.ravel()))
        held = [float(n) + stop - first for n in self.state.windows[:, TUPLES]]
        if self.greatest_whole * prod(held) >= 2.0**63:
            raise DataError(
                f"sums of integers up to {self.greatest_whole} over this join may leave 64 bits",
                hint="sum a cast to double",
            )

    def _rebuild(self, arrived: int) -> None:
        """Compute everything anew from the windows: late tuples came, or rounding has piled up.

        Slots from `arrived` on have not been run yet.
        """
        if self.now_us is None:
            return
        state = self.state
        kept = np.concatenate([live_slots(state, arrived), np.arange(arrived, self.used)])
        ages = self.now_us - state.tuples[kept, TIME]
        kept = kept[ages < state.rules[state.tuples[kept, SIDE], RANGE_US]]
        kept = kept[np.argsort(state.tuples[kept, TIME], kind="stable")]
        fresh = with_room(
            emptied(state),
            tuples=state.tuples.shape[0],
            pairs=state.pairs.shape[0],
            groups=state.sizes.size,
        )
        for name in ("tuples", "tuple_whole", "tuple_real", "tuple_order"):
            getattr(fresh, name)[: kept.size] = getattr(state, name)[kept]
        fresh.pairs[:, VALUE], fresh.pairs[:, ROW] = state.pairs[:, VALUE], NOTHING
        self.state = with_values(fresh, state.values.shape[1])
        for edge in (FIRST_ROW, STOP_ROW):  # of regions without rows
            self.state.values[:, :, edge] = state.values[:, :, FIRST_ROW]
        for side in range(len(self.group_room)):
            self._place_groups(side)
        self.used = kept.size
        self.rebuilds += 1
        run(self.state, 0, self.used, self.now_us)

    def place(self, early: Placement) -> None:
        """Change which inputs are aggregated early; results stay what they are."""
        for side, wanted in enumerate(early):
            place(self.state, side, int(wanted))

    def order_probes(self, loads: Sequence[SideLoad]) -> None:
        """Let tuples probe the other inputs by rank, as they are now; results stay what they are.

        An input that lets few through, for what it costs to look at it, goes first.
        """
        estimates = ExpectedEstimates(tuple(loads))
        model = TupleCost(estimates, local_prices(len(loads)), self.method)
        for side in range(len(loads)):
            self.state.order[side] = model.probe_order(side, self.early)

    @property
    def method(self) -> Method:
        """How rows that match are found."""
        return "nested loop" if self.state.nested_loop[0] else "hash"

    def loads(self, rates: tuple[float, ...]) -> tuple[SideLoad, ...]:
        """Describe the inputs as they are now to the cost model, at these rates."""
        return loads_of(self.state, self.used, rates)

    def result(self) -> pa.Table:
        """Return the result as of the latest event, in the order of keys."""
        groups = np.flatnonzero(self.state.sizes)
        if drifted(self.state.result_real[groups]):
            self._rebuild(self.used)
            groups = np.flatnonzero(self.state.sizes)
        if self.now_us is None or not groups.size:
            return self.schema.empty_table()
        closed = Closed(
            self.query.name,
            np.zeros(groups.size, np.int64),
            self._keys(groups),
            np.full(groups.size, self._start_us()),
            np.full(groups.size, self.now_us + 1),
            self._values(groups),
        )
        return result_table(self.schema, [self.query.label], self.keys, [closed])

    def _start_us(self) -> int:
        assert self.now_us is not None
        longest = max(w.range_us for w in self.shape.windows if isinstance(w, PeriodicWindow))
        return self.now_us + 1 - longest

    def _keys(self, groups: Int64s) -> Any:
        rest, decoded = groups, {}
        for side in reversed(range(len(self.group_room))):
            own = rest % self.group_room[side]
            rest = rest // self.group_room[side]
            decoded[side] = iter(self.codes[side].groups.decode(own))
        return self.keys.encode([next(decoded[key.side]) for key in self.shape.keys], groups.size)

    def _values(self, groups: Int64s) -> tuple[Any, ...]:
        sums = self.state.result_real[groups]
        found = self.columns.held(
            self.state.result_whole[groups],
            sums[:, :, TOTAL],
            sums[:, :, LOST],
            extremes_of(self.state, [own[own >= 0] for own in self.pairs_of_side], groups),
        )
        sizes = self.state.sizes[groups]
        counts = Partials("count_rows", operation_of("count_rows", "int64"), sizes)
        rows: Held = KernelPartials(counts, (None,))
        types = self.schema.types[-len(self.query.aggs) :]
        outputs: list[Any] = []
        for (side, call), type in zip(self.shape.calls, types, strict=True):
            known: dict[Partial, Held] = {
                p: found[side, p] if p.args else rows for p in call.partials
            }
            outputs += lowered([("", call)], known, (type,))
        return tuple(outputs)
