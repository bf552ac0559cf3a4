"""What Spark does for each node in batch: natively, through the kernels, and without weft.

Natively all nodes of one height are one aggregation, which reads rows once and copies them to every
instance that holds them. What it puts out is brought together by key before a second one, and no
further one moves a row; rows of windows that are done are handed on from level to level. Through
the kernels Catalyst makes slices, or sends the events themselves. Without weft every window is a
read, an aggregation and a shuffle of its own.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from weft.aggregates.kinds import GROWING_KINDS
from weft.cost.batch.kernels import KernelWork
from weft.cost.batch.work import Work, doublings, times, total, work
from weft.cost.prices import COLUMNAR_PRICES, NATIVE_PRICES
from weft.plan.nodes import PICK, STAIR, Emit, Join, Node, Roll, Scan, Slice, picks_rows, regroups
from weft.window import PeriodicWindow, SessionWindow

if TYPE_CHECKING:
    from weft.aggregates import Partial
    from weft.cost.volumes import Volumes
    from weft.window import Window


# Groups that are found without waiting for memory; with every doubling it is waited longer.
_CACHED_GROUPS = 50_000.0


@dataclass(frozen=True)
class SparkWork:
    """Counts the operations of one scope on Spark."""

    volumes: Volumes

    def _work(self, **counts: float) -> Work:
        return work(NATIVE_PRICES, **counts)

    @property
    def cores(self) -> int:
        """The cores that share the work."""
        return self.volumes.statistics.cores or os.cpu_count() or 1

    @cached_property
    def _idle(self) -> float:
        """How much longer reading takes because there are fewer tasks than cores.

        Prices are those of all cores; a single small file is read by one.
        """
        return self.cores / min(self.cores, self.volumes.statistics.partitions or self.cores)

    @property
    def top_share(self) -> float:
        """The part of the events that the most frequent key has."""
        known = self.volumes.statistics
        return min(known.key_skew + 1 / known.key_count, 1.0)

    @property
    def held_up(self) -> float:
        """How much longer work takes if all events of a key are one task's, which holds it up."""
        return max(self.top_share * self.cores, 1.0) if self.volumes.statistics.key_skew else 1.0

    @property
    def _key_bytes(self) -> float:
        return self.volumes.statistics.row_key_bytes

    def _stages(self, stages: float) -> Work:
        adaptive = stages if self.volumes.statistics.adaptive else 0.0
        return self._work(stage=stages, adaptive=adaptive)

    # Natively.

    def native(self, nodes: tuple[Node, ...]) -> list[Work]:
        """Count for each node; what a run takes once is on the bill of the scan."""
        heights = _heights(nodes)
        top = max(heights.values())
        readers = _highest_readers(heights)
        emitted = {roll for node in nodes if isinstance(node, Emit) for roll in node.inputs}
        partials = _partials(nodes)
        queries = len({node.query for node in nodes if isinstance(node, Emit)})
        lasts = {n: top if n in emitted else readers.get(n, 0) - 1 for n in heights}
        rows = {n: self.volumes.rows(n) for n in heights if not isinstance(n, Scan)}
        groups = [
            sum(rows[n] for n in rows if heights[n] <= level <= max(lasts[n], heights[n]))
            for level in range(top + 1)
        ]
        found: list[Work] = []
        for node in nodes:
            match node:
                case Scan():
                    found.append(self._run(top, partials))
                case Slice() | Roll():
                    height = heights[node]
                    own = self._native_node(node, partials, 1 + (top > 1), groups[height])
                    handed = [
                        self.grouped(rows[node], rows[node], len(partials), groups[level])
                        for level in range(height + 1, lasts[node] + 1)
                    ]
                    found.append(total(own, *handed))
                case Emit() | Join():
                    found.append(self._emitted(node, queries, NATIVE_PRICES))
        return found

    def _run(self, top: int, partials: tuple[Partial, ...]) -> Work:
        """Read the events, once for each kind of aggregation, and set up what aggregates them."""
        growing = sum(p.kind in GROWING_KINDS for p in partials)
        reads = (len(partials) > growing) + growing
        events = self.volumes.events
        scanned = (events + self.volumes.dropped) * reads * self._idle
        columns = top * len(partials)
        once = self._work(run=1, operator=top * reads, column=columns, scan_event=scanned)
        return total(once, self._stages((1 + min(top, 2)) * reads))

    def _native_node(
        self, node: Slice | Roll, partials: tuple[Partial, ...], moved: int, groups: float
    ) -> Work:
        rows = self.volumes.rows(node)
        if any(isinstance(below, Scan) for below in node.inputs):
            window = node.window if isinstance(node, Roll) else None
            return self.from_events(window, partials, rows, moved, groups)
        combined = self.grouped(self.copies(node), rows, len(partials), groups)
        # Rows of keys that become one lie anywhere: what is regrouped moves once more.
        return total(combined, self._moved(rows, len(partials))) if regroups(node) else combined

    def from_events(
        self,
        window: Window | None,
        partials: tuple[Partial, ...],
        rows: float,
        moved: int,
        groups: float,
    ) -> Work:
        """Fold events into the instances that hold them; None folds each into one slice.

        `groups` are all that the aggregation has, those of other windows included.
        """
        events = self.volumes.events
        copies = events if window is None else events * self.volumes.overlap(window)
        copies *= self._idle
        growing = sum(p.kind in GROWING_KINDS for p in partials)
        width = len(partials) - growing
        folding = self._work(
            fold_event=copies,
            lift=copies * width,
            cold_row=copies * doublings(groups, _CACHED_GROUPS),
            set_value=copies * growing,
            key_byte=copies * self._key_bytes,
        )
        if isinstance(window, SessionWindow):  # events of a key are sorted before they are grouped
            return total(folding, self._moved(events, width))
        moving = [self._moved(rows, width)] * moved
        return total(folding, *moving, self.grouped(rows, rows, width, groups))

    def _moved(self, rows: float, width: int) -> Work:
        return self._work(
            shuffle_row=rows, shuffle_value=rows * (width + 1), key_byte=rows * self._key_bytes
        )

    def grouped(self, copies: float, rows: float, width: int, groups: float) -> Work:
        """Aggregate rows of partials."""
        return self._work(
            read_partial=copies,
            combine=copies * width,
            cold_row=copies * doublings(groups, _CACHED_GROUPS),
            key_byte=copies * self._key_bytes,
            write_partial=rows,
        )

    def copies(self, node: Slice | Roll) -> float:
        """Rows that a node above the first level aggregates: every feeder's, in every instance."""
        rows = self.volumes.rows
        if isinstance(node, Slice):
            return rows(node.input)
        window, feeder = node.window, node.feeder
        if node.read == PICK:
            return rows(node)
        if node.read == STAIR:
            inner, slices = node.inputs
            assert isinstance(inner, Roll)
            apart_us = self.volumes.range_us(window) - self.volumes.range_us(inner.window)
            return rows(node) + rows(slices) * apart_us / self.volumes.period_us(window)
        if isinstance(feeder, Roll) and isinstance(window, PeriodicWindow):
            if isinstance(feeder.window, PeriodicWindow):
                return rows(feeder) * self.instances_of_row(window, feeder.window)
            return rows(feeder)
        return rows(feeder) * max(self.volumes.overlap(window), 1.0)

    @staticmethod
    def instances_of_row(window: PeriodicWindow, feeder: PeriodicWindow) -> float:
        """Instances of a window that read one row of its feeder, in the mean."""
        read, _ = window.reads(feeder)
        return read * feeder.slide_us / window.slide_us

    def _emitted(self, node: Emit | Join, queries: int, engine: str, windows: int = 1) -> Work:
        rows = self.volumes.rows(node)
        outputs = len(node.outputs) if isinstance(node, Emit) else len(node.partials)
        # Rows of other filters are read too, and left out.
        read = self.volumes.rows(node.inputs[0]) if picks_rows(node) else rows
        kept = self._work(keep_row=read if queries > 1 else 0.0)
        bytes = rows * self._key_bytes if engine == COLUMNAR_PRICES else 0.0
        out = work(engine, window=windows, emit_row=rows, emit_value=rows * outputs, key_byte=bytes)
        return total(kept, out)

    # Through the kernels.

    def columnar(
        self, nodes: tuple[Node, ...], base: Slice | Roll | None, salt_us: int | None = None
    ) -> list[Work]:
        """Count for each node; slices of `base` are shipped, or without it the events.

        Events that are salted wait for no single key, and their slices are shipped once more.
        Slices of fewer keys that are regrouped from those of `base` are shipped in the same way.
        """
        regrouped = {node for node in nodes if isinstance(node, Slice) and regroups(node)}
        given = regrouped if base is None else {base, *regrouped}
        kernels = KernelWork(COLUMNAR_PRICES, self.volumes).works(nodes, given)
        held_up = self.held_up if base is None and salt_us is None else 1.0
        queries = {(n.keys, n.query) for n in nodes if isinstance(n, Emit)}
        sharers = Counter(keys for keys, _ in queries)
        scanned = (self.volumes.events + self.volumes.dropped) * self._idle
        columns = 0 if base is None else len(base.partials)
        once = total(
            self._work(run=1, operator=base is not None, column=columns, scan_event=scanned),
            self._stages(2 if base is None else 3),
            work(COLUMNAR_PRICES, run=1),
        )
        if base is None:
            shipped = self._shipped(self.volumes.events, _arguments(nodes))
            once = total(once, times(shipped, held_up))
        found: list[Work] = []
        for node in nodes:
            match node:
                case Scan():
                    found.append(once)
                case Slice() | Roll() if node == base:
                    kept = self._work(keep_row=self._slices_of(node) if regrouped else 0.0)
                    found.append(total(self._made(node), kept, kernels[node]))
                case Slice() if node in regrouped:
                    found.append(self._regrouped(node))
                case Slice() | Roll() if any(isinstance(below, Scan) for below in node.inputs):
                    again = {} if salt_us is None else self._salted(node, salt_us)
                    found.append(total(times(kernels[node], held_up), again))
                case Slice() | Roll():
                    found.append(kernels[node])
                case Emit() | Join():
                    found.append(self._emitted(node, sharers[node.keys], COLUMNAR_PRICES))
        return found

    def _regrouped(self, node: Slice) -> Work:
        """Make slices of those of more keys, which are kept, and hand them to the kernels."""
        rows, width = self.volumes.rows(node), len(node.partials)
        return total(
            self._work(operator=1, column=width),
            self._stages(3),
            work(COLUMNAR_PRICES, run=1),
            self.grouped(self.volumes.rows(node.input), rows, width, rows),
            self._moved(rows, width),
            self._shipped(rows, width),
        )

    def _salted(self, base: Slice | Roll, salt_us: int) -> Work:
        """Hand slices back to Spark, bring those of a key together and ship them once more."""
        known, width = self.volumes.statistics, len(base.partials)
        stretches = self.volumes.lasts_us / salt_us
        rows = min(self._slices_of(base) + stretches * known.key_count, self.volumes.events)
        # Sets and lists may have as many values as there are events.
        grown = self.volumes.events * sum(p.kind in GROWING_KINDS for p in base.partials)
        out = work(COLUMNAR_PRICES, run=1, emit_row=rows, emit_value=rows * width + grown)
        moved = self._work(shuffle_value=grown)
        return total(out, moved, self._stages(1), self._shipped(rows, width))

    def _slices_of(self, base: Slice | Roll) -> float:
        if isinstance(base, Slice):
            return self.volumes.rows(base)
        return KernelWork(COLUMNAR_PRICES, self.volumes).slices_of(base.window)

    def _made(self, base: Slice | Roll) -> Work:
        """Make slices of events, and hand them to the kernels."""
        rows, width = self._slices_of(base), len(base.partials)
        folded = self.from_events(None, base.partials, rows, 1, rows)
        return total(folded, self._shipped(rows, width))

    def _shipped(self, rows: float, width: int) -> Work:
        """Bring rows together by key, in order, and hand them to Python."""
        shipping = work(
            COLUMNAR_PRICES,
            ship_row=rows,
            ship_value=rows * (width + 1),
            key_byte=rows * self._key_bytes,
        )
        return total(self._moved(rows, width), shipping)

    # Without weft.

    def stock(self, nodes: tuple[Node, ...]) -> Work | None:
        """Count what Spark does by itself; None where it has no such window."""
        works = [self._work(run=1)]
        for emit in (node for node in nodes if isinstance(node, Emit)):
            roll = emit.inputs[0]
            assert isinstance(roll, Roll)
            if not _has_stock(roll.window):
                return None
            partials = _partials(emit.inputs)
            rows, events = self.volumes.rows(emit), self.volumes.events
            copies = events * self.volumes.overlap(roll.window) * self._idle
            works += [
                self._work(
                    operator=1,
                    column=len(partials),
                    scan_event=(events + self.volumes.dropped) * self._idle,
                    window_event=copies,
                ),
                self._stages(2),
                self.from_events(roll.window, partials, rows, 1, rows),
                # It is an aggregation of its own, and no line in a table of windows.
                self._emitted(emit, 1, NATIVE_PRICES, windows=0),
            ]
        return total(*works)


def _has_stock(window: Window) -> bool:
    if isinstance(window, PeriodicWindow):
        return window.slide_us <= window.range_us
    return isinstance(window, SessionWindow)


def _partials(nodes: tuple[Node, ...]) -> tuple[Partial, ...]:
    computed = (node for node in nodes if isinstance(node, Slice | Roll))
    return tuple(dict.fromkeys(p for node in computed for p in node.partials))


def _arguments(nodes: tuple[Node, ...]) -> int:
    return len({arg for partial in _partials(nodes) for arg in partial.args})


def _heights(nodes: tuple[Node, ...]) -> dict[Node, int]:
    """How far above the events every slicing and window lies."""
    found: dict[Node, int] = {}
    for node in nodes:
        if not isinstance(node, Emit | Join):
            found[node] = max((found[below] + 1 for below in node.inputs), default=0)
    return found


def _highest_readers(heights: dict[Node, int]) -> dict[Node, int]:
    found: dict[Node, int] = {}
    for node, height in heights.items():
        for below in node.inputs:
            found[below] = max(found.get(below, 0), height)
    return found
