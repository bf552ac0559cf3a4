"""What a join does in another way over tables than over streams: to group, to match, to share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.engines.spark.joins.row_set import INSTANT
from weft.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame

    from weft.engines.spark.joins.row_set import Rows
    from weft.plan import Scan, Slice


class Running:
    """How rows of a join are grouped and matched: of tables, all of whose rows Spark knows."""

    def __init__(self) -> None:
        self.kept: dict[Slice, DataFrame] = {}

    def source(self, frame: DataFrame, scan: Scan) -> DataFrame:
        """Check a source; a stream is refused."""
        if frame.isStreaming:
            raise UnsupportedError(
                f"the table {scan.source!r} is a stream, and this is a batch run",
                hint="start streams with weft.start",
            )
        return frame

    def plain(self, frame: DataFrame, picked: Sequence[str]) -> DataFrame:
        """Pick expressions."""
        return frame.selectExpr(*picked)

    def grouped(
        self, frame: DataFrame, keys: Sequence[str], when: Sequence[str], made: Sequence[Column]
    ) -> DataFrame:
        """Aggregate by keys, and by when rows count: the first of `when` says when they close."""
        return frame.groupBy(*keys, *when).agg(*made)

    def sliced(
        self,
        frame: DataFrame,
        keys: Sequence[str],
        start: str,
        made: Sequence[Column],
        classes: Sequence[tuple[int, int]],
    ) -> DataFrame:
        """Aggregate by keys and the start of a slice, which ends at the next edge."""
        return frame.groupBy(*keys, start).agg(*made)

    def shared(self, node: Slice, make: Callable[[], DataFrame]) -> DataFrame:
        """Compute slices once for all joins; they are kept until their results are released."""
        if node not in self.kept:
            self.kept[node] = make().persist()
        return self.kept[node]

    def at_instants(self, left: DataFrame, right: DataFrame, on: Sequence[str]) -> DataFrame:
        """Match rows that count at the same instant."""
        return left.join(right, [*on, INSTANT])

    def since(self, left: Rows, right: Rows, on: Sequence[str]) -> DataFrame:
        """Match rows with those that count for ever, since an instant."""
        joined = left.frame.join(right.frame, list(on))
        return joined.where(f"{right.when[0]} <= {INSTANT}") if left.at_instants else joined
