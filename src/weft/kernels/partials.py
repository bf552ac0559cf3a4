"""The kinds of partials that slices hold: their columns, their identity, the way they combine.

A kind and the type of its input name an `Operation`. Where a slice may have no value, because all
of them were NULL, the partial is the identity and `present` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from weft.aggregates.laws import Laws
from weft.errors import DataError
from weft.kernels import operations
from weft.kernels.compensated import COMPENSATED_SUM
from weft.kernels.compiled import unlocked
from weft.kernels.operations import Operation
from weft.kernels.ranges.choice import aggregate_ranges

if TYPE_CHECKING:
    from weft.kernels.columns import Columns

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
KernelKind = Literal[
    "count_rows", "count", "sum", "moments", "comoments", "shape_moments", "product", "min", "max",
    "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "first", "last", "min_by", "max_by",
]  # fmt: skip
KERNEL_KINDS: tuple[KernelKind, ...] = get_args(KernelKind)
# Kinds that take any number as a double, and those that tell by a count whether there is a value.
OF_DOUBLES = frozenset({"moments", "comoments", "shape_moments", "product"})
COUNTED = frozenset({"count_rows", "count", "moments", "comoments", "shape_moments"})

_LEAST, _GREATEST = -(2**63), 2**63 - 1


@unlocked
def precedes(a: Any, b: Any) -> bool:
    """Tell whether a < b in the order of Spark: NaN equals itself and follows every number.

    >>> precedes(1.0, np.nan), precedes(np.nan, 1.0), precedes(np.nan, np.nan), precedes(1, 2)
    (True, False, False, True)
    """
    return bool(a < b or (b != b and a == a))


@unlocked
def follows(a: Any, b: Any) -> bool:
    """Tell whether a > b in the order of Spark."""
    return bool(a > b or (a != a and b == b))


class Earliest(NamedTuple):
    """Keep the least (time, value)."""

    identity: Any

    def combine(op, a: Any, b: Any) -> Any:
        """Keep the earlier; of the same instant, the smaller value."""
        return b if b[0] < a[0] or (b[0] == a[0] and precedes(b[1], a[1])) else a

    def same(op, a: Any, b: Any) -> bool:
        """Tell whether two partials are the same event's."""
        return bool(a[0] == b[0] and not precedes(a[1], b[1]) and not precedes(b[1], a[1]))


class Latest(NamedTuple):
    """Keep the greatest (time, value)."""

    identity: Any

    def combine(op, a: Any, b: Any) -> Any:
        """Keep the later; of the same instant, the larger value."""
        return b if b[0] > a[0] or (b[0] == a[0] and follows(b[1], a[1])) else a

    def same(op, a: Any, b: Any) -> bool:
        """Tell whether two partials are the same event's."""
        return bool(a[0] == b[0] and not precedes(a[1], b[1]) and not precedes(b[1], a[1]))


class Least(NamedTuple):
    """Keep the least (by, time, carried)."""

    identity: Any

    def combine(op, a: Any, b: Any) -> Any:
        """Keep the smaller `by`; then the earlier; then the smaller carried integer."""
        if precedes(b[0], a[0]):
            return b
        if precedes(a[0], b[0]) or a[1] < b[1]:
            return a
        return b if b[1] < a[1] or b[2] < a[2] else a

    def same(op, a: Any, b: Any) -> bool:
        """Tell whether two partials are the same event's."""
        return bool(not precedes(a[0], b[0]) and not precedes(b[0], a[0]) and a[1:] == b[1:])


class Greatest(NamedTuple):
    """Keep the greatest (by, time, carried)."""

    identity: Any

    def combine(op, a: Any, b: Any) -> Any:
        """Keep the larger `by`; then the later; then the larger carried integer."""
        if follows(b[0], a[0]):
            return b
        if follows(a[0], b[0]) or a[1] > b[1]:
            return a
        return b if b[1] > a[1] or b[2] > a[2] else a

    def same(op, a: Any, b: Any) -> bool:
        """Tell whether two partials are the same event's."""
        return bool(not precedes(a[0], b[0]) and not precedes(b[0], a[0]) and a[1:] == b[1:])


def _picking(name: str, dtypes: tuple[str, ...], algebra: Any) -> Operation:
    return Operation(name, dtypes, algebra, Laws(commutative=True, idempotent=True, selective=True))


_OPERATIONS: dict[tuple[str, str], Operation] = {
    ("count_rows", "int64"): operations.COUNT,
    ("count", "int64"): operations.COUNT,
    ("sum", "int64"): operations.SUM_INT64,
    ("sum", "float64"): COMPENSATED_SUM,
    ("moments", "float64"): operations.MOMENTS,
    ("comoments", "float64"): operations.COMOMENTS,
    ("shape_moments", "float64"): operations.SHAPE_MOMENTS,
    ("product", "float64"): operations.PRODUCT_FLOAT64,
    ("min", "int64"): operations.MIN_INT64,
    ("min", "float64"): operations.MIN_FLOAT64,
    ("max", "int64"): operations.MAX_INT64,
    ("max", "float64"): operations.MAX_FLOAT64,
    ("bit_and", "int64"): operations.BIT_AND,
    ("bit_or", "int64"): operations.BIT_OR,
    ("bit_xor", "int64"): operations.BIT_XOR,
    ("bool_and", "int64"): operations.MIN_INT64,  # of 0 and 1
    ("bool_or", "int64"): operations.MAX_INT64,
}
for _dtype, _low, _high in (("int64", _LEAST, _GREATEST), ("float64", -np.inf, np.nan)):
    _two, _three = ("int64", _dtype), (_dtype, "int64", "int64")
    _OPERATIONS |= {
        ("first", _dtype): _picking(f"first_{_dtype}", _two, Earliest((_GREATEST, _high))),
        ("last", _dtype): _picking(f"last_{_dtype}", _two, Latest((_LEAST, _low))),
        ("min_by", _dtype): _picking(
            f"min_by_{_dtype}", _three, Least((_high, _GREATEST, _GREATEST))
        ),
        ("max_by", _dtype): _picking(f"max_by_{_dtype}", _three, Greatest((_low, _LEAST, _LEAST))),
    }


def operation_of(kind: KernelKind, dtype: str) -> Operation:
    """Return the operation of a kind over int64 or float64 input; of `by` for min_by and max_by.

    >>> operation_of("sum", "float64").name, operation_of("first", "int64").dtypes
    ('compensated_sum', ('int64', 'int64'))
    >>> operation_of("bit_and", "float64")
    Traceback (most recent call last):
    weft.errors.DataError: bit_and cannot take float64 values
    hint: it takes int64; cast the column
    """
    found = _OPERATIONS.get((kind, dtype))
    if found is None:
        legal = " or ".join(d for k, d in _OPERATIONS if k == kind)
        raise DataError(
            f"{kind} cannot take {dtype} values", hint=f"it takes {legal}; cast the column"
        )
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Partials:
    """Partials of one kind, a row each; `present` is None where every row has a value.

    >>> present = np.array([True, True, False])
    >>> low = Partials("min", operations.MIN_INT64, np.array([4, 2, 7]), present)
    >>> rolled = low.over_ranges(np.array([0, 2]), np.array([2, 3]))
    >>> rolled.columns.tolist()[0], rolled.present.tolist()
    (2, [True, False])
    """

    kind: KernelKind
    operation: Operation
    columns: Columns
    present: Bools | None = None

    def take(self, rows: npt.NDArray[Any]) -> Partials:
        """Select rows, by positions or by a mask."""
        columns = (
            tuple(column[rows] for column in self.columns)
            if isinstance(self.columns, tuple)
            else self.columns[rows]
        )
        present = None if self.present is None else self.present[rows]
        return Partials(self.kind, self.operation, columns, present)

    def over_ranges(self, starts: Int64s, ends: Int64s, technique: str | None = None) -> Partials:
        """Aggregate rows `[start, end)` for each pair of bounds, by a technique if one is named.

        Absent rows hold the identity, so only the flags need to know about them.
        """
        columns = aggregate_ranges(self.columns, starts, ends, self.operation, technique)
        if self.present is None:
            some = ends > starts
        else:
            present = self.present.astype(np.int64)
            some = aggregate_ranges(present, starts, ends, operations.COUNT) > 0
        return Partials(self.kind, self.operation, columns, None if some.all() else some)


def from_itself(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the distance of each value from its own mean: 0, and none of what is infinite.

    >>> from_itself(np.array([2.5, np.inf])).tolist()
    [0.0, nan]
    """
    with np.errstate(invalid="ignore"):
        return values - values


def pairs_alone(y: npt.NDArray[np.float64], x: npt.NDArray[np.float64]) -> Columns:
    """Return the moments of each pair (y, x) by itself."""
    off_y, off_x = from_itself(y), from_itself(x)
    return np.ones(y.size, np.int64), y, x, off_y + off_x, off_y, off_x
