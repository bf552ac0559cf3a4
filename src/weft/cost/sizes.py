"""How much a plan needs on Spark: rows and bytes that are read, moved and kept, and memory.

Rows follow from rates, keys and windows, as costs do. Bytes of a row are those that Spark was seen
to write and to keep, for keys and values of this width. Partials that grow with what they have
seen, such as exact distinct counts, have no size that could be told from a plan; they are named.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from weft.aggregates.kinds import GROWING_KINDS
from weft.cost.strategies import slices_to_ship
from weft.cost.volumes import SECOND_US, Volumes
from weft.plan.body import COLUMNAR
from weft.plan.nodes import PICK, Roll, Scan, Slice, regroups
from weft.plan.planned_scope import planned_scopes
from weft.techniques import TECHNIQUES, Technique

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weft.aggregates import Partial
    from weft.plan.body import PlanBody
    from weft.plan.nodes import Node
    from weft.plan.planned_scope import PlannedScope
    from weft.statistics import Statistics

# Values that a partial has, where it is not one.
_VALUES = {"moments": 3, "comoments": 6, "shape_moments": 5}
_VALUES |= dict.fromkeys(("first", "last", "min_by", "max_by"), 2)
# What Spark writes of a shuffled row: times and short keys compress well, numbers at random not at
# all, and counts nearly to nothing.
_ROW_BYTES, _SHORT_KEY_BYTES = 6.0, 8.0
_VALUE_BYTES, _COUNT_BYTES = 8.0, 2.0
_COUNTS = frozenset({"count", "count_rows"})
_IN_MEMORY = 2.5  # a row at work takes so many times what is written of it
# A row of native state, beside its key and values: objects of Java, and the map that finds it, in
# the two versions that a state store keeps in memory.
_STATE_ROW_BYTES = 340.0
# A slice of columnar state: a number for the key and a time. Sums are kept with what they lost to
# rounding, so they take two values.
_SLICE_BYTES = 16.0
_ROUNDED_KINDS = frozenset({"sum"})
_TASK_BYTES = 128 * 1024.0**2  # what a task reads by Spark's own settings
_RESERVED_BYTES = 300 * 1024.0**2  # of every heap, by Spark
_HEAP_SHARE = 0.6  # of the rest, for execution and storage
_WORKER_BYTES = 400 * 1024.0**2  # a Python process with Arrow and compiled kernels
_ROOM = 1.5  # slots of a ring for each slice in it: there are powers of two
_AGES = 32  # at which an open window is looked at


class Amount(NamedTuple):
    """Rows of one kind, and their bytes."""

    what: str
    rows: float
    bytes: float


@dataclass(frozen=True, slots=True)
class Pace:
    """How a stream runs: how late events may be, and how long a micro-batch gathers them."""

    delay_us: float
    micro_batch_us: float


@dataclass(frozen=True, slots=True)
class Size:
    """What a run, or each micro-batch of a stream, reads, moves and keeps."""

    scans: int
    events: float
    moved: tuple[Amount, ...]
    kept: tuple[Amount, ...]
    result_rows: float
    columnar: bool
    growing: tuple[str, ...]  # partials that have no size

    @property
    def moved_bytes(self) -> float:
        """What is written to shuffles."""
        return sum(amount.bytes for amount in self.moved)

    @property
    def kept_bytes(self) -> float:
        """What the states of a stream hold."""
        return sum(amount.bytes for amount in self.kept)

    def partitions(self, cores: int) -> int:
        """How many tasks a shuffle should have: all cores, and none with more than it can hold.

        >>> Size(1, 1e9, (Amount("slices", 1e9, 60e9),), (), 1e6, False, ()).partitions(64)
        448
        """
        most = max((amount.bytes for amount in self.moved), default=0.0)
        kept = self.kept_bytes
        return cores * max(1, ceil(max(most, kept) / _TASK_BYTES / cores))

    def executor_bytes(self, executors: int, cores_each: int) -> tuple[float, float]:
        """Memory that each executor needs: Java's heap, and beside it Python's processes."""
        tasks = self.partitions(executors * cores_each)
        at_work = cores_each * max((a.bytes for a in self.moved), default=0.0) / tasks * _IN_MEMORY
        held = 0.0 if self.columnar else self.kept_bytes / executors
        heap = (held + at_work) / _HEAP_SHARE + _RESERVED_BYTES
        if not self.columnar:
            return heap, 0.0
        return heap, cores_each * (_WORKER_BYTES + 2 * self.kept_bytes / tasks)


def size_of(
    plan: PlanBody, known: Statistics, lasts_us: float, tasks: int, pace: Pace | None
) -> Size:
    """Predict a batch over so long a time, or with a `pace` a micro-batch of a stream.

    Events lie in their files in order of time, so that each of the `tasks` that read them meets
    few slices that another meets too.
    """
    moved: list[Amount] = []
    kept: list[Amount] = []
    results = 0.0
    columnar = False
    scans: dict[Scan, None] = {}
    span_us = lasts_us if pace is None else pace.micro_batch_us
    for scope in planned_scopes(plan):
        scans |= dict.fromkeys(scan for scan, _ in scope.roots)
        own = known.of_keys(tuple(text for _, text in scope.keys))
        counted = _Counted(scope, Volumes(own, span_us), tasks)
        choice = next((c for c in plan.strategies if scope.queries[0] in c.queries), None)
        hosted = choice is not None and choice.strategy == COLUMNAR
        columnar = columnar or hosted
        if pace is not None:
            kept += counted.hosted_state(pace) if hosted else counted.native_states(pace)
        if not hosted:
            moved += counted.native()
        elif pace is not None or (choice is not None and choice.ships != "slices"):
            moved += counted.shipped_events()
        else:
            moved += counted.shipped_slices()
        results += counted.results(steady=pace is not None)
    growing = tuple(
        dict.fromkeys(
            p.kind for s in planned_scopes(plan) for p in s.partials if p.kind in GROWING_KINDS
        )
    )
    events = known.events_per_us * span_us
    return Size(len(scans), events, tuple(moved), tuple(kept), results, columnar, growing)


@dataclass(frozen=True, slots=True)
class _Counted:
    """Rows and bytes of one scope."""

    scope: PlannedScope
    volumes: Volumes
    tasks: int

    @property
    def _first(self) -> Iterator[Slice | Roll]:
        """What is made of events."""
        for node in self.scope.nodes:
            if isinstance(node, Slice | Roll) and isinstance(node.inputs[0], Scan):
                yield node

    def _bytes(self, rows: float, value_bytes: float) -> float:
        long_keys = max(self.volumes.statistics.row_key_bytes - _SHORT_KEY_BYTES, 0.0)
        return rows * (_ROW_BYTES + long_keys + value_bytes)

    def _in_tasks(self, node: Node) -> float:
        """Rows that tasks make of their own events, before any meets those of another."""
        share = replace(self.volumes, lasts_us=self.volumes.lasts_us / self.tasks)
        return min(self.tasks * share.rows(node), self.volumes.events * self._copies(node))

    def _copies(self, node: Node) -> float:
        return self.volumes.overlap(node.window) if isinstance(node, Roll) else 1.0

    def results(self, *, steady: bool) -> float:
        """Rows of results: of a stream that has run for long, those that a micro-batch closes."""
        if not steady:
            return sum(self.volumes.rows(emit) for emit in self.scope.emits)
        seconds = self.volumes.lasts_us / SECOND_US
        return sum(self.volumes.rows_per_second(emit) for emit in self.scope.emits) * seconds

    def native(self) -> Iterator[Amount]:
        """What Catalyst moves: what is made of events, and that by key where more is made of it."""
        values = _moved_bytes(self.scope.partials)
        first = list(self._first)
        rows = sum(self._in_tasks(node) for node in first)
        yield Amount(
            "slices" if isinstance(first[0], Slice) else "windows", rows, self._bytes(rows, values)
        )
        if any(isinstance(n, Roll) and not isinstance(n.inputs[0], Scan) for n in self.scope.nodes):
            again = sum(self.volumes.rows(node) for node in first)
            yield Amount("slices, by key", again, self._bytes(again, values))
        for node in self.scope.nodes:
            if isinstance(node, Slice | Roll) and regroups(node):
                rows = self.volumes.rows(node)
                yield Amount("regrouped", rows, self._bytes(rows, values))

    def shipped_slices(self) -> Iterator[Amount]:
        """What is moved where Catalyst makes the slices and the kernels all else."""
        base = slices_to_ship(self.scope.nodes)
        assert base is not None
        values = _moved_bytes(base.partials)
        rows, again = self._in_tasks(base), self.volumes.rows(base)
        yield Amount("slices", rows, self._bytes(rows, values))
        yield Amount("slices, by key", again, self._bytes(again, values))

    def shipped_events(self) -> Iterator[Amount]:
        """What is moved where the kernels take the events themselves."""
        arguments = len({arg for partial in self.scope.partials for arg in partial.args})
        events = self.volumes.events
        yield Amount("events", events, self._bytes(events, _VALUE_BYTES * arguments))

    def native_states(self, pace: Pace) -> Iterator[Amount]:
        """Rows that wait in states: those made of events until they close, then windows."""
        keys = self.volumes.statistics.row_key_bytes
        row = _STATE_ROW_BYTES + keys + _VALUE_BYTES * _values(self.scope.partials)
        late_us = pace.delay_us + pace.micro_batch_us
        above = [
            n for n in self.scope.nodes if isinstance(n, Roll) and not isinstance(n.inputs[0], Scan)
        ]
        held = sum(self._held(node, late_us) for node in self._first)
        yield Amount("open slices" if above else "open windows", held, held * row)
        if above:
            waiting = [n for n in above if n.read != PICK]
            held = sum(self._held(node, 0.0) for node in waiting)
            yield Amount("open windows", held, held * row)

    def _held(self, node: Slice | Roll, late_us: float) -> float:
        """Rows of instances that are open: younger ones have met fewer keys."""
        range_us, period_us = self._shape(node)
        full = self.volumes.keys_in(range_us)
        return (range_us * self._young(range_us) + late_us * full) / period_us

    def _young(self, range_us: float) -> float:
        """Keys that an instance has met which is not over yet, in the mean."""
        keys = self.volumes.keys_in
        return sum(keys(range_us * (at + 0.5) / _AGES) for at in range(_AGES)) / _AGES

    def _shape(self, node: Slice | Roll) -> tuple[float, float]:
        if isinstance(node, Slice):
            slice_us = SECOND_US / self.volumes.slices_per_second(node.edges)
            return slice_us, slice_us
        return self.volumes.range_us(node.window), self.volumes.period_us(node.window)

    def hosted_state(self, pace: Pace) -> Iterator[Amount]:
        """Slices that open windows may still need, and the youngest, which is still filling.

        The oldest open instance began its range before it ends: half a slide after the watermark.
        """
        clocked = [self._shape(roll) for roll in self.scope.rolls]
        reach_us = max(range_us - period_us / 2 for range_us, period_us in clocked)
        for node in self.scope.nodes:
            if isinstance(node, Slice) and isinstance(node.inputs[0], Scan):
                slice_us, _ = self._shape(node)
                open_us = reach_us + pace.delay_us + pace.micro_batch_us - slice_us / 2
                full = max(open_us, 0.0) / slice_us * self.volumes.keys_in(slice_us)
                held = full + self._young(slice_us)
                yield Amount("open slices", held, held * _slice_bytes(node.partials))
                rings = self._rings(node, slice_us, 1 + pace.micro_batch_us / slice_us)
                if rings.rows:
                    yield rings

    def _rings(self, base: Slice, slice_us: float, came: float) -> Amount:
        """Rings of the techniques that slide over slices, a ring for each key of a store."""
        stores: dict[tuple[object, ...], float] = {}
        for roll in self.scope.nodes:
            if not isinstance(roll, Roll) or base not in roll.inputs or roll.technique is None:
                continue
            technique = TECHNIQUES[roll.technique]
            if technique.form == "incremental":
                shared = () if technique.several_ranges else (roll,)
                slices = self._shape(roll)[0] / slice_us + came
                stores[technique, *shared] = max(stores.get((technique, *shared), 0.0), slices)
        keys = self.volumes.keys_in(max((n * slice_us for n in stores.values()), default=0.0))
        slots = {store: _ROOM * slices for store, slices in stores.items()}
        values = _slice_bytes(base.partials) - _SLICE_BYTES
        each = sum(
            _VALUE_BYTES * room + values * store[0].partials_stored(room)
            for store, room in slots.items()
            if isinstance(store[0], Technique)
        )
        return Amount("rings over slices", keys * sum(slots.values()), keys * each)


def _values(partials: tuple[Partial, ...]) -> int:
    return sum(_VALUES.get(partial.kind, 1) for partial in partials)


def _moved_bytes(partials: tuple[Partial, ...]) -> float:
    counts = sum(partial.kind in _COUNTS for partial in partials)
    return _COUNT_BYTES * counts + _VALUE_BYTES * (_values(partials) - counts)


def _slice_bytes(partials: tuple[Partial, ...]) -> float:
    rounded = sum(partial.kind in _ROUNDED_KINDS for partial in partials)
    return _SLICE_BYTES + _VALUE_BYTES * (_values(partials) + rounded)


def bytes_text(count: float) -> str:
    """Write a number of bytes in words.

    >>> bytes_text(81_920.0), bytes_text(12.0), bytes_text(3 * 1024**4)
    ('80.0 KiB', '12 B', '3.0 TiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
