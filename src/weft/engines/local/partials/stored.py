"""Partials as techniques keep them: columns of numbers that one operation combines.

A form says which operations a partial needs, which columns its rows are, and how answers become
rows again. What a form cannot take, such as a text that its list lacks, asks for another form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft.engines.local.partials.bags import Bags
from weft.engines.local.partials.columns import (
    Held,
    InTimeOrder,
    KernelPartials,
    LimbSums,
    ObjectPartials,
    shelf_of,
)
from weft.engines.local.values.coding import Coding, Direct, Listed, united
from weft.errors import InternalError
from weft.kernels.operations import COUNT, MAX_INT64, Operation
from weft.kernels.parallel import read_only
from weft.kernels.partials import Partials
from weft.kernels.ranges.prefix_sums import largest_magnitude
from weft.techniques import TECHNIQUES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.aggregates import Monoid
    from weft.kernels.columns import Columns
    from weft.kernels.incremental.notes import Shelf
    from weft.kernels.partials import KernelKind

# A limb below it cannot overflow in a window of less than 2**22 slices.
_SMALL = 1 << 41


def form_of(rows: Held, technique: str) -> Form:
    """Return the form that takes these rows, for a technique."""
    match rows:
        case KernelPartials():
            made = rows.partials
            flags = None if rows.present is None else _flags(technique)
            return NumberForm(made.kind, made.operation, rows.codings, flags)
        case LimbSums():
            wide = len(rows.limbs) == 1 and largest_magnitude(rows.limbs[0]) >= _SMALL
            return LimbForm(2 if wide else len(rows.limbs), rows.scale)
        case ObjectPartials():
            monoid = rows.monoid.inner if isinstance(rows.monoid, InTimeOrder) else rows.monoid
            return ObjectForm(monoid, shelf_of(monoid))
        case Bags():
            raise InternalError(f"bags of values have no room in the store of {technique}")
        case _:
            raise InternalError(f"unknown partials: {type(rows).__name__}")


def _flags(technique: str) -> Operation:
    """Return how a technique finds out whether any row of a range has a value."""
    return COUNT if "invertible" in TECHNIQUES[technique].needs else MAX_INT64


@dataclass(frozen=True, slots=True)
class NumberForm:
    """Numbers of one kind, and beside them whether there is a value where some rows have none."""

    kind: KernelKind
    operation: Operation
    codings: tuple[Coding | None, ...]
    flags: Operation | None

    @property
    def operations(self) -> tuple[Operation, ...]:
        """How each part combines."""
        return (self.operation,) if self.flags is None else (self.operation, self.flags)

    def columns(self, rows: Held) -> tuple[Columns, ...] | None:
        """Return the parts of rows; None if they have what this form cannot take."""
        assert isinstance(rows, KernelPartials)
        if rows.present is not None and self.flags is None:
            return None
        fields = []
        for numbers, own, known in zip(rows.fields, rows.codings, self.codings, strict=True):
            if own is not None and known is not None and own is not known:
                (_, numbers), both = united([(numbers[:0], known), (numbers, own)])
                if not _alike(both, known):
                    return None
            fields.append(read_only(np.ascontiguousarray(numbers)))
        columns = tuple(fields) if len(fields) > 1 else fields[0]
        if self.flags is None:
            return (columns,)
        present = np.ones(len(rows), np.bool_) if rows.present is None else rows.present
        return columns, read_only(present.astype(np.int64))

    def rows(self, answers: Sequence[Columns]) -> Held:
        """Make rows of answers."""
        present = None
        if self.flags is not None:
            some = answers[1] > 0
            present = None if some.all() else some
        return KernelPartials(
            Partials(self.kind, self.operation, answers[0], present), self.codings
        )


def _alike(a: Coding, b: Coding) -> bool:
    """Tell whether numbers mean the same under two codings."""
    if isinstance(a, Listed) and isinstance(b, Listed):
        return bool(a.values.equals(b.values))
    if isinstance(a, Direct) and isinstance(b, Direct):
        return a.null_number == b.null_number
    return type(a) is type(b)


@dataclass(frozen=True, slots=True)
class LimbForm:
    """Exact sums in limbs, each added up by itself."""

    limbs: int
    scale: int | None

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Limbs add up without a carry."""
        return (COUNT,) * self.limbs

    def columns(self, rows: Held) -> tuple[Columns, ...] | None:
        """Return the limbs; None if one could overflow."""
        assert isinstance(rows, LimbSums)
        if len(rows.limbs) == 1 < self.limbs:
            rows = rows.split()
        if len(rows.limbs) != self.limbs:
            return None
        if self.limbs == 1 and largest_magnitude(rows.limbs[0]) >= _SMALL:
            return None
        return tuple(read_only(np.ascontiguousarray(limb)) for limb in rows.limbs)

    def rows(self, answers: Sequence[Columns]) -> Held:
        """Make rows of answers."""
        return LimbSums(tuple(answers), self.scale)


@dataclass(frozen=True, slots=True)
class ObjectForm:
    """Python objects on a shelf, combined by the functions of a custom aggregate."""

    monoid: Monoid
    shelf: Shelf

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The user's own, noted down."""
        return (self.shelf.operation,)

    def columns(self, rows: Held) -> tuple[Columns, ...] | None:
        """Put the objects on the shelf; events kept for their order are folded: all are in now."""
        assert isinstance(rows, ObjectPartials)
        return (self.shelf.places(rows.finished()),)

    def rows(self, answers: Sequence[Columns]) -> Held:
        """Make rows of answers."""
        return ObjectPartials(self.monoid, answers[0])


Form = NumberForm | LimbForm | ObjectForm
