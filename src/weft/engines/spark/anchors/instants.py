"""What runs on executors after windows that several rows of an instant share: one row is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weft.engines.local.anchors.order import order_of
from weft.engines.local.values.frame import plain
from weft.engines.local.values.keys import KeyCodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from weft.kernels.partials import Int64s


@dataclass(frozen=True, slots=True)
class OneOfInstant:
    """Keeps one row of each key and instant, which the `time` column counts in microseconds.

    Rows of a partition come in the order of (key, time), unless `ordered` says that they do not:
    then they are taken together first, as a micro-batch is small enough for.

    >>> rows = pa.record_batch({"k": ["a", "a", "b", "a"], "at": [1, 1, 1, 1]})
    >>> kept = OneOfInstant(("k",), "at", ordered=False)([rows])
    >>> [batch.column("k").to_pylist() for batch in kept]
    [['a', 'b']]
    """

    keys: tuple[str, ...]
    time: str
    ordered: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are the first of their key and instant."""
        if not self.ordered:
            came = list(batches)
            batches = pa.Table.from_batches(came).combine_chunks().to_batches() if came else ()
        last: list[pa.RecordBatch] = []
        for batch in batches:
            if not batch.num_rows:
                continue
            rows = pa.Table.from_batches([*last, batch])
            kept = self._firsts(rows)
            yield from rows.take(kept[kept >= len(last)]).combine_chunks().to_batches()
            last = [batch.slice(batch.num_rows - 1)] if self.ordered else []

    def _firsts(self, rows: pa.Table) -> Int64s:
        keys = [plain(rows.column(name)) for name in self.keys]
        codes = KeyCodes(len(keys)).encode(keys, rows.num_rows)
        times = rows.column(self.time).to_numpy()
        order = None if self.ordered else order_of(codes, times)
        if order is None:
            order = np.arange(rows.num_rows)
        codes, times = codes[order], times[order]
        first = np.ones(rows.num_rows, np.bool_)
        first[1:] = (codes[1:] != codes[:-1]) | (times[1:] != times[:-1])
        found: Int64s = order[first]
        return found
