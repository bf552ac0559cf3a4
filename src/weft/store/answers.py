"""From slices to results on the local engine: the plan's own operators, fed from files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.engines.local.engine import types_of
from weft.engines.local.expressions.evaluate import evaluate
from weft.engines.local.operator import ScopeOperator
from weft.engines.local.output.tables import result_table
from weft.engines.local.partials.stored_columns import partials_of_column
from weft.engines.local.values.arrow import pc
from weft.engines.local.values.frame import Frame, plain
from weft.engines.local.windows.flow import Flow
from weft.engines.local.windows.rolls import coarser
from weft.engines.schema import result_schema
from weft.errors import DataError
from weft.expression import columns_of
from weft.plan.nodes import topological
from weft.plan.planned_scope import planned_scopes
from weft.query import Workload
from weft.store.disk import read_columns
from weft.store.kept import START
from weft.store.planning import planned
from weft.store.serving import plain_keys, served

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from weft.engines.local.values.arrow import Array
    from weft.plan import Plan
    from weft.query import Query
    from weft.store.kept import SliceSet
    from weft.store.manifest import Manifest, SliceFile
    from weft.store.serving import Served

Bounds = tuple[int | None, int | None]  # from which time on, and until when; None: all
ALWAYS: Bounds = (None, None)


@dataclass(slots=True)
class SliceReader:
    """Reads slices of one version of a store; a column of a file is read once."""

    store: Path
    manifest: Manifest
    _read: dict[tuple[str, str], pa.ChunkedArray[Any]] = field(default_factory=dict)

    def files(self, number: int, bounds: Bounds = ALWAYS) -> list[SliceFile]:
        """List the files of a set that have slices between two times, oldest batch first."""
        low, high = bounds
        return [
            file
            for file in self.manifest.files()
            if file.set == number
            and (low is None or file.to_us > low)
            and (high is None or file.from_us < high)
        ]

    def rows(
        self, files: Sequence[SliceFile], columns: Iterable[str], bounds: Bounds
    ) -> dict[str, Array]:
        """Read columns of files side by side, of the slices that begin between two times."""
        asked = [*dict.fromkeys((START, *columns))]
        for file in files:
            missing = [name for name in asked if (file.path, name) not in self._read]
            if missing:
                table = read_columns(self.store / file.path, missing, file.bytes)
                for name in missing:
                    self._read[file.path, name] = table.column(name)
        found: dict[str, Array] = {}
        for name in asked:
            parts = [self._read[file.path, name] for file in files]
            type = nullable(parts[0].type)
            chunks = [chunk for part in parts for chunk in part.cast(type).chunks]
            found[name] = plain(pa.chunked_array(chunks))
        return _between(found, bounds)


def nullable(type: pa.DataType) -> pa.DataType:
    """Return a type as every writer has it: writers differ in what they say may be NULL.

    >>> strict = pa.struct([pa.field("n", pa.int64(), nullable=False)])
    >>> str(nullable(pa.list_(pa.field("element", strict))))
    'list<item: struct<n: int64>>'
    """
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return pa.list_(nullable(type.value_type))
    if pa.types.is_struct(type):
        return pa.struct([(field.name, nullable(field.type)) for field in type])
    return type


def _between(columns: dict[str, Array], bounds: Bounds) -> dict[str, Array]:
    starts = columns[START].cast(pa.int64()).to_numpy()
    kept = np.ones(starts.size, np.bool_)
    low, high = bounds
    if low is not None:
        kept &= starts >= low
    if high is not None:
        kept &= starts < high
    if kept.all():
        return columns
    mask = pa.array(kept)
    return {name: column.filter(mask) for name, column in columns.items()}


def answer(
    plan: Plan,
    reader: SliceReader,
    bounds: Bounds = ALWAYS,
    queries: Sequence[Query] | None = None,
) -> dict[str, pa.Table]:
    """Run a plan over slices, those that begin between two times.

    `queries` are those of the plan, or such with fewer windows. Of several, each is planned and
    answered by itself: what they share are the slices, which are there.
    """
    found: dict[str, pa.Table] = {}
    for query in plan.queries if queries is None else queries:
        alone = plan
        if len(plan.queries) > 1:
            alone = planned(reader.manifest, Workload([query]), bounds[0])
        source = served(reader.manifest, query, bounds[0])
        schema_of(query, reader.manifest)  # or say that there is nothing yet
        files = reader.files(source.number, bounds)
        columns = reader.rows(files, columns_asked(source, query), bounds) if files else None
        found[query.name] = _answered(alone, query, source, reader.manifest, columns)
    return found


def answer_columns(
    plan: Plan, manifest: Manifest, name: str, rows: pa.Table, bounds: Bounds
) -> pa.Table:
    """Answer one query of a plan from rows of slices that somebody else has read."""
    query = next(query for query in plan.queries if query.name == name)
    columns = _between({own: plain(rows.column(own)) for own in rows.column_names}, bounds)
    source = served(manifest, query, bounds[0])
    return beginning(_answered(plan, query, source, manifest, columns), query, bounds)


def schema_of(query: Query, manifest: Manifest) -> pa.Schema:
    """Return the columns of a query's result."""
    schema = manifest.schemas.get(query.source)
    if schema is None:  # nothing is known of types
        raise DataError(
            f"the store has no events of {query.source!r} yet",
            hint="append some with store.append(events)",
        )
    return result_schema(query, schema)


def _answered(
    plan: Plan,
    query: Query,
    source: Served,
    manifest: Manifest,
    columns: dict[str, Array] | None,
) -> pa.Table:
    scope = next(one for one in planned_scopes(plan) if query.name in one.queries)
    asked = dict(query.windows)
    emits = tuple(emit for emit in scope.emits_of(query.name) if emit.label in asked)
    operator = ScopeOperator.of(scope.scan, scope.keys, topological(emits), emits)
    if columns is not None:
        feed(operator, source, columns)
    closed = operator.advance(None, types_of(emits, manifest.schemas[query.source]))
    labels = [emit.label for emit in emits]
    return result_table(schema_of(query, manifest), labels, operator.codes, closed)


def columns_asked(source: Served, query: Query) -> list[str]:
    """List the columns of the files that a query is answered from."""
    kept = source.kept
    stored = {text: name for name, text in kept.keys}
    plain_of = _plain_columns(kept)
    computed = [text for _, text in query.keys if text not in stored]
    computed += [] if source.where is None else [source.where]
    partials = dict.fromkeys(p for _, call in query.aggs for p in call.partials)
    return [
        *(stored[text] for _, text in query.keys if text in stored),
        *(plain_of[name] for text in computed for name in columns_of(text)),
        *(kept.column_of(partial) for partial in partials),
    ]


def _plain_columns(kept: SliceSet) -> dict[str, str]:
    """Return the columns of keys that are columns of the events, by their names there."""
    return {columns_of(text)[0]: name for text, name in plain_keys(kept).items()}


def feed(operator: ScopeOperator, source: Served, columns: dict[str, Array]) -> None:
    """Give an operator the slices that it would have cut from the events."""
    columns, arrays = keyed(operator, source, columns)
    give(operator, operator, source, columns, arrays)


def keyed(
    operator: ScopeOperator, source: Served, columns: dict[str, Array]
) -> tuple[dict[str, Array], list[Array]]:
    """Return the slices that an operator asks for, and its keys of each."""
    kept = source.kept
    stored = {text: name for name, text in kept.keys}
    plain_of = _plain_columns(kept)
    frame = Frame(
        {name: columns[own] for name, own in plain_of.items() if own in columns},
        len(columns[START]),
    )
    if source.where is not None:
        mask = pc.fill_null(evaluate(source.where, frame), False)
        columns = {name: column.filter(mask) for name, column in columns.items()}
        frame = frame.filter(mask)
    texts = [text for _, text in operator.keys]
    return columns, [columns[stored[t]] if t in stored else evaluate(t, frame) for t in texts]


def give(
    operator: ScopeOperator,
    named: ScopeOperator,
    source: Served,
    columns: dict[str, Array],
    keys: Sequence[Array],
) -> None:
    """Give an operator slices with their keys; `named` is the same one under the store's names."""
    kept, starts_us = source.kept, columns[START].cast(pa.int64()).to_numpy()
    if not starts_us.size:
        return
    codes = operator.codes.encode([*keys], starts_us.size)
    order = np.lexsort((starts_us, codes))
    partials = dict.fromkeys(p for own in named.sliced for p in own)
    held = {p: partials_of_column(p, columns[kept.column_of(p)], starts_us) for p in partials}
    bases = zip(operator.plan.bases.values(), named.plan.bases.values(), strict=True)
    for number, (base, known) in enumerate(bases):
        own = {p: held[k] for p, k in zip(base.partials, known.partials, strict=True)}
        rows = Flow(codes, starts_us, None, own).take(order)
        flow = coarser(rows, base.slices, tuple(base.partials))
        settled = {partial: one.settled() for partial, one in flow.partials.items()}
        operator.add_slices(number, Flow(flow.keys, flow.starts_us, None, settled))


def beginning(table: pa.Table, query: Query, bounds: Bounds) -> pa.Table:
    """Keep the rows of instances that begin between two times."""
    low, high = bounds
    starts = table.column(query.window_columns[1])
    keep = None
    for bound, test in ((low, pc.greater_equal), (high, pc.less)):
        if bound is not None:
            own = test(starts, pa.scalar(bound, pa.int64()).cast(starts.type))
            keep = own if keep is None else pc.and_(keep, own)
    return table if keep is None else table.filter(keep)
