"""The state of an operator as named chunks, and which of them changed since its host last asked.

A host with a store of its own, such as a Spark executor, writes what changed and drops what is
gone; it never writes the whole state. The names are

    counters             the watermark and what was counted
    keys/N               key values, in the order of their codes: increments
    slices/BASE/START    the slices of all keys that begin at one time, or
    slices/BASE/A:B      at any time from A to B: older ones, or those that no event has come to
    shape/BASE           no slices, but the columns they have
    window/W             what the discretizer of a window that events delimit knows
    kept/W               slices of the open instances of such windows
    waiting/W/N          events for them that the watermark has not passed, batch by batch
"""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.engines.local.state.chunks import (
    flow_chunk,
    keys_chunk,
    name_of_base,
    read_keys,
    rows_chunk,
    values_chunk,
)
from weft.engines.local.state.custom_partials import NO_PICKLES, Trust
from weft.engines.local.state.slice_stretches import name_of_stretch, regrouped, stretches_by_base
from weft.engines.local.values.distinct import distinct
from weft.engines.local.windows.flow import Flow, merged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from weft.engines.local.state.held_state import HeldState
    from weft.engines.local.state.slice_stretches import Stretch
    from weft.engines.local.values.keys import ColumnCodes, KeyCodes
    from weft.engines.local.windows.event_rows import EventRows
    from weft.engines.local.windows.event_windows import Delimited
    from weft.kernels.partials import Int64s
    from weft.plan import Node

Chunks = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class StateChanges:
    """Chunks to write, new or anew, and names to forget."""

    written: Chunks
    removed: tuple[str, ...]

    def apply(self, chunks: Chunks) -> None:
        """Bring a mapping up to date.

        >>> chunks = {"a": b"1", "b": b"2"}
        >>> StateChanges({"a": b"3"}, ("b",)).apply(chunks)
        >>> chunks
        {'a': b'3'}
        """
        for name in self.removed:
            del chunks[name]
        chunks.update(self.written)


@dataclass(slots=True)
class Journal:
    """What a host has of an operator's state, and what was touched since.

    Work is proportional to what changed, but for one pass over the starts of the slices.
    """

    names: set[str] = field(default_factory=set)  # the chunks that the host has
    touched: dict[Node, list[Int64s]] = field(default_factory=dict)  # starts of slices
    forgotten: dict[Node, int] = field(default_factory=dict)  # starts below it are gone
    key_marks: list[tuple[int, ...]] = field(default_factory=list)  # where key increments begin
    keys_known: tuple[int, ...] = ()
    events: dict[str, EventRows] = field(default_factory=dict)  # by the names of their chunks
    digests: dict[str, bytes] = field(default_factory=dict)  # of small chunks
    batches: int = 0
    complete: bool = False  # False until everything was written once
    trust: Trust = NO_PICKLES

    @classmethod
    def agreed(
        cls, operator: HeldState, chunks: Mapping[str, bytes], trust: Trust = NO_PICKLES
    ) -> Journal:
        """Return the journal of an operator that was just made from these chunks."""
        journal = cls(set(chunks), complete=True, trust=trust)
        for name, values in journal._small(operator):
            journal.digests[name] = _digest(values)
        blobs = [chunks[f"keys/{at}"] for at in range(sum(n.startswith("keys/") for n in chunks))]
        sizes = np.array([[len(one.values or ()) for one in read_keys([blob])] for blob in blobs])
        ends = np.cumsum(sizes, axis=0) if blobs else sizes
        journal.key_marks = [tuple(row) for row in (ends - sizes).tolist()]
        journal.keys_known = tuple(ends[-1].tolist()) if blobs else ()
        for store in operator.delimited:
            waiting = sorted(name for name in chunks if name.startswith(f"waiting/{store.name}/"))
            journal.events.update(zip(waiting, store.waiting, strict=True))
            if store.kept is not None:
                journal.events[f"kept/{store.name}"] = store.kept
            numbers = [int(name.rpartition("/")[2]) + 1 for name in waiting]
            journal.batches = max(journal.batches, *numbers, 0)
        return journal

    def saved(self) -> Journal:
        """Return the journal as it is now, to go back to."""
        kept = copy.copy(self)
        kept.names, kept.key_marks = set(self.names), list(self.key_marks)
        kept.touched = {node: list(starts) for node, starts in self.touched.items()}
        kept.forgotten, kept.events = dict(self.forgotten), dict(self.events)
        kept.digests = dict(self.digests)
        return kept

    def outdated(self) -> Journal:
        """Return the journal for another plan of the same scope: everything is written anew."""
        kept = self.saved()
        kept.touched, kept.forgotten, kept.complete = {}, {}, False
        return kept

    def touch(self, node: Node, starts_us: Int64s) -> None:
        """Remember the slices that a batch falls into."""
        self.touched.setdefault(node, []).append(starts_us)

    def changes(self, operator: HeldState) -> StateChanges:
        """Return what the host must write and remove to have the state as it is now."""
        live: set[str] = set()
        written = self._values(operator, live) | self._keys(operator.codes, live)
        had = stretches_by_base(self.names)
        for node in operator.plan.bases:
            written |= self._slices(node, operator.slices_of(node), had, live)
        for store in operator.delimited:
            written |= self._events(store, live)
        removed = tuple(sorted(self.names - live))
        self.events = {name: rows for name, rows in self.events.items() if name in live}
        self.names, self.complete = live, True
        self.touched, self.forgotten = {}, {}
        return StateChanges(written, removed)

    def _small(self, operator: HeldState) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the chunks of JSON values: counters, and what discretizers know."""
        yield "counters", operator.counters()
        for store in operator.delimited:
            for one in store.members.values():
                yield f"window/{one.name}", one.discretizer.snapshot()

    def _values(self, operator: HeldState, live: set[str]) -> Chunks:
        written: Chunks = {}
        for name, values in self._small(operator):
            live.add(name)
            digest = _digest(values)
            if self.digests.get(name) != digest:
                written[name] = values_chunk(values)
                self.digests[name] = digest
        return written

    def _keys(self, codes: KeyCodes, live: set[str]) -> Chunks:
        """Write new keys as an increment, together with the last ones that are no larger.

        So there are few increments, and each key is written few times: both grow as a logarithm.
        """
        dictionaries: list[ColumnCodes] = [*codes.columns, *codes.pairs]
        known = tuple(map(len, dictionaries))
        written: Chunks = {}
        if known != self.keys_known:
            since = self.keys_known or (0,) * len(known)
            while self.key_marks and 2 * sum(since) <= sum(known) + sum(self.key_marks[-1]):
                since = self.key_marks.pop()
            written[f"keys/{len(self.key_marks)}"] = keys_chunk(dictionaries, since)
            self.key_marks.append(since)
            self.keys_known = known
        live.update(f"keys/{at}" for at in range(len(self.key_marks)))
        return written

    def _slices(
        self, node: Node, runs: list[Flow], had: Mapping[str, list[Stretch]], live: set[str]
    ) -> Chunks:
        if not runs:
            return {}
        base = name_of_base(node)
        live.add(f"shape/{base}")
        written: Chunks = {}
        if f"shape/{base}" not in self.names:
            written[f"shape/{base}"] = flow_chunk(runs[0].take(np.empty(0, np.int64)), self.trust)
        if self.complete:
            touched = self.touched.get(node)
            starts = distinct(np.concatenate(touched)) if touched else np.empty(0, np.int64)
            oldest = self.forgotten.get(node)
            starts = starts if oldest is None else starts[starts >= oldest]
            known = [
                stretch for stretch in had.get(base, ()) if oldest is None or stretch[1] >= oldest
            ]
        else:
            known, starts = [], distinct(np.concatenate([run.starts_us for run in runs]))
        stretches, changed = regrouped(known, starts.tolist())
        live.update(name_of_stretch(base, stretch) for stretch in stretches)
        for stretch, flow in _within(runs, changed):
            written[name_of_stretch(base, stretch)] = flow_chunk(flow, self.trust)
        return written

    def _events(self, store: Delimited, live: set[str]) -> Chunks:
        """Write the events that the host does not have; rows are never changed, only replaced."""
        named = {id(rows): name for name, rows in self.events.items()}
        parts: dict[str, EventRows] = {}
        if store.kept is not None:
            parts[f"kept/{store.name}"] = store.kept
        for rows in store.waiting:
            name = named.get(id(rows))
            if name is None:
                name = f"waiting/{store.name}/{self.batches:08}"
                self.batches += 1
            parts[name] = rows
        changed = {name: rows for name, rows in parts.items() if self.events.get(name) is not rows}
        self.events |= parts
        live.update(parts)
        return {name: rows_chunk(rows, self.trust) for name, rows in changed.items()}


def _digest(values: dict[str, Any]) -> bytes:
    return hashlib.sha256(json.dumps(values).encode()).digest()


def _within(runs: list[Flow], stretches: list[Stretch]) -> Iterator[tuple[Stretch, Flow]]:
    """Yield the slices of each stretch; stretches lie apart, in the order of time."""
    if not stretches:
        return
    lows, highs = (np.array(column) for column in zip(*stretches, strict=True))

    def inside(flow: Flow) -> Flow:
        if len(flow) and int(flow.starts_us.max()) < lows[0]:
            return flow.take(np.empty(0, np.int64))  # most flows are older than all that is new
        at = np.searchsorted(lows, flow.starts_us, side="right") - 1
        return flow.take(np.flatnonzero((at >= 0) & (flow.starts_us <= highs[at])))

    flow = merged([inside(run) for run in runs])
    order = np.argsort(flow.starts_us, kind="stable")
    starts_us = flow.starts_us[order]
    firsts = np.searchsorted(starts_us, lows)
    stops = np.searchsorted(starts_us, highs, side="right")
    for stretch, first, stop in zip(stretches, firsts.tolist(), stops.tolist(), strict=True):
        yield stretch, flow.take(np.sort(order[first:stop]))
