"""Rows of one table that another has as well, by some of their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.frames import in_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

_OTHER = pa.scalar(-1, pa.int64())


def matching(rows: pa.Table, others: pa.Table, identity: Sequence[str]) -> pa.Table:
    """Keep the rows that are equal to another table's in the columns of `identity`.

    Not a join, which takes no NULL for equal to another.

    >>> rows = pa.table({"k": ["a", None, "b"], "v": [1, 2, 3]})
    >>> matching(rows, pa.table({"k": pa.array([None, "b"])}), ["k"])["v"].to_pylist()
    [2, 3]
    """
    asked = others.select([*identity]).cast(rows.select([*identity]).schema)
    own, other = in_parts(rows, identity), in_parts(asked, identity)
    places = pa.array(np.arange(own.num_rows))
    nowhere = pa.array(np.full(other.num_rows, -1))
    both = pa.concat_tables([own.append_column("at", places), other.append_column("at", nowhere)])
    found = both.group_by(own.column_names).aggregate([("at", "min"), ("at", "list")])
    listed = pc.list_flatten(found.filter(pc.equal(found["at_min"], _OTHER))["at_list"])
    kept = listed.filter(pc.greater(listed, _OTHER))
    return rows.take(kept.take(pc.sort_indices(kept)))
