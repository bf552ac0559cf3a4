"""What is held of one input of a join, and what it contributes at each instant.

Rows are slices of an aggregation set where the input is aggregated early, single tuples where it is
not. Both are rows of partials with a count, sorted by (pair, time); a window is a range of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from weft.aggregates import Partial
from weft.cost.joins.tuples import SideLoad
from weft.engines.local.joins.pairs import TooManyRows, expanded, packed, pairs_of_equals
from weft.engines.local.partials.columns import KernelPartials, concat
from weft.engines.local.partials.lift import lift, row_partials
from weft.engines.local.values.distinct import distinct
from weft.engines.local.windows.flow import Flow, merged, slice_batch
from weft.engines.local.windows.instances import closing_instances
from weft.engines.local.windows.rolls import coarser
from weft.engines.local.windows.slices import slices_of_edges
from weft.kernels.grouping.slices import slices_of_classes
from weft.plan import Slice
from weft.window import Edges, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.engines.local.joins.inputs import InputCodes
    from weft.engines.local.partials.columns import Held
    from weft.engines.local.windows.events import Events
    from weft.kernels.grouping.slices import Slices
    from weft.kernels.partials import Int64s
    from weft.plan import JoinSide
    from weft.plan.joins import Instants

COUNT = Partial("count_rows", ())


@dataclass(frozen=True, slots=True, eq=False)
class SideRows:
    """Rows that an input contributes: at which instant, of which pair, with which partials."""

    instants: Int64s  # places in the instants evaluated
    pairs: Int64s
    partials: Mapping[Partial, Held]

    @property
    def counts(self) -> Int64s:
        """How many tuples each row stands for."""
        held = self.partials[COUNT]
        assert isinstance(held, KernelPartials)
        found: Int64s = held.fields[0]
        return found


@dataclass(slots=True)
class SideStore:
    """The rows held of one input, of all batches that are still in some window."""

    side: JoinSide
    codes: InputCodes
    instants: Instants
    early: bool
    slices: Slices
    runs: list[Flow] = field(default_factory=list)

    @classmethod
    def of(cls, side: JoinSide, codes: InputCodes, instants: Instants) -> SideStore:
        """Prepare the store of an input; slices end where its window, or an instant, does."""
        window = side.window
        slices = None
        if isinstance(side.input, Slice):
            slices = slices_of_edges(side.input.edges)
        elif isinstance(window, PeriodicWindow):
            slices = slices_of_edges(Edges.of([window]))
        return cls(
            side,
            codes,
            instants,
            side.early,
            slices or slices_of_classes(instants.classes),
        )

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    @property
    def nbytes(self) -> int:
        """The memory of the rows."""
        return sum(run.nbytes for run in self.runs)

    def add(self, events: Events) -> None:
        """Take a batch of encoded rows."""
        if not len(events):
            return
        if self.early:
            given = self.side.input
            held = given.partials if isinstance(given, Slice) else self.side.partials
            self.runs.append(slice_batch(events, self.slices, held, 1))
            return
        order = np.lexsort((events.times_us, events.keys))
        times = events.times_us
        partials: dict[Partial, Held] = {}
        for partial in self.side.partials:
            arguments = tuple(map(events.timed.argument, partial.args))
            partials[partial] = row_partials(lift(partial, arguments, times), times).take(order)
        self.runs.append(Flow(events.keys[order], times[order], None, partials))

    def flow(self) -> Flow | None:
        """Return all rows, sorted by (pair, time); None when there are none."""
        if not self.runs:
            return None
        if len(self.runs) > 1:
            self.runs = [merged(self.runs) if self.early else _side_by_side(self.runs)]
        return self.runs[0]

    def windows(self, ends_us: Int64s, most: int) -> SideRows | None:
        """Return the rows of a periodic window at instants whose instances have these ends.

        The ends never decrease; a window that moves more slowly has the same end several times.
        """
        flow, window = self.flow(), self.side.window
        if flow is None or not ends_us.size:
            return None
        assert isinstance(window, PeriodicWindow)
        found = closing_instances([window], flow, int(ends_us[0]) - 1, int(ends_us[-1]))
        ends = found.starts_us + window.range_us
        first = np.searchsorted(ends_us, ends, "left")
        often = np.searchsorted(ends_us, ends, "right") - first
        rows = self._rows(flow, found.starts, found.ends, most)
        again = expanded(first, often)
        if (often == 1).all():
            return self._at(again, flow, rows, found.starts, found.ends)
        repeats = np.repeat(np.arange(often.size), often)
        if rows is None:
            if int((found.ends - found.starts)[repeats].sum()) > most:
                raise TooManyRows
            return self._at(again, flow, None, found.starts[repeats], found.ends[repeats])
        taken = {p: held.take(repeats) for p, held in rows.items()}
        return SideRows(again, flow.keys[found.starts][repeats].astype(np.int64), taken)

    def since_ever(
        self, instants_us: Int64s, wanted: Sequence[Int64s], sizes: Sequence[int], most: int
    ) -> SideRows | None:
        """Return the rows of a landmark stream or a table that the other inputs ask for.

        `wanted` are distinct (instant, variables...) as codes; variables that this input does not
        have are None. A landmark holds what came before the instant, a table everything.
        """
        flow = self.flow()
        if flow is None:
            return None
        pairs, instants = self._asked(wanted, sizes, most)
        visible = np.zeros(len(flow), np.int64)
        if self.side.window is not None:
            visible = np.searchsorted(instants_us, flow.starts_us, "right")
        stride = instants_us.size + 1
        order = flow.keys.astype(np.int64) * stride + visible
        starts = np.searchsorted(order, pairs * stride, "left")
        ends = np.searchsorted(order, pairs * stride + instants, "right")
        some = ends > starts
        starts, ends, instants = starts[some], ends[some], instants[some]
        return self._at(instants, flow, self._rows(flow, starts, ends, most), starts, ends)

    def place(self, early: bool) -> None:
        """Aggregate early from now on, or no more; rows that are there are put together, or stay.

        A slice never lies across an edge of the window, so that both may be in one store.
        """
        if early and not self.early:
            flow = self.flow()
            self.runs = [] if flow is None else [coarser(flow, self.slices, self.side.partials)]
        self.early = early

    def load(self, rate: float) -> SideLoad:
        """Describe the input as it is now to the cost model."""
        flow = self.flow()
        if flow is None:
            return SideLoad(rate, 1.0, 1.0, 1.0)
        counts = flow.partials[COUNT]
        assert isinstance(counts, KernelPartials)
        split = [column[flow.keys] for column in self.codes.split()]
        variables = len(self.codes.variables)
        joined, groups = _numbered(split[:variables]), _numbered(split[variables:])
        return SideLoad(
            rate,
            float(counts.fields[0].sum()),
            float(distinct(groups).size),
            float(distinct(joined).size),
        )

    def forget(self, before_us: int) -> None:
        """Drop the rows that lie before a time, of a window that moves."""
        self.runs = [
            run.take(kept) if kept.size < len(run) else run
            for run in self.runs
            for kept in (np.flatnonzero(run.starts_us >= before_us),)
            if kept.size
        ]

    def _asked(
        self, wanted: Sequence[Int64s], sizes: Sequence[int], most: int
    ) -> tuple[Int64s, Int64s]:
        """Find the pairs that agree with what is wanted; return them with their instants."""
        instants, *values = wanted
        own = self.codes.split()
        shared = [at for at, _ in enumerate(self.codes.variables) if values[at] is not None]
        left, right = packed(
            [1, *(sizes[at] for at in shared)],
            [np.zeros(instants.size, np.int64), *(values[at] for at in shared)],
            [np.zeros(own[0].size, np.int64), *(own[at] for at in shared)],
        )
        rows, pairs = pairs_of_equals(left, right, most)
        stride = instants.max(initial=0) + 1
        numbers = distinct(pairs * stride + instants[rows])
        return numbers // stride, numbers % stride

    def _rows(
        self, flow: Flow, starts: Int64s, ends: Int64s, most: int
    ) -> Mapping[Partial, Held] | None:
        """Combine each range to a row, where the input is early; None where tuples stay alone."""
        if self.early:
            return {p: flow.partials[p].over_ranges(starts, ends) for p in self.side.partials}
        if int((ends - starts).sum()) > most:
            raise TooManyRows
        return None

    def _at(
        self,
        instants: Int64s,
        flow: Flow,
        rows: Mapping[Partial, Held] | None,
        starts: Int64s,
        ends: Int64s,
    ) -> SideRows:
        if rows is not None:
            return SideRows(instants, flow.keys[starts].astype(np.int64), rows)
        tuples = expanded(starts, ends - starts)
        taken = {p: flow.partials[p].take(tuples) for p in self.side.partials}
        keys = flow.keys[tuples].astype(np.int64)
        return SideRows(np.repeat(instants, ends - starts), keys, taken)


def _numbered(columns: Sequence[Int64s]) -> Int64s:
    (numbers,) = packed([int(column.max()) + 1 for column in columns], columns)
    return numbers


def _side_by_side(runs: Sequence[Flow]) -> Flow:
    """Put runs of single tuples together; equal ones stay apart."""
    keys = np.concatenate([run.keys for run in runs])
    starts_us = np.concatenate([run.starts_us for run in runs])
    partials = {p: concat([run.partials[p] for run in runs]) for p in runs[0].partials}
    return Flow(keys, starts_us, None, partials).take(np.lexsort((starts_us, keys)))
