"""The windows of a stream, kept by the technique that the plan names: rings of slices, by key.

A store serves windows that read the same slices with the same technique; techniques of one range
have a store for each. Keys live in blocks of equal rings, and move to a larger ring when they hold
more; a key without a slice gives its ring back. Nothing of a store is written down: it is made
again from the slices, which are there anyway.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.engines.local.partials.columns import Held, concat
from weft.engines.local.partials.stored import Form, ObjectForm, form_of
from weft.engines.local.windows.flow import runs_of_equals
from weft.engines.local.windows.ring_blocks import FREE, Batch, Block, Part
from weft.kernels.incremental import slide
from weft.kernels.operations import counting
from weft.kernels.registry import technique as bound
from weft.kernels.techniques.slides import power_of_two

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft.aggregates import Partial
    from weft.engines.local.windows.flow import Flow
    from weft.engines.local.windows.instances import Shapes
    from weft.kernels.columns import Columns
    from weft.kernels.partials import Bools, Int64s

    # The slices that were taken in before and are still needed, of all keys or of some.
    History = Callable[[Bools | None], Flow | None]

_LEAST_SLICES, _LEAST_ROWS = 2, 8
_FAR = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Instances that closed: which window, which key, when, and their partials."""

    windows: Int64s
    keys: Int64s
    starts_us: Int64s
    partials: dict[Partial, Held]


def _no_codes() -> Int64s:
    return np.empty(0, np.int64)


@dataclass(slots=True, eq=False)
class RollStore:
    """The open instances of windows over the same slices."""

    technique: str
    shapes: Shapes
    partials: tuple[Partial, ...]
    by_time: bool = False  # slices are taken in as they come, in any order
    combines: int = 0
    forms: dict[Partial, Form] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    block_of: Int64s = field(default_factory=_no_codes)  # by the code of a key
    row_of: Int64s = field(default_factory=_no_codes)

    @property
    def nbytes(self) -> int:
        """The memory of all rings."""
        return sum(block.nbytes for block in self.blocks)

    def slid(
        self, new: Flow, history: History, from_us: int | None, to_us: int | None, oldest_us: int
    ) -> Answers:
        """Take in slices that are complete now, and answer what ends in `(from, to]`."""
        columns = self._columns(new) if self.forms else None
        if columns is None:
            self._start(new, history)
            columns = self._columns(new)
            assert columns is not None
        bounds = (-_FAR if from_us is None else from_us, _FAR if to_us is None else to_us)
        batches = self._with_room(new, history, bounds, oldest_us)
        before = self._calls()
        keys = [batch.block.codes[batch.rows] for batch in batches]
        if self.by_time:
            ranges_us = self.shapes.sizes_us[:, 0]
            answers = [batch.answered_by_time(self.parts, ranges_us) for batch in batches]
        else:
            answers = [batch.run(self.parts, columns) for batch in batches]
        self.combines += int((self._calls() - before).max())
        self._give_back()
        self._release()
        return Answers(
            np.concatenate([batch.windows for batch in batches] or [_no_codes()]),
            np.concatenate(keys or [_no_codes()]),
            np.concatenate([batch.starts_us for batch in batches] or [_no_codes()]),
            self._rows(answers, new),
        )

    def arrived(self, new: Flow, history: History) -> bool:
        """Take in slices of any age as they come; False if this store has no form for them."""
        columns = self._columns(new) if self.forms else None
        if columns is None:
            return False
        starts, ends = runs_of_equals(new.keys)
        codes = new.keys[starts].astype(np.int64)
        self._seat_strangers(codes, ends - starts)
        batches = self._batches(new)
        short = [(batch, batch.short) for batch in batches]
        if any(rows.size for _, rows in short):
            self._move(short, history)
            batches = self._batches(new)
        before = self._calls()
        for batch in batches:
            batch.arrive(self.parts, columns)
        self.combines += int((self._calls() - before).max())
        self._release()
        return True

    def _release(self) -> None:
        for part in self.parts:
            if part.shelf is not None:
                part.shelf.release()

    def _calls(self) -> Int64s:
        return np.array([part.calls[0] for part in self.parts])

    def _rows(self, answers: Sequence[Sequence[Columns]], like: Flow) -> dict[Partial, Held]:
        """Make rows of the answers of all blocks, block by block."""
        if not answers:
            return {p: like.partials[p].take(_no_codes()) for p in self.partials}
        found: dict[Partial, Held] = {}
        at = 0
        for partial, form in self.forms.items():
            stop = at + len(form.operations)
            found[partial] = concat([form.rows(own[at:stop]) for own in answers])
            at = stop
        return found

    def _columns(self, rows: Flow) -> list[Columns] | None:
        found: list[Columns] = []
        for partial, form in self.forms.items():
            columns = form.columns(rows.partials[partial])
            if columns is None:
                return None
            found += columns
        return found

    def _start(self, new: Flow, history: History) -> None:
        """Begin anew, in forms that take both the slices there are and those that come."""
        past = history(None)
        self.blocks, self.forms, self.parts = [], {}, []
        self.block_of = self.row_of = _no_codes()
        for partial in self.partials:
            rows = new.partials[partial]
            if past is not None:
                rows = concat([past.partials[partial], rows])
            form = self.forms[partial] = form_of(rows, self.technique)
            if isinstance(form, ObjectForm):
                shelf = form.shelf
                shelf.kept = self._states_of(len(self.parts))
                kernel = bound(self.technique, shelf.operation)
                self.parts.append(Part(kernel, shelf.calls, shelf))
                continue
            for operation in form.operations:
                counted, calls = counting(operation)
                self.parts.append(Part(bound(self.technique, counted), calls))
        if past is not None and len(past):
            starts, ends = runs_of_equals(past.keys)
            self._place(past.keys[starts].astype(np.int64), ends - starts)
            self._load(past)

    def _states_of(self, part: int) -> Callable[[], list[Any]]:
        return lambda: [block.states[part] for block in self.blocks]

    def _load(self, flow: Flow) -> None:
        """Take in slices of keys that have an empty ring; nothing is answered."""
        columns = self._columns(flow)
        assert columns is not None
        for batch in self._batches(flow):
            if self.by_time:
                batch.arrive(self.parts, columns)
            else:
                batch.run(self.parts, columns)

    def _batches(self, flow: Flow) -> list[Batch]:
        """Bring slices to the blocks of their keys."""
        starts, ends = runs_of_equals(flow.keys)
        codes = flow.keys[starts]
        blocks, rows = self.block_of[codes], self.row_of[codes]
        if len(self.blocks) == 1:
            return [Batch.of(self.blocks[0], rows, starts, ends, flow)]
        found = []
        for at, block in enumerate(self.blocks):
            own = np.flatnonzero(blocks == at)
            found.append(Batch.of(block, rows[own], starts[own], ends[own], flow))
        return found

    def _with_room(
        self, new: Flow, history: History, bounds: tuple[int, int], oldest_us: int
    ) -> list[Batch]:
        """See what every key is to hold, and give larger rings to those that need them."""
        starts, ends = runs_of_equals(new.keys)
        self._seat_strangers(new.keys[starts].astype(np.int64), ends - starts)
        while True:
            batches = self._batches(new)
            for batch in batches:
                batch.close(self.shapes, bounds, oldest_us)
            short = [(batch, batch.short) for batch in batches]
            if not any(rows.size for _, rows in short):
                return batches
            self._move(short, history)

    def _seat_strangers(self, codes: Int64s, counts: Int64s) -> None:
        """Give small rings to keys that have none."""
        self._number(codes)
        strangers = self.block_of[codes] == FREE
        if strangers.any():
            self._place(codes[strangers], counts[strangers].clip(max=_LEAST_SLICES))

    def _move(self, short: Sequence[tuple[Batch, Int64s]], history: History) -> None:
        """Give larger rings to keys whose rows are too short, with what they held."""
        moved = np.concatenate([batch.block.codes[rows] for batch, rows in short])
        needed = np.concatenate([batch.most[rows] for batch, rows in short])
        for batch, rows in short:
            self._clear(batch.block, rows)
        self._place(moved, needed)
        wanted = np.zeros(self.block_of.size, np.bool_)
        wanted[moved] = True
        past = history(wanted)
        if past is not None:
            self._load(past)

    def _number(self, codes: Int64s) -> None:
        """Make room for keys up to the greatest code."""
        most = int(codes.max(initial=-1)) + 1
        if most > self.block_of.size:
            more = np.full(power_of_two(most) - self.block_of.size, FREE, np.int64)
            self.block_of = np.concatenate([self.block_of, more])
            self.row_of = np.concatenate([self.row_of, more])

    def _place(self, codes: Int64s, counts: Int64s) -> None:
        """Give keys rings that hold so many slices."""
        self._number(codes)
        exponents = np.ceil(np.log2(counts.clip(min=_LEAST_SLICES))).astype(np.int64)
        for exponent in np.unique(exponents).tolist():
            self._seat(codes[exponents == exponent], 1 << exponent)

    def _seat(self, codes: Int64s, capacity: int) -> None:
        rows_before = 0
        for at, block in enumerate(self.blocks):
            if block.capacity == capacity and codes.size:
                free = np.flatnonzero(block.codes == FREE)[: codes.size]
                self._sit(at, free, codes[: free.size])
                codes = codes[free.size :]
                rows_before += block.codes.size
        if codes.size:
            rows = max(codes.size, rows_before, _LEAST_ROWS)
            self.blocks.append(Block.of(capacity, rows, self.parts))
            self._sit(len(self.blocks) - 1, np.arange(codes.size), codes)

    def _sit(self, at: int, rows: Int64s, codes: Int64s) -> None:
        self.blocks[at].codes[rows] = codes
        self.block_of[codes], self.row_of[codes] = at, rows

    def _leave(self, block: Block, rows: Int64s) -> None:
        codes = block.codes[rows]
        self.block_of[codes] = self.row_of[codes] = FREE
        block.codes[rows] = FREE

    def _clear(self, block: Block, rows: Int64s) -> None:
        """Empty the rings of keys that move elsewhere."""
        if rows.size:
            for part, state in zip(self.parts, block.states, strict=True):
                part.run(slide.clear, rows.size, block.capacity, state, rows)
            block.at[rows] = 0
            self._leave(block, rows)

    def _give_back(self) -> None:
        """Free the rings of keys that hold nothing more, and blocks without keys."""
        for block in self.blocks:
            self._leave(block, np.flatnonzero((block.held == 0) & (block.codes != FREE)))
        used = [block for block in self.blocks if (block.codes != FREE).any()]
        if len(used) < len(self.blocks):
            self.blocks = used
            for at, block in enumerate(used):
                self.block_of[block.codes[block.codes != FREE]] = at
