"""The operator of one join: rows of its inputs in, results at every instant that passed out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft.engines.joins import join_schema, variable_types
from weft.engines.local.joins.evaluate import Evaluation
from weft.engines.local.joins.inputs import InputCodes, encoded, read_input
from weft.engines.local.joins.sides import SideStore
from weft.engines.local.output.tables import result_table
from weft.engines.local.values.distinct import distinct
from weft.engines.local.values.keys import ColumnCodes, KeyCodes
from weft.engines.local.windows.instances import closing_instances
from weft.plan import Join
from weft.plan.joins import JoinShape, end_class, join_query
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from weft.cost.joins.tuples import Placement, SideLoad
    from weft.kernels.partials import Int64s
    from weft.plan import Emit
    from weft.query import JoinQuery


@dataclass(slots=True)
class JoinOperator:
    """State of one join: the rows of each input that some window still holds."""

    emit: Emit
    join: Join
    query: JoinQuery
    shape: JoinShape
    schema: pa.Schema
    types: tuple[pa.DataType, ...]  # in which the variables are compared
    stores: tuple[SideStore, ...]
    variables: tuple[ColumnCodes, ...]
    keys: KeyCodes
    passed_us: int | None = None  # instants up to here are done
    events: int = 0
    timeless: int = 0
    matched: int = 0

    @classmethod
    def of(
        cls, emit: Emit, sources: Mapping[str, pa.Schema], like: JoinOperator | None = None
    ) -> JoinOperator:
        """Prepare a join over sources of these schemas.

        A join that differs from another in its windows only numbers values as that one does.
        """
        join, query = emit.inputs[0], join_query(emit)
        assert isinstance(join, Join)
        shape = JoinShape.of(query)
        stores = tuple(
            SideStore.of(
                side,
                InputCodes.of(shape, place) if like is None else like.stores[place].codes,
                shape.instants,
            )
            for place, side in enumerate(join.sides)
        )
        return cls(
            emit,
            join,
            query,
            shape,
            join_schema(query, sources),
            variable_types(query, sources),
            stores,
            tuple(ColumnCodes() for _ in shape.variables) if like is None else like.variables,
            KeyCodes(len(query.keys)),
        )

    @property
    def early(self) -> Placement:
        """Which inputs are aggregated early at present."""
        return tuple(store.early for store in self.stores)

    def place(self, early: Placement) -> None:
        """Change which inputs are aggregated early; results stay what they are."""
        for store, wanted in zip(self.stores, early, strict=True):
            store.place(wanted)

    def loads(self, rates: tuple[float, ...]) -> tuple[SideLoad, ...]:
        """Describe the inputs as they are now to the cost model, at these rates."""
        return tuple(store.load(rate) for store, rate in zip(self.stores, rates, strict=True))

    def process(self, place: int, table: pa.Table) -> None:
        """Take rows of one input."""
        store = self.stores[place]
        timed = read_input(store.side, table)
        self.timeless += timed.timeless
        events = encoded(timed, self.shape, place, self.types, store.codes, self.variables)
        self.events += len(events)
        store.add(events)

    def advance(self, to_us: int | None) -> pa.Table:
        """Evaluate the instants up to a time, or all that there are; return their results."""
        instants_us = self._instants(to_us)
        evaluation = Evaluation(
            self.emit.query,
            self.shape,
            self.stores,
            self.variables,
            self.keys,
            self.schema.types[-len(self.query.aggs) :],
        )
        closed = list(evaluation.closed(instants_us))
        self.matched += evaluation.matched
        if to_us is not None:
            self.passed_us = to_us
            self._forget(to_us)
        return result_table(self.schema, [self.emit.label], self.keys, closed)

    def _forget(self, passed_us: int) -> None:
        """Drop what no later instant reads: the latest instance of each window is still open."""
        for store in self.stores:
            window = store.side.window
            if isinstance(window, PeriodicWindow):
                residue, modulus = end_class(window)
                end_us = passed_us + 1 - (passed_us + 1 - residue) % modulus
                store.forget(end_us - window.range_us)

    def _instants(self, to_us: int | None) -> Int64s:
        """List the instants at which the first window that moves has an instance with rows."""
        store = next(s for s in self.stores if isinstance(s.side.window, PeriodicWindow))
        flow, window = store.flow(), store.side.window
        assert isinstance(window, PeriodicWindow)
        if flow is None:
            return np.empty(0, np.int64)
        since = None if self.passed_us is None else self.passed_us - window.slide_us
        found = closing_instances([window], flow, since, to_us)
        ends_us = distinct(found.starts_us + window.range_us)
        instants_us = _served(ends_us, window, self.shape.instants.classes)
        if self.passed_us is not None:
            instants_us = instants_us[instants_us > self.passed_us]
        return instants_us if to_us is None else instants_us[instants_us <= to_us]


def _served(ends_us: Int64s, window: PeriodicWindow, classes: Sequence[tuple[int, int]]) -> Int64s:
    """List the instants at which these instances are the latest of their window.

    >>> _served(np.array([4]), PeriodicWindow(4, 4), [(0, 4), (1, 2)]).tolist()
    [4, 5, 7]
    """
    found = [np.empty(0, np.int64)]
    for residue, modulus in classes:
        first = ends_us + (residue - ends_us) % modulus
        steps = range(0, window.slide_us, modulus)
        found += [first[first + step < ends_us + window.slide_us] + step for step in steps]
    return distinct(np.concatenate(found))
