"""A join at a list of instants: the inputs' rows matched, coalesced, grouped and aggregated."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.engines.local.joins.pairs import TooManyRows, packed, pairs_of_equals
from weft.engines.local.joins.repeated_partials import repeated
from weft.engines.local.joins.sides import COUNT, SideRows, SideStore
from weft.engines.local.output.closed import Closed
from weft.engines.local.partials.lift import lift, row_partials
from weft.engines.local.values.frame import Frame
from weft.engines.local.windows.close import lowered
from weft.engines.local.windows.events import Timed
from weft.engines.local.windows.flow import runs_of_equals
from weft.errors import DataError
from weft.plan.joins import JOINT, end_class, join_order, merged_name
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from weft.aggregates import Partial
    from weft.engines.local.partials.columns import Held
    from weft.engines.local.values.arrow import Array
    from weft.engines.local.values.keys import ColumnCodes, KeyCodes
    from weft.kernels.partials import Int64s
    from weft.plan.joins import Instants, JoinShape

MOST_ROWS = 1 << 22  # matched at once; more instants are evaluated in halves


@dataclass(slots=True)
class _Matched:
    """Rows of several inputs that agree: where each is among its input's rows."""

    instants: Int64s
    variables: dict[int, Int64s]
    rows: dict[int, Int64s]


@dataclass(slots=True)
class Evaluation:
    """The join of all stores at some instants; nothing of it outlives the call."""

    query: str
    shape: JoinShape
    stores: Sequence[SideStore]
    variables: Sequence[ColumnCodes]
    keys: KeyCodes
    types: Sequence[pa.DataType]  # of the aggregates
    matched: int = 0  # rows that were joined, for the metrics
    _given: dict[int, SideRows] = field(default_factory=dict)

    def closed(self, instants_us: Int64s) -> Iterator[Closed]:
        """Yield the results at instants, in ascending order, in as many pieces as memory asks."""
        if not instants_us.size:
            return
        try:
            found = self._closed(instants_us, MOST_ROWS if instants_us.size > 1 else 2**62)
        except TooManyRows:
            middle = instants_us.size // 2
            yield from self.closed(instants_us[:middle])
            yield from self.closed(instants_us[middle:])
            return
        if found is not None:
            yield found

    def _closed(self, instants_us: Int64s, most: int) -> Closed | None:
        matched = self._match(instants_us, most)
        if matched is None or not matched.instants.size:
            return None
        self.matched += matched.instants.size
        groups = {
            side: self.stores[side].codes.split()[-1][self._given[side].pairs[rows]]
            for side, rows in matched.rows.items()
        }
        columns = [matched.instants, *groups.values()]
        sizes = [instants_us.size, *(len(self.stores[side].codes.groups) for side in groups)]
        (numbers,) = packed(sizes, columns)
        order = np.argsort(numbers, kind="stable")
        starts, ends = runs_of_equals(numbers[order])
        first = order[starts]
        ends_us = instants_us[matched.instants[first]]
        return Closed(
            self.query,
            np.zeros(first.size, np.int64),
            self._keys({side: codes[first] for side, codes in groups.items()}, first.size),
            _starts(self.shape.instants, ends_us),
            ends_us,
            self._values(matched, order, starts, ends),
        )

    def _match(self, instants_us: Int64s, most: int) -> _Matched | None:
        """Join the inputs one after the other, each tied to those before it."""
        self._given = {}
        matched: _Matched | None = None
        for side in join_order(self.shape):
            rows = self._rows_of(side, instants_us, matched, most)
            if rows is None:
                return None
            self._given[side] = rows
            matched = self._joined(matched, side, rows, instants_us.size, most)
        return matched

    def _rows_of(
        self, side: int, instants_us: Int64s, matched: _Matched | None, most: int
    ) -> SideRows | None:
        store = self.stores[side]
        if isinstance(store.side.window, PeriodicWindow):
            return store.windows(instance_ends(store.side.window, instants_us), most)
        assert matched is not None, "a join begins with a window that moves"
        own = store.codes.variables
        sizes = [len(self.variables[v]) for v in own]
        shared = [v for v in own if v in matched.variables]
        columns = [matched.instants, *(matched.variables[v] for v in shared)]
        all_sizes = [instants_us.size, *(len(self.variables[v]) for v in shared)]
        (numbers,) = packed(all_sizes, columns)
        _, first = np.unique(numbers, return_index=True)
        known: list[Any] = [
            matched.variables[v][first] if v in matched.variables else None for v in own
        ]
        return store.since_ever(instants_us, [matched.instants[first], *known], sizes, most)

    def _joined(
        self, matched: _Matched | None, side: int, rows: SideRows, instants: int, most: int
    ) -> _Matched:
        codes = self.stores[side].codes
        own = {
            v: column[rows.pairs] for v, column in zip(codes.variables, codes.split(), strict=False)
        }
        places = np.arange(rows.pairs.size)
        if matched is None:
            return _Matched(rows.instants, own, {side: places})
        shared = [v for v in own if v in matched.variables]
        sizes = [instants, *(len(self.variables[v]) for v in shared)]
        left, right = packed(
            sizes,
            [matched.instants, *(matched.variables[v] for v in shared)],
            [rows.instants, *(own[v] for v in shared)],
        )
        before, after = pairs_of_equals(left, right, most)
        variables = {v: column[before] for v, column in matched.variables.items()}
        variables |= {v: column[after] for v, column in own.items() if v not in variables}
        found = {s: at[before] for s, at in matched.rows.items()}
        return _Matched(matched.instants[before], variables, {**found, side: after})

    def _values(
        self, matched: _Matched, order: Int64s, starts: Int64s, ends: Int64s
    ) -> tuple[Any, ...]:
        """Coalesce: what an input contributes counts as often as the others have tuples."""
        rows = {side: at[order] for side, at in matched.rows.items()}
        counts = {side: self._given[side].counts[at] for side, at in rows.items()}
        tuples = _tuples_of([*counts.values()])
        totals: dict[tuple[int, Partial], Held] = {}
        for side, at in rows.items():
            times = tuples // counts[side]
            for partial in self.stores[side].side.partials:
                if partial != COUNT or side == 0:
                    held = repeated(self._given[side].partials[partial].take(at), times)
                    totals[side, partial] = held.over_ranges(starts, ends)
        totals |= self._joint(rows, tuples, starts, ends)
        outputs: list[Any] = []
        for (side, call), type in zip(self.shape.calls, self.types, strict=True):
            known = {p: totals[side if p.args else 0, p] for p in call.partials}
            outputs += lowered([("", call)], known, (type,))
        return tuple(outputs)

    def _joint(
        self, rows: dict[int, Int64s], tuples: Int64s, starts: Int64s, ends: Int64s
    ) -> dict[tuple[int, Partial], Held]:
        """Evaluate what reads several inputs on the matches, each as often as it has tuples."""
        partials = self.shape.partials_of(JOINT)
        if not partials:
            return {}
        columns: dict[str, Array] = {}
        for side, at in rows.items():
            names = self.shape.carried_columns(side)
            if names:
                codes = self.stores[side].codes
                own = codes.split()[len(codes.variables)][self._given[side].pairs[at]]
                merged = [merged_name(self.shape.aliases[side], name) for name in names]
                columns |= zip(merged, codes.carried.decode(own), strict=True)
        times = np.zeros(tuples.size, np.int64)
        matches = Timed(Frame(columns, tuples.size), times, 0)
        found: dict[tuple[int, Partial], Held] = {}
        for partial in partials:
            lifted = lift(partial, tuple(map(matches.argument, partial.args)), times)
            held = repeated(row_partials(lifted, times), tuples)
            found[JOINT, partial] = held.over_ranges(starts, ends)
        return found

    def _keys(self, groups: dict[int, Int64s], rows: int) -> Any:
        """Give every result the code of its key, whose columns several inputs may own."""
        decoded = {
            side: iter(self.stores[side].codes.groups.decode(codes))
            for side, codes in groups.items()
        }
        return self.keys.encode([next(decoded[key.side]) for key in self.shape.keys], rows)


def _tuples_of(counts: Sequence[Int64s]) -> Int64s:
    """Multiply the tuples that the inputs have in each match."""
    if prod(int(own.max(initial=1)) for own in counts) >= 2**63:
        about = np.multiply.reduce([own.astype(np.float64) for own in counts])
        if about.max() >= 2.0**63:
            raise DataError(
                "tuples of this join have more combinations in one window than 64 bits count",
                hint="use shorter windows, or join by more columns",
            )
    tuples: Int64s = np.multiply.reduce(counts)
    return tuples


def instance_ends(window: PeriodicWindow, instants_us: Int64s) -> Int64s:
    """Return the end of the latest instance that has ended at each instant.

    >>> instance_ends(PeriodicWindow(5, 3), np.array([4, 5, 7, 8])).tolist()
    [2, 5, 5, 8]
    """
    residue, modulus = end_class(window)
    return instants_us - (instants_us - residue) % modulus


def _starts(instants: Instants, ends_us: Int64s) -> Int64s:
    starts = [instance_ends(w, ends_us) - w.range_us for w in instants.periodic]
    found: Int64s = np.minimum.reduce(starts)
    return found
