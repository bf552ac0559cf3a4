"""What a kernel aggregates: a monoid, the types of its partials, and the laws it keeps.

NULL has no partial: lift it to the identity, and carry a `count` beside when an empty result must
be told from a neutral one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from weft.aggregates.laws import Laws
from weft.errors import DataError
from weft.kernels import algebra

if TYPE_CHECKING:
    from weft.kernels.columns import Columns, Partial


@dataclass(frozen=True, slots=True)
class Operation:
    """One associative operation on partials, ready to be compiled into any technique.

    >>> SUM_INT64.algebra.combine(2, 3), SUM_INT64.laws.invertible, SUM_FLOAT64.laws.invertible
    (5, True, False)
    """

    name: str
    dtypes: tuple[str, ...]  # one per field of the partial
    algebra: Any  # the named tuple that kernels take; its type selects the compiled code
    laws: Laws
    prefix_algebra: Any = None  # for prefixes of the whole stream; invertible operations only
    prefix_dtypes: tuple[str, ...] = ()

    @property
    def identity(self) -> Partial:
        """The partial of no events."""
        return self.algebra.identity

    def columns(self, *shape: int) -> Columns:
        """Allocate partials that are all the identity; the first axis may be keys.

        >>> AFFINE_MODULO.columns(3)
        (array([1, 1, 1]), array([0, 0, 0]))
        """
        return _filled(self.dtypes, self.identity, shape)

    def prefix_columns(self, *shape: int) -> Columns:
        """Allocate empty prefixes, for techniques that never let go of the past."""
        return _filled(self.prefix_dtypes, self.prefix_algebra.identity, shape)

    def as_columns(self, values: Any) -> Columns:
        """Take values as contiguous columns of this operation's types; refuse a lossy cast.

        >>> SUM_INT64.as_columns([0.5])
        Traceback (most recent call last):
        weft.errors.DataError: sum_int64 cannot take float64 values: they do not fit int64
        hint: cast the column, or use an operation on float64
        """
        if len(self.dtypes) == 1:
            return self._column(values, self.dtypes[0])
        if not isinstance(values, tuple) or len(values) != len(self.dtypes):
            raise DataError(
                f"{self.name} takes {len(self.dtypes)} columns of values",
                hint=f"pass a tuple of arrays, {', '.join(self.dtypes)}",
            )
        return tuple(map(self._column, values, self.dtypes))

    def _column(self, values: Any, dtype: str) -> npt.NDArray[Any]:
        given = np.asarray(values)
        if given.dtype == dtype and given.flags.c_contiguous:
            return given
        if given.size and not np.can_cast(given.dtype, dtype, "same_kind"):
            raise DataError(
                f"{self.name} cannot take {given.dtype} values: they do not fit {dtype}",
                hint=f"cast the column, or use an operation on {given.dtype}",
            )
        return np.ascontiguousarray(given, dtype)


def _filled(dtypes: tuple[str, ...], identity: Partial, shape: tuple[int, ...]) -> Columns:
    if dtypes == ("object",):
        objects = np.empty(shape, object)
        objects.fill(identity)
        return objects
    if len(dtypes) == 1:
        return np.full(shape, identity, dtypes[0])
    return tuple(
        np.full(shape, field, dtype) for field, dtype in zip(identity, dtypes, strict=True)
    )


def counting(operation: Operation) -> tuple[Operation, npt.NDArray[np.int64]]:
    """Build an operation that counts its combines, and the array whose first element is the count.

    >>> counted, calls = counting(COUNT)
    >>> counted.algebra.combine(0, 7), counted.algebra.combine(7, 7), int(calls[0])
    (7, 14, 1)
    """
    calls = np.zeros(1, np.int64)

    def counted(monoid: Any) -> Any:
        return monoid and algebra.Counting(monoid.identity, monoid, calls)

    return replace(
        operation,
        name=f"counting_{operation.name}",
        algebra=counted(operation.algebra),
        prefix_algebra=counted(operation.prefix_algebra),
    ), calls


_INT64, _FLOAT64 = ("int64",), ("float64",)
_EXTREME = Laws(commutative=True, idempotent=True, selective=True)
_GROUP = Laws(commutative=True, invertible=True)
_BITS = Laws(commutative=True, idempotent=True)

SUM_INT64 = Operation(
    "sum_int64",
    _INT64,
    algebra.SumInt64(),
    _GROUP,
    algebra.PrefixSumInt64(),
    ("int64", "int64"),
)
SUM_FLOAT64 = Operation("sum_float64", _FLOAT64, algebra.SumFloat64(), Laws(commutative=True))
PRODUCT_FLOAT64 = Operation(
    "product_float64", _FLOAT64, algebra.ProductFloat64(), Laws(commutative=True)
)
COUNT = Operation("count", _INT64, algebra.Count(), _GROUP, algebra.Count(), _INT64)
MAX_FLOAT64 = Operation("max_float64", _FLOAT64, algebra.MaxFloat64(), _EXTREME)
MIN_FLOAT64 = Operation("min_float64", _FLOAT64, algebra.MinFloat64(), _EXTREME)
MAX_INT64 = Operation("max_int64", _INT64, algebra.MaxInt64(), _EXTREME)
MIN_INT64 = Operation("min_int64", _INT64, algebra.MinInt64(), _EXTREME)
BIT_AND = Operation("bit_and", _INT64, algebra.BitAnd(), _BITS)
BIT_OR = Operation("bit_or", _INT64, algebra.BitOr(), _BITS)
BIT_XOR = Operation("bit_xor", _INT64, algebra.BitXor(), _GROUP, algebra.BitXor(), _INT64)
MOMENTS = Operation(
    "moments", ("int64", "float64", "float64"), algebra.Moments(), Laws(commutative=True)
)
COMOMENTS = Operation(
    "comoments", ("int64", *_FLOAT64 * 5), algebra.Comoments(), Laws(commutative=True)
)
SHAPE_MOMENTS = Operation(
    "shape_moments", ("int64", *_FLOAT64 * 4), algebra.ShapeMoments(), Laws(commutative=True)
)
AFFINE_MODULO = Operation(
    "affine_modulo",
    ("int64", "int64"),
    algebra.AffineModulo(),
    Laws(invertible=True),
    algebra.AffineModulo(),
    ("int64", "int64"),
)

OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        SUM_INT64,
        SUM_FLOAT64,
        PRODUCT_FLOAT64,
        COUNT,
        MAX_FLOAT64,
        MIN_FLOAT64,
        MAX_INT64,
        MIN_INT64,
        BIT_AND,
        BIT_OR,
        BIT_XOR,
        MOMENTS,
        COMOMENTS,
        SHAPE_MOMENTS,
        AFFINE_MODULO,
    )
}
