"""Partials in columns, one row per (key, slice) or per event: all kinds with the same four verbs.

`take` selects rows, `over_ranges` combines neighbouring rows, `concat` puts batches one after the
other, and `arrow` shows the columns for a snapshot. Combining equal slices of several batches is a
sort and `over_ranges`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from weft.aggregates import Laws, Monoid
from weft.engines.local.values.coding import Coding, united
from weft.errors import UnsupportedError
from weft.kernels.incremental.notes import Shelf
from weft.kernels.incremental.ranges import ranges_by
from weft.kernels.operations import COUNT, Operation
from weft.kernels.partials import Partials
from weft.kernels.ranges.choice import aggregate_ranges
from weft.kernels.ranges.prefix_sums import largest_magnitude
from weft.kernels.ranges.sliding import slide_within
from weft.kernels.ranges.van_herk import blocks_within
from weft.techniques import FAN_OUT, INCREMENTAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.kernels.partials import Bools, Int64s

Rows = npt.NDArray[Any]  # positions, or a mask
Self = TypeVar("Self")


class Held(Protocol):
    """Partials of one kind, a row each."""

    def __len__(self) -> int:
        """Count the rows."""
        ...

    def take(self: Self, rows: Rows) -> Self:
        """Select rows."""
        ...

    def over_ranges(self: Self, starts: Int64s, ends: Int64s, technique: str | None = None) -> Self:
        """Combine the rows `[start, end)` of each range, oldest first, by a technique if named."""
        ...

    def joined(self: Self, others: Sequence[Self]) -> Self:
        """Put the rows of others after one's own."""
        ...

    def settled(self: Self) -> Self:
        """Do what was put off, so that the rows stand for themselves."""
        ...

    @property
    def nbytes(self) -> int:
        """The memory of the columns."""
        ...


def concat(parts: Sequence[Held]) -> Held:
    """Put parts of one kind one after the other."""
    return parts[0] if len(parts) == 1 else parts[0].joined(parts[1:])


@dataclass(frozen=True, slots=True, eq=False)
class KernelPartials:
    """Partials that kernels compute, and what the numbers of each field stand for."""

    partials: Partials
    codings: tuple[Coding | None, ...]  # one per field; None for plain numbers

    def __len__(self) -> int:
        return len(self.fields[0])

    @property
    def fields(self) -> tuple[npt.NDArray[Any], ...]:
        """The columns, also where there is one."""
        columns = self.partials.columns
        return columns if isinstance(columns, tuple) else (columns,)

    @property
    def present(self) -> Bools | None:
        """Which rows have a value; None when all have."""
        return self.partials.present

    @property
    def nbytes(self) -> int:
        """The memory of the columns."""
        return sum(field.nbytes for field in self.fields)

    def take(self, rows: Rows) -> KernelPartials:
        """Select rows."""
        return KernelPartials(self.partials.take(rows), self.codings)

    def over_ranges(
        self, starts: Int64s, ends: Int64s, technique: str | None = None
    ) -> KernelPartials:
        """Combine rows."""
        return KernelPartials(self.partials.over_ranges(starts, ends, technique), self.codings)

    def settled(self) -> KernelPartials:
        """Nothing is put off here."""
        return self

    def joined(self, others: Sequence[KernelPartials]) -> KernelPartials:
        """Bring the codings together, then the rows."""
        parts = [self, *others]
        columns: list[npt.NDArray[Any]] = []
        codings: list[Coding | None] = []
        for at, coding in enumerate(self.codings):
            numbers = [part.fields[at] for part in parts]
            merged: Coding | None = None
            if coding is not None:
                coded = [(n, p.codings[at]) for n, p in zip(numbers, parts, strict=True)]
                numbers, merged = united([(n, c) for n, c in coded if c is not None])
            columns.append(np.concatenate(numbers))
            codings.append(merged)
        made = Partials(
            self.partials.kind,
            self.partials.operation,
            tuple(columns) if len(columns) > 1 else columns[0],
            _joined_flags([(part.present, len(part)) for part in parts]),
        )
        return KernelPartials(made, tuple(codings))


def _joined_flags(parts: Sequence[tuple[Bools | None, int]]) -> Bools | None:
    if all(flags is None for flags, _ in parts):
        return None
    return np.concatenate([np.ones(n, np.bool_) if f is None else f for f, n in parts])


@dataclass(frozen=True, slots=True, eq=False)
class LimbSums:
    """Exact sums of integers and decimals, in limbs of 32 bits that add up without a carry.

    One limb is a plain int64, as long as nothing can overflow; two hold any sum of int64, four of
    decimal128, eight of decimal256. All but the highest are not negative before they are added.
    """

    limbs: tuple[Int64s, ...]  # lowest first
    scale: int | None = None  # of decimals; None for integers

    def __len__(self) -> int:
        return len(self.limbs[0])

    @property
    def nbytes(self) -> int:
        """The memory of the limbs."""
        return sum(limb.nbytes for limb in self.limbs)

    def take(self, rows: Rows) -> LimbSums:
        """Select rows."""
        return LimbSums(tuple(limb[rows] for limb in self.limbs), self.scale)

    def over_ranges(self, starts: Int64s, ends: Int64s, technique: str | None = None) -> LimbSums:
        """Add up; a plain int64 is split first where the sums could leave it."""
        sums = self
        if len(self.limbs) == 1 and largest_magnitude(self.limbs[0]) * len(self) >= 2**63:
            sums = self.split()
        added = tuple(aggregate_ranges(limb, starts, ends, COUNT, technique) for limb in sums.limbs)
        return LimbSums(added, self.scale)

    def settled(self) -> LimbSums:
        """Nothing is put off here."""
        return self

    def joined(self, others: Sequence[LimbSums]) -> LimbSums:
        """Use as many limbs as the widest part."""
        parts = [self, *others]
        if len({len(part.limbs) for part in parts}) > 1:
            parts = [part.split() for part in parts]
        limbs = zip(*(part.limbs for part in parts), strict=True)
        return LimbSums(tuple(np.concatenate(limb) for limb in limbs), self.scale)

    def split(self) -> LimbSums:
        """Return the same sums in at least two limbs."""
        if len(self.limbs) > 1:
            return self
        return LimbSums((self.limbs[0] & 0xFFFFFFFF, self.limbs[0] >> 32), self.scale)


class InTimeOrder(Monoid):
    """A user's aggregate that does not commute: events are kept, and folded when it is read.

    Batches may bring the events of one slice in any order, and only their times tell it.
    """

    laws = Laws()
    identity: tuple[Any, ...] = ()

    def __init__(self, inner: Monoid) -> None:
        self.inner = inner

    def lift(self, args: tuple[Any, ...], time_us: int) -> Any:
        """Remember the time."""
        return ((time_us, self.inner.lift(args, time_us)),)

    def combine(self, a: Any, b: Any) -> Any:
        """Keep both, in the order of arrival."""
        return a + b

    def finish(self, partial: Any) -> Any:
        """Fold in the order of time."""
        total = self.inner.identity
        for _, lifted in sorted(partial, key=lambda timed: timed[0]):
            total = self.inner.combine(total, lifted)
        return total


class ObjectAlgebra(NamedTuple):
    """A user's own functions, as the kernels call them that run as Python."""

    identity: Any
    monoid: Monoid

    def combine(self, a: Any, b: Any) -> Any:
        """Join two partials."""
        return self.monoid.combine(a, b)


def shelf_of(monoid: Monoid) -> Shelf:
    """Return an empty shelf for the partials of a custom aggregate."""
    return Shelf(monoid.combine, monoid.invert, monoid.identity, monoid.laws)


@dataclass(frozen=True, slots=True, eq=False)
class ObjectPartials:
    """Partials of a user's own aggregate: Python objects, combined by the user's functions.

    The one place where Python runs once a row; a custom aggregate has no other form.
    """

    monoid: Monoid
    objects: npt.NDArray[np.object_]

    def __len__(self) -> int:
        return self.objects.size

    @property
    def nbytes(self) -> int:
        """The memory of the references; that of the objects is not known."""
        return self.objects.nbytes

    def finished(self) -> list[Any]:
        """Return the partials as the user's own `lower` takes them."""
        if isinstance(self.monoid, InTimeOrder):
            return [self.monoid.finish(partial) for partial in self.objects]
        return list(self.objects)

    def take(self, rows: Rows) -> ObjectPartials:
        """Select rows."""
        return ObjectPartials(self.monoid, self.objects[rows])

    def over_ranges(
        self, starts: Int64s, ends: Int64s, technique: str | None = None
    ) -> ObjectPartials:
        """Fold each range, oldest first."""
        if technique in INCREMENTAL:
            shelf = shelf_of(self.monoid)
            places = shelf.places(self.objects)
            found, _ = ranges_by(technique, places, starts, ends, shelf.operation, shelf)
            return ObjectPartials(self.monoid, shelf.at(found))
        algebra = ObjectAlgebra(self.monoid.identity, self.monoid)
        operation = Operation("custom", ("object",), algebra, self.monoid.laws)
        if technique == "van_herk":
            answers = blocks_within(self.objects, starts, ends, operation)
            return ObjectPartials(self.monoid, answers)
        if technique == "sliding_ranges":
            scratch = operation.columns(int(np.max(ends - starts, initial=0)))
            answers = slide_within(self.objects, starts, ends, scratch, operation)
            return ObjectPartials(self.monoid, answers)
        if technique not in (None, "one_by_one", FAN_OUT):
            raise UnsupportedError(
                f"technique {technique} cannot run a custom aggregate: it has compiled code alone",
                hint="use one_by_one, sliding_ranges, van_herk, or one that keeps windows as "
                "events come",
            )
        counts = ends - starts
        out = operation.columns(starts.size)
        out[counts > 0] = self.objects[starts[counts > 0]]
        combine = self.monoid.combine
        for i in np.flatnonzero(counts > 1).tolist():
            total = out[i]
            for partial in self.objects[starts[i] + 1 : ends[i]]:
                total = combine(total, partial)
            out[i] = total
        return ObjectPartials(self.monoid, out)

    def settled(self) -> ObjectPartials:
        """Nothing is put off here."""
        return self

    def joined(self, others: Sequence[ObjectPartials]) -> ObjectPartials:
        """Put the objects one after the other."""
        parts = [self.objects, *(other.objects for other in others)]
        return ObjectPartials(self.monoid, np.concatenate(parts))
