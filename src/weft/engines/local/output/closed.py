"""Closed instances on their way to a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from weft.engines.local.values.arrow import Array
    from weft.kernels.partials import Int64s


class Closed(NamedTuple):
    """Closed instances of one or several windows of a query, with their lowered aggregates."""

    query: str
    places: Int64s  # of each row's window in its query
    keys: npt.NDArray[np.integer]
    starts_us: Int64s
    ends_us: Int64s
    values: tuple[Array, ...]
    ordered: bool = False  # whether the rows are as `result_order` has them
