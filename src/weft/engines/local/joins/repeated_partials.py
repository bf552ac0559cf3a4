"""Partials that count several times: what one input contributes, once for each match elsewhere.

Coalescing of Tran & Lee: a tuple that meets a row of count c adds c times to sums and counts, and
once to minima and maxima.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft.aggregates.base import repeated as repeated_object
from weft.engines.local.partials.bags import Bags
from weft.engines.local.partials.columns import Held, KernelPartials, LimbSums, ObjectPartials
from weft.engines.local.partials.decimals import carried_limbs
from weft.engines.local.partials.kinds import LOCAL_KINDS
from weft.errors import DataError, InternalError
from weft.kernels.partials import Partials
from weft.kernels.ranges.prefix_sums import largest_magnitude

if TYPE_CHECKING:
    from weft.kernels.partials import Int64s

_MOST_TIMES = 2**31  # what a limb of 32 bits can be multiplied by


def repeated(held: Held, times: Int64s) -> Held:
    """Combine each row with itself until it is there so many times, all rows at once.

    >>> from weft.kernels.partials import operation_of
    >>> counts = Partials("count", operation_of("count", "int64"), np.array([2, 3]))
    >>> repeated(KernelPartials(counts, (None,)), np.array([10, 1])).fields[0].tolist()
    [20, 3]
    """
    if not times.size or bool((times == 1).all()):
        return held
    match held:
        case LimbSums():
            return _repeated_limbs(held, times)
        case KernelPartials():
            return KernelPartials(_repeated_numbers(held.partials, times), held.codings)
        case Bags():
            rows = held.settled()
            often = np.repeat(times, np.diff(rows.offsets))
            return Bags(rows.offsets, rows.items, rows.counts * often, rows.size, rows.coding)
        case ObjectPartials():
            pairs = zip(held.objects, times.tolist(), strict=True)
            objects = np.empty(len(held), object)
            for at, (partial, count) in enumerate(pairs):
                objects[at] = repeated_object(held.monoid, partial, count)
            return ObjectPartials(held.monoid, objects)
        case _:
            raise InternalError(f"partials of {type(held).__name__} cannot be repeated")


def _repeated_limbs(held: LimbSums, times: Int64s) -> LimbSums:
    most = largest_magnitude(times)
    if len(held.limbs) == 1 and largest_magnitude(held.limbs[0]) * most < 2**63:
        return LimbSums((held.limbs[0] * times,), held.scale)
    if most >= _MOST_TIMES:
        raise DataError(
            f"a tuple of this join has {most} partners in one window, too many to sum exactly",
            hint="sum a cast to double, or use shorter windows",
        )
    products = LimbSums(tuple(limb * times for limb in carried_limbs(held.split())))
    return LimbSums(tuple(carried_limbs(products)), held.scale)


def _repeated_numbers(partials: Partials, times: Int64s) -> Partials:
    if partials.operation.laws.idempotent:
        return partials
    repeat = LOCAL_KINDS[partials.kind].repeated
    if repeat is None:
        raise InternalError(f"partials of kind {partials.kind} cannot be repeated")
    made = repeat(partials.columns, times)
    return Partials(partials.kind, partials.operation, made, partials.present)
