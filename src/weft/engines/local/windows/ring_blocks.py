"""Rings of slices for many keys, and what a batch of slices means for each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.engines.local.windows.flow import runs_of_equals
from weft.kernels.columns import Columns, only_read
from weft.kernels.incremental import by_time, slide
from weft.kernels.parallel import read_only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from weft.engines.local.windows.flow import Flow
    from weft.engines.local.windows.instances import Shapes
    from weft.kernels.incremental.notes import Shelf
    from weft.kernels.partials import Int64s
    from weft.kernels.registry import Kernel

FREE = -1  # a row without a key


def _none() -> Int64s:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One operation of one partial, run by a technique that counts its combines."""

    kernel: Kernel
    calls: Int64s
    shelf: Shelf | None = None  # of partials that are Python objects

    def run(self, step: Callable[..., int], items: int, slots: int, *arguments: Any) -> None:
        """Call a function over the windows of many keys, whose rings have so many slots."""
        if self.shelf is None:
            step(self.kernel.algebra, *arguments, 0)
        else:
            self.shelf.run(step, items, slots, *arguments)

    def answers(self, columns: Columns) -> Columns:
        """Return answers as partials: of objects only the places are known until now."""
        return columns if self.shelf is None else self.shelf.at(columns)


@dataclass(slots=True, eq=False)
class Block:
    """Rings of one capacity: the times of slices, and for every part the technique's state."""

    capacity: int
    times: Int64s  # [row, slot]
    at: Int64s  # [row, 2]
    codes: Int64s  # of the keys
    states: list[Any]

    @classmethod
    def of(cls, capacity: int, rows: int, parts: Sequence[Part]) -> Block:
        """Make empty rings."""
        return cls(
            capacity,
            np.zeros((rows, capacity), np.int64),
            np.zeros((rows, 2), np.int64),
            np.full(rows, FREE, np.int64),
            [part.kernel.new(capacity, rows) for part in parts],
        )

    @property
    def nbytes(self) -> int:
        """The memory of all rings."""
        return sum(array.nbytes for array in (self.times, self.at, *_arrays(tuple(self.states))))

    @property
    def held(self) -> Int64s:
        """The number of slices in every row."""
        return np.ascontiguousarray(self.at[:, slide.END] - self.at[:, slide.FRONT])


def _arrays(members: tuple[Any, ...]) -> Iterator[Any]:
    for member in members:
        if isinstance(member, tuple):
            yield from _arrays(member)
        else:
            yield member


@dataclass(slots=True, eq=False)
class Batch:
    """Slices that come to the keys of a block: what closes with them, and what stays.

    Slices of a key are numbered from the oldest that it holds. Until `close` is called nothing
    closes and everything stays.
    """

    block: Block
    new_us: Int64s
    firsts_new: Int64s  # of each row in the slices that come
    stops_new: Int64s
    held: Int64s
    kept: Int64s  # of each row, the first slice that stays
    most: Int64s  # of each row, how many slices must fit
    windows: Int64s = field(default_factory=_none)  # of each instance that closes
    rows: Int64s = field(default_factory=_none)
    starts_us: Int64s = field(default_factory=_none)
    firsts: Int64s = field(default_factory=_none)
    stops: Int64s = field(default_factory=_none)
    evicted: Int64s = field(default_factory=_none)

    @classmethod
    def of(cls, block: Block, rows: Int64s, firsts: Int64s, stops: Int64s, flow: Flow) -> Batch:
        """Bring the slices `[first, stop)` of a flow to rows of a block."""
        firsts_new, stops_new = (np.zeros(block.codes.size, np.int64) for _ in range(2))
        firsts_new[rows], stops_new[rows] = firsts, stops
        held = block.held
        most = held + stops_new - firsts_new
        new_us = read_only(np.ascontiguousarray(flow.starts_us))
        return cls(block, new_us, firsts_new, stops_new, held, np.zeros_like(held), most)

    def close(self, shapes: Shapes, bounds: tuple[int, int], oldest_us: int) -> None:
        """Find what ends within bounds, and which slices are open after that."""
        block = self.block
        known = (block.times, block.at, self.new_us, self.firsts_new, self.stops_new)
        count = slide.find(*known, shapes.sizes_us, *bounds, *(_none(),) * 5)
        found = [np.empty(count, np.int64) for _ in range(5)]
        if count:
            slide.find(*known, shapes.sizes_us, *bounds, *found)
        if len(shapes.sizes_us) > 1:
            windows, rows, starts_us = found[:3]
            order = np.lexsort((starts_us + shapes.sizes_us[windows, 0], rows))
            found = [column[order] for column in found]
        self.windows, self.rows, self.starts_us, self.firsts, self.stops = found
        self.evicted = np.empty(count, np.int64)
        slide.needs(
            *known,
            oldest_us,
            self.rows,
            self.firsts,
            self.stops,
            self.evicted,
            self.kept,
            self.most,
        )

    @property
    def short(self) -> Int64s:
        """The rows whose ring is too small."""
        return np.flatnonzero(self.most > self.block.capacity)

    def arrive(self, parts: Sequence[Part], columns: Sequence[Columns]) -> None:
        """Let trees take in slices that may be older than those they hold."""
        new = (self.new_us, self.firsts_new, self.stops_new)
        for part, state, values in zip(parts, self.block.states, columns, strict=True):
            taken = np.zeros_like(self.held)
            part.run(by_time.arrive, taken.size, self.block.capacity, state, *new, values, taken)
        by_time.keep_times(self.block.times, self.block.at, *new)

    def answered_by_time(self, parts: Sequence[Part], ranges_us: Int64s) -> list[Columns]:
        """Let trees answer what closes, and let go of what is too old; nothing comes."""
        slots, rows = self.block.capacity, self.rows
        ends_us = self.starts_us + ranges_us[self.windows]
        # First out with what no instance needs: one that spans all the rest costs two combines.
        before = np.zeros_like(self.kept)
        firsts, _ = runs_of_equals(rows)
        before[rows[firsts]] = self.evicted[firsts]
        whole = (self.firsts == before[rows]) & (self.stops == self.held[rows])
        out: list[Columns] = []
        for part, state in zip(parts, self.block.states, strict=True):
            gone = np.zeros_like(self.kept)
            part.run(by_time.settle, gone.size, slots, state, before, gone)
            answers = part.kernel.operation.columns(rows.size)
            asked = (rows, self.starts_us, ends_us, whole, answers)
            part.run(by_time.answer, rows.size, slots, state, *asked)
            out.append(part.answers(answers))  # before a shelf forgets what no state holds
            part.run(by_time.settle, gone.size, slots, state, self.kept, gone)
        self.block.at[:, slide.FRONT] += self.kept
        return out

    def run(self, parts: Sequence[Part], columns: Sequence[Columns]) -> list[Columns]:
        """Let every part answer, and take in and let go what is to be."""
        out: list[Columns] = []
        for part, state, column in zip(parts, self.block.states, columns, strict=True):
            values = only_read(column)
            progress = np.stack([self.held, np.zeros_like(self.held)], axis=1)
            answers = part.kernel.operation.columns(self.rows.size)
            items = self.rows.size + self.kept.size
            new = (self.firsts_new, self.stops_new, self.held, values)
            asked = (self.rows, self.firsts, self.stops, self.evicted)
            left = (self.kept, progress, answers)
            step = slide.answer_and_settle
            part.run(step, items, self.block.capacity, state, *new, *asked, *left)
            out.append(part.answers(answers))
        slide.keep_times(
            self.block.times, self.block.at, self.new_us, self.firsts_new, self.stops_new, self.kept
        )
        return out
