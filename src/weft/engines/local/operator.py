"""The operator of one sharing scope: events in, closed windows out, with explicit state.

`process` takes a batch, `advance` moves the watermark and returns what closed. A batch run is one
`process` and an `advance` to the end of time; a stream, and a Spark executor, call both as often
as they like. `changes` tells a host which named chunks of the state are new since it last asked,
and `restored` makes the operator again from all chunks.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.engines.local.state.chunks import name_of_base, name_of_window
from weft.engines.local.state.custom_partials import NO_PICKLES, Trust
from weft.engines.local.state.journal import Journal, StateChanges
from weft.engines.local.state.snapshot import restore
from weft.engines.local.values.keys import KeyCodes
from weft.engines.local.windows.close import Closing, Emitted, Types
from weft.engines.local.windows.event_windows import Delimited, Member, Rolls, stores_of
from weft.engines.local.windows.events import Timed, events_of
from weft.engines.local.windows.flow import Flow, compacted, merged, slice_batch, slice_known
from weft.engines.local.windows.lateness import closed_for, closes_between, oldest_open
from weft.engines.local.windows.roll_store import RollStore
from weft.engines.local.windows.slice_log import KeptSlices, SliceLog
from weft.engines.local.windows.stored_rolls import NEVER, SliceSource, StoredRolls, slid
from weft.engines.local.windows.timed_plan import Timed as TIMED
from weft.engines.local.windows.timed_plan import TimedPlan, is_timed
from weft.kernels.parallel import ROWS_PER_THREAD, THREADS, threads_for
from weft.plan import Roll
from weft.window import CalendarWindow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from weft.aggregates import Partial
    from weft.engines.local.output.closed import Closed
    from weft.engines.local.values.calendar import CalendarTable
    from weft.kernels.partials import Bools
    from weft.plan import Emit, Node, Scan
    from weft.query import Keys
    from weft.window import Window

MOST_RUNS = 16  # runs of slices made elsewhere that wait before they are merged into one
MOST_IN_ONE_PASS = THREADS * ROWS_PER_THREAD  # events; more are worth several threads


@dataclass(slots=True)
class ScopeOperator:
    """State of one scan under one set of keys: slices of time, and events that delimit windows."""

    scan: Scan
    keys: Keys
    emits: tuple[Emit, ...]
    plan: TimedPlan
    delimited: list[Delimited]
    codes: KeyCodes
    runs: dict[Node, list[Flow]] = field(default_factory=dict)
    past: dict[Node, SliceLog] = field(default_factory=dict)  # slices that stores have taken in
    stores: dict[StoredRolls, RollStore] = field(default_factory=dict)
    watermark_us: int | None = None
    late: int = 0
    events: int = 0
    thinned_us: dict[Node, int] = field(default_factory=dict)  # before it sets have no value twice
    since_us: dict[Node, int] = field(default_factory=dict)  # from when slices have all events
    # Of queries that came while events did: from when they are complete, what was late before.
    complete_from_us: dict[Emitted, int] = field(default_factory=dict)
    late_before: dict[str, int] = field(default_factory=dict)
    journal: Journal | None = None  # None until a host asks for changes

    @classmethod
    def of(
        cls, scan: Scan, keys: Keys, nodes: tuple[Node, ...], emits: tuple[Emit, ...]
    ) -> ScopeOperator:
        """Prepare the nodes under the emits of one scope."""
        stores = stores_of(members_of(emits))
        return cls(scan, keys, emits, TimedPlan.of(nodes, emits), stores, KeyCodes(len(keys)))

    @classmethod
    def restored(
        cls,
        scan: Scan,
        keys: Keys,
        nodes: tuple[Node, ...],
        emits: tuple[Emit, ...],
        chunks: Mapping[str, bytes],
        trust: Trust = NO_PICKLES,
    ) -> ScopeOperator:
        """Make the operator again whose `changes` were applied to `chunks`; it goes on from there.

        Its next `changes` are those since these chunks.
        """
        operator = cls.of(scan, keys, nodes, emits)
        restore(operator, chunks, trust)
        operator.journal = Journal.agreed(operator, chunks, trust)
        return operator

    def changes(self, trust: Trust = NO_PICKLES) -> StateChanges:
        """Return the chunks that are new or gone since the last call; at first, all of them."""
        if self.journal is None:
            self.journal = Journal(trust=trust)
        return self.journal.changes(self)

    def counters(self) -> dict[str, Any]:
        """Return what is known beside slices, keys and events, as JSON values."""
        return {
            "watermark_us": self.watermark_us,
            "late": self.late,
            "events": self.events,
            "combines": self.plan.combines,
            "stores": [
                [[one.name, one.since_us] for one in store.members.values()]
                for store in self.delimited
            ],
            "store_combines": [store.combines for store in self.delimited],
            "since_us": {name_of_base(node): us for node, us in self.since_us.items()},
            "complete_from_us": [[*who, us] for who, us in self.complete_from_us.items()],
            "late_before": self.late_before,
        }

    def take_counters(self, told: Mapping[str, Any]) -> None:
        """Take back what `counters` gave."""
        self.watermark_us, self.late = told["watermark_us"], told["late"]
        self.events, self.plan.combines = told["events"], told["combines"]
        nodes = {name_of_base(node): node for node in self.plan.bases}
        self.since_us = {nodes[name]: us for name, us in told["since_us"].items()}
        members = {
            one.name: (rolls, one)
            for store in self.delimited
            for rolls, one in store.members.items()
        }
        self.delimited = [
            Delimited(dict(members[name] for name, _ in names), combines=combines)
            for names, combines in zip(told["stores"], told["store_combines"], strict=True)
        ]
        for name, since_us in (pair for names in told["stores"] for pair in names):
            members[name][1].since_us = since_us
        self.complete_from_us = {(query, name): us for query, name, us in told["complete_from_us"]}
        self.late_before = told["late_before"]

    @property
    def nbytes(self) -> int:
        """The memory of slices and events held."""
        slices = sum(flow.nbytes for node in self.plan.bases for flow in self.slices_of(node))
        rings = sum(store.nbytes for store in self.stores.values())
        return slices + rings + sum(store.nbytes for store in self.delimited)

    @property
    def combines(self) -> int:
        """How many partials were combined with another."""
        return self.plan.combines + sum(store.combines for store in self.delimited)

    @property
    def open_slices(self) -> int:
        """The number of (key, slice) rows held, those not yet merged counted each."""
        slices = sum(len(flow) for node in self.plan.bases for flow in self.slices_of(node))
        return slices + sum(len(store.kept or ()) for store in self.delimited)

    def process(self, timed: Timed) -> Mapping[Node, Flow]:
        """Take a batch; an error leaves the state as it was.

        Returns the slices that were made of it, unless some of its events came too late.
        """
        late = self._late(timed)
        dropped = 0
        if late is not None:
            dropped, timed = int(late.sum()), timed.filter(~late)
        sliced: dict[Node, Flow] = {}
        if timed.times_us.size:
            known, rows = self._sliced_known(timed), []
            if known is None:
                with self.plan.timed(self.scan):
                    events = events_of(timed, self.keys, self.codes)
                threads = threads_for(len(events))
                for node, base in self.plan.bases.items():
                    with self.plan.timed(node):
                        partials = tuple(base.partials)
                        sliced[node] = slice_batch(events, base.slices, partials, threads)
                rows = [store.rows_of(events) for store in self.delimited]
            sliced |= known or {}
            for node, flow in sliced.items():
                if not self.plan.bases[node].windows:
                    continue  # others regroup them, and nobody reads them here
                self._feed_stores(node, flow)
                self.runs.setdefault(node, []).append(flow)
                if self.journal is not None:
                    self.journal.touch(node, flow.starts_us)
            for store, part in zip(self.delimited, rows, strict=True):
                store.waiting.append(part)
            self.events += timed.times_us.size
        self.late += dropped
        return {} if dropped else sliced

    def drops_of(self, timed: Timed) -> bool:
        """Tell whether any event of a batch comes too late here."""
        return self._late(timed) is not None

    @property
    def sliced(self) -> tuple[tuple[Partial, ...], ...]:
        """The partials of each set of slices that is kept, in the order of their numbers."""
        return tuple(tuple(base.partials) for base in self.plan.bases.values())

    def slices(self) -> Iterator[tuple[int, Flow]]:
        """Yield the slices that are held, with the number of their set."""
        for number, node in enumerate(self.plan.bases):
            for flow in self.slices_of(node):
                yield number, flow

    def add_slices(self, number: int, slices: Flow) -> None:
        """Add slices that were made elsewhere to a set; keys are this operator's codes."""
        node = list(self.plan.bases)[number]
        runs = self.runs.setdefault(node, [])
        self._feed_stores(node, slices)
        runs.append(slices)
        if self.journal is not None:
            self.journal.touch(node, slices.starts_us)
        if len(runs) >= MOST_RUNS:
            self.runs[node] = [merged(runs)]

    def _sliced_known(self, timed: Timed) -> dict[Node, Flow] | None:
        """Slice a batch in one pass over the events, if all of its keys came before."""
        if self.delimited or timed.times_us.size > MOST_IN_ONE_PASS:
            return None
        keys = self.codes.known([timed.argument(expression) for _, expression in self.keys])
        if keys is None:
            return None
        found: dict[Node, Flow] = {}
        for node, base in self.plan.bases.items():
            flow = slice_known(timed, keys, base.slices, tuple(base.partials))
            if flow is None:
                return None
            found[node] = flow
        return found

    def saved(self) -> ScopeOperator:
        """Return the operator as it is now, to go back to; columns are shared, never changed."""
        kept = copy(self)
        kept.runs = {node: list(flows) for node, flows in self.runs.items()}
        kept.past = {node: log.saved() for node, log in self.past.items()}
        kept.stores = {}  # they change in place, and are made again from the slices
        kept.delimited = [store.saved() for store in self.delimited]
        kept.plan, kept.since_us = copy(self.plan), dict(self.since_us)
        kept.codes = self.codes.saved()
        kept.journal = None if self.journal is None else self.journal.saved()
        return kept

    def _late(self, timed: Timed) -> Bools | None:
        """Tell which events come too late; None when none does."""
        watermark, times = self.watermark_us, timed.times_us
        if watermark is None or not times.size or timed.bounds_us[0] >= watermark:
            return None
        late = times < watermark
        if not self.delimited:
            old = times[late]
            closed = np.zeros(old.size, np.bool_)
            for window in self.plan.windows:
                assert isinstance(window, TIMED)
                closed |= closed_for(window, self._calendar(window), old, watermark)
            late[late] = closed
        return late if late.any() else None

    def _calendar(self, window: Window) -> CalendarTable | None:
        return self.plan.calendars.get(window) if isinstance(window, CalendarWindow) else None

    def advance(self, to_us: int | None, types: Types) -> list[Closed]:
        """Close what the watermark passes, None for everything, and forget what nobody needs."""
        from_us = self.watermark_us
        if from_us is not None and to_us is not None and to_us <= from_us:
            return []
        if not self.delimited and not self._closes(from_us, to_us):
            self.watermark_us = to_us
            self.runs = {node: compacted(runs) for node, runs in self.runs.items()}
            return []
        delimited: dict[Rolls, Flow] = {}
        for store in self.delimited:
            with self.plan.timed(*(roll for rolls in store.members for roll in rolls)):
                delimited |= store.advance(to_us)
        self.runs = {node: [merged(runs)] for node, runs in self.runs.items()}
        kept = KeptSlices(self.runs, self.past)
        closing = Closing(
            self.plan, kept, delimited, from_us, to_us, self.codes, self.complete_from_us
        )
        if closing.streams:
            self._slide_stores(closing)
        out = closing.closed(self.emits, types)
        self.watermark_us = to_us
        self._settle(to_us)
        self._forget(to_us)
        return out

    def slices_of(self, node: Node) -> list[Flow]:
        """Return all slices that are held of a base, in flows that may have rows in common."""
        past = self.past.get(node)
        return [*(() if past is None else past.pieces), *self.runs.get(node, ())]

    def _slide_stores(self, closing: Closing) -> None:
        """Let stores take in what is final now, and hand on what they answer."""
        for spec in self.plan.stored:
            if spec.base not in self.runs or not spec.closes(closing.from_us, closing.to_us):
                continue
            store = self.stores.get(spec)
            if store is None:
                kept = (spec.technique, spec.shapes, spec.partials, spec.by_time)
                store = self.stores[spec] = RollStore(*kept)
            source = SliceSource(self.past.get(spec.base, SliceLog()), self.runs[spec.base][0])
            before = store.combines
            for roll, flow in slid(spec, store, source, closing.from_us, closing.to_us).items():
                self.plan.keep(roll, flow, closing.made)
            self.plan.combines += store.combines - before

    def _feed_stores(self, node: Node, flow: Flow) -> None:
        """Let trees take in slices that come; other stores that closed them are made again."""
        if not self.stores or not len(flow):
            return
        first = int(flow.starts_us.min())
        for spec in [s for s in self.stores if s.base == node]:
            if spec.by_time:
                self._feed(spec, flow)
            elif first < spec.final_before(self.watermark_us):
                del self.stores[spec]

    def _feed(self, spec: StoredRolls, flow: Flow) -> None:
        store = self.stores.pop(spec)  # stays away if a function of the user fails
        runs = self.runs.get(spec.base, [])

        def history(keys: Bools | None) -> Flow | None:
            if not runs:
                return None
            source = SliceSource(self.past.get(spec.base, SliceLog()), merged(runs))
            return spec.coarse(source.between(spec.oldest_open(self.watermark_us), NEVER, keys))

        new, before = spec.coarse(flow), store.combines
        assert new is not None
        if store.arrived(new, history):
            self.stores[spec] = store
            self.plan.combines += store.combines - before

    def _settle(self, watermark_us: int | None) -> None:
        """Put the slices that stores have taken in aside, piece by piece."""
        finals: dict[Node, int] = {}
        for spec in self.stores:
            final = spec.final_before(watermark_us)
            finals[spec.base] = max(finals.get(spec.base, final), final)
        for node, final in finals.items():
            (flow,) = self.runs[node]
            done = flow.starts_us < final
            if done.any():
                self.past.setdefault(node, SliceLog()).add(flow.take(np.flatnonzero(done)))
                self.runs[node] = [flow.take(np.flatnonzero(~done))]

    def _closes(self, from_us: int | None, to_us: int | None) -> bool:
        """Tell whether any instance may end in `(from, to]`; without, no slice can go either."""
        timed = (window for window in self.plan.windows if isinstance(window, TIMED))
        return any(closes_between(window, from_us, to_us) for window in timed)

    def _forget(self, watermark_us: int | None) -> None:
        """Drop the slices that no open instance needs."""
        if watermark_us is None:
            self.runs, self.past, self.stores = {}, {}, {}
            return
        for node, base in self.plan.bases.items():
            if node not in self.runs:
                continue
            oldest = oldest_open(base.readers, self.plan.calendars, watermark_us)
            (flow,) = self.runs[node]
            self.since_us[node] = max(self.since_us.get(node, oldest), oldest)
            needed = flow.starts_us >= oldest
            if self.journal is not None:
                self.journal.forgotten[node] = oldest
            if node in self.past:
                self.past[node].forget(oldest)
            if not needed.all():
                flow = flow.take(np.flatnonzero(needed))
            self.runs[node] = [self._with_latest_only(node, flow, watermark_us)]

    def _with_latest_only(self, node: Node, flow: Flow, watermark_us: int) -> Flow:
        """Thin out sets in the slices behind the watermark, whenever there is one slice more."""
        if not flow.sets:
            return flow
        base = self.plan.bases[node]
        before_us = int(base.slices.bounds(base.slices.slice_of([watermark_us]))[0][0])
        if self.thinned_us.get(node) == before_us:
            return flow
        self.thinned_us = {**self.thinned_us, node: before_us}
        return flow.with_latest_only(before_us)


def members_of(emits: Sequence[Emit]) -> list[tuple[Rolls, Member]]:
    """List the windows that events delimit, each with the partials that its Rolls have."""
    found: dict[Rolls, Member] = {}
    for emit in emits:
        rolls = tuple(roll for roll in emit.inputs if isinstance(roll, Roll))
        if rolls and rolls not in found and not is_timed(rolls[0].window):
            window = rolls[0].window
            partials = tuple(dict.fromkeys(p for r in rolls for p in r.partials))
            found[rolls] = Member(name_of_window(window, partials), window, partials)
    return list(found.items())
