"""What tuples carry for a join that is kept tuple by tuple: whole sums, real sums, and extremes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.engines.local.joins.continuous.state import ERROR, LOST, NOT_A_VALUE, TOTAL
from weft.engines.local.partials.columns import Held, KernelPartials, LimbSums
from weft.engines.local.values.coding import carried, is_direct
from weft.engines.schema import expression_type
from weft.errors import DataError, UnsupportedError
from weft.kernels.arrow_columns import column_of, validity
from weft.kernels.partials import Partials, operation_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.aggregates import Partial
    from weft.engines.local.joins.continuous.state import Doubles, Int64s
    from weft.engines.local.values.coding import Coding
    from weft.engines.local.windows.events import Timed

_ROUNDING = 2.0**-51  # of a compensated sum, relative to the magnitudes that were added
_TOLERATED = 1e-10  # relative error of a real sum, an order below what is promised
Owner = tuple[int, "Partial"]  # the input, and the partial as it spells it


@dataclass(slots=True)
class JoinColumns:
    """Which partial is which column; minima and maxima are kept as numbers that order alike."""

    whole: list[Owner] = field(default_factory=list)
    real: list[Owner] = field(default_factory=list)
    order: list[Owner] = field(default_factory=list)
    codings: dict[Owner, Coding] = field(default_factory=dict)

    @classmethod
    def of(cls, partials: Sequence[Owner], schemas: Sequence[pa.Schema]) -> JoinColumns:
        """Find a column for every partial, or say which aggregate has none."""
        columns = cls()
        for side, partial in partials:
            type = expression_type(partial.args[0], schemas[side])
            columns._home(partial, type).append((side, partial))
            if partial.kind in ("min", "max"):
                columns.codings[side, partial] = carried(pa.array([], type))[1]
        return columns

    def _home(self, partial: Partial, type: pa.DataType) -> list[Owner]:
        narrow = pa.types.is_integer(type) and not pa.types.is_uint64(type)
        if partial.kind == "count" or (partial.kind == "sum" and narrow):
            return self.whole
        if partial.kind == "sum" and pa.types.is_floating(type):
            return self.real
        if partial.kind in ("min", "max") and is_direct(type):
            return self.order
        raise UnsupportedError(
            f"{partial} of {type} cannot be kept up to date tuple by tuple",
            hint="take the results at each slide, or cast the column to a number",
        )

    def sides(self, owners: Sequence[Owner]) -> Int64s:
        """Return the input that owns each column."""
        return np.array([side for side, _ in owners], np.int64)

    def read(self, side: int, timed: Timed) -> tuple[Int64s, Doubles, Int64s]:
        """Read the columns of some rows of an input; those of other inputs are left at zero."""
        rows = timed.times_us.size
        whole = np.zeros((rows, len(self.whole)), np.int64)
        real = np.zeros((rows, len(self.real)), np.float64)
        order = np.full((rows, len(self.order)), NOT_A_VALUE)
        for at, (owner, partial) in enumerate(self.whole):
            if owner == side:
                whole[:, at] = _whole(partial, timed.argument(partial.args[0]))
        for at, (owner, partial) in enumerate(self.real):
            if owner == side:
                column = column_of(timed.argument(partial.args[0]))
                valid = True if column.valid is None else column.valid
                real[:, at] = np.where(valid, column.values, 0.0)
        for at, (owner, partial) in enumerate(self.order):
            if owner == side:
                argument = timed.argument(partial.args[0])
                order[:, at], _ = carried(argument)
                if np.count_nonzero(order[:, at] == NOT_A_VALUE) != argument.null_count:
                    raise DataError(
                        f"{partial} met {NOT_A_VALUE}, which stands for NULL where results are "
                        "kept up to date tuple by tuple",
                        hint="take the results at each slide, or filter it out",
                    )
        return whole, real, order

    def held(self, whole: Int64s, real: Doubles, lost: Doubles, order: Int64s) -> dict[Owner, Held]:
        """Show the columns of some groups as partials, to be lowered."""
        found: dict[Owner, Held] = {}
        for at, (side, partial) in enumerate(self.whole):
            numbers = np.ascontiguousarray(whole[:, at])
            found[side, partial] = (
                LimbSums((numbers,)) if partial.kind == "sum" else _kernel("count", numbers, None)
            )
        for at, (side, partial) in enumerate(self.real):
            pair = (np.ascontiguousarray(real[:, at]), np.ascontiguousarray(lost[:, at]))
            sums = Partials("sum", operation_of("sum", "float64"), pair)
            found[side, partial] = KernelPartials(sums, (None, None))
        for at, owner in enumerate(self.order):
            numbers = np.ascontiguousarray(order[:, at])
            found[owner] = _kernel(owner[1].kind, numbers, self.codings[owner])
        return found


def _whole(partial: Partial, argument: Any) -> Int64s:
    if partial.kind == "count":
        valid = validity(argument)
        return np.ones(len(argument), np.int64) if valid is None else valid.astype(np.int64)
    column = column_of(argument.cast(pa.int64()))
    found: Int64s = np.where(True if column.valid is None else column.valid, column.values, 0)
    return found


def _kernel(kind: Any, numbers: Int64s, coding: Coding | None) -> KernelPartials:
    present = None if coding is None else numbers != NOT_A_VALUE
    made = Partials(kind, operation_of(kind, "int64"), numbers, present)
    return KernelPartials(made, (coding,))


def drifted(sums: Doubles) -> bool:
    """Tell whether a real sum may be off by more than is promised, or is not a number."""
    if not sums.size:
        return False
    totals, errors = np.abs(sums[:, :, TOTAL] + sums[:, :, LOST]), sums[:, :, ERROR]
    with np.errstate(invalid="ignore"):
        # Where every addend has the sign of the sum, nothing has cancelled out.
        off = (errors * _ROUNDING > _TOLERATED * totals) & (totals != errors)
    return bool(off.any() or not np.isfinite(errors).all())
