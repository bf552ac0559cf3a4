"""Rows of one input of a join: filtered, timed, and known by codes that all inputs share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weft.engines.local.values.arrow import Array, pc
from weft.engines.local.values.keys import KeyCodes
from weft.engines.local.windows.events import Events, Timed, read_rows, read_scan
from weft.expression import column
from weft.kernels.arrow_columns import column_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.engines.local.values.keys import Codes, ColumnCodes
    from weft.kernels.partials import Int64s
    from weft.plan import JoinSide
    from weft.plan.joins import JoinShape


@dataclass(slots=True)
class InputCodes:
    """The codes of one input: its groups, and the pairs of its variables and groups.

    An aggregation set has a row for each pair. Columns that aggregates over several inputs read
    are a part of pairs too, between the variables and the group.
    """

    variables: tuple[int, ...]  # in which of the join's variables it has columns
    groups: KeyCodes
    pairs: KeyCodes
    carried: KeyCodes
    _split: list[Int64s] = field(default_factory=list)

    @classmethod
    def of(cls, shape: JoinShape, side: int) -> InputCodes:
        """Prepare the codes of an input."""
        variables = shape.variables_of(side)
        own = sum(key.side == side for key in shape.keys)
        carried = len(shape.carried_columns(side))
        width = len(variables) + bool(carried) + 1
        return cls(variables, KeyCodes(own), KeyCodes(width), KeyCodes(carried))

    def split(self) -> list[Int64s]:
        """Return, for every pair, the codes of its variables, and at last of its group.

        The codes of carried columns, where there are any, are the last but one.
        """
        if not self._split or self._split[0].size != len(self.pairs):
            columns = self.pairs.decode(np.arange(len(self.pairs)))
            self._split = [column_of(own).values for own in columns]
        return self._split


def read_input(side: JoinSide, table: pa.Table) -> Timed:
    """Read the rows of an input that pass its filter and, if it is a stream, have a time."""
    if side.window is not None:
        return read_scan(side.scan, table)
    frame = read_rows(side.scan, table)
    return Timed(frame, np.zeros(frame.rows, np.int64), 0)


def encoded(
    timed: Timed,
    shape: JoinShape,
    side: int,
    types: Sequence[pa.DataType],
    codes: InputCodes,
    variables: Sequence[ColumnCodes],
) -> Events:
    """Give every row the code of its pair; rows with a NULL to join on are dropped."""
    timed, values = _joinable(timed, shape, side, types)
    rows = timed.times_us.size
    own = [variables[v].encode(array) for v, array in zip(codes.variables, values, strict=True)]
    texts = [key.text for key in shape.keys if key.side == side]
    groups = codes.groups.encode([timed.argument(text) for text in texts], rows)
    columns: list[Codes] = [*own, groups]
    if codes.carried.width:
        names = map(column, shape.carried_columns(side))
        columns.insert(-1, codes.carried.encode([timed.argument(name) for name in names], rows))
    return Events(timed, codes.pairs.encode([pa.array(own) for own in columns], rows))


def _joinable(
    timed: Timed, shape: JoinShape, side: int, types: Sequence[pa.DataType]
) -> tuple[Timed, list[Array]]:
    """Keep the rows whose join columns are all there, and equal where they must be."""
    found: list[list[Array]] = [
        [timed.argument(name).cast(types[v]) for name in shape.variables[v][side]]
        for v in shape.variables_of(side)
    ]
    keep: Array = None
    for arrays in found:
        for at, array in enumerate(arrays):
            fits = pc.is_valid(array)
            if at:
                fits = pc.and_(fits, pc.fill_null(_equal(arrays[0], array), False))
            keep = fits if keep is None else pc.and_(keep, fits)
    if keep is None or pc.all(keep).as_py():
        return timed, [arrays[0] for arrays in found]
    mask = keep.to_numpy(zero_copy_only=False)
    return timed.filter(mask), [arrays[0].filter(keep) for arrays in found]


def _equal(a: Array, b: Array) -> Array:
    same = pc.equal(a, b)
    if pa.types.is_floating(a.type):
        same = pc.or_(same, pc.and_(pc.is_nan(a), pc.is_nan(b)))
    return same
