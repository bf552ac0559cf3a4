"""Results of several queries that share rows: computed once, kept while they are needed."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from weft.engines.spark.sql.fan_out import NODE
from weft.expression import column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    # Makes rows, given columns that spread them, such that several readers compute them once.
    Keep = Callable[[DataFrame, Sequence[str]], DataFrame]


def in_memory(rows: DataFrame, by: Sequence[str]) -> DataFrame:
    """Keep rows for results that are run one after another.

    Those of a window lie together: Spark then skips what it kept of other windows.
    """
    return rows.sortWithinPartitions(NODE).persist()


def in_one_statement(rows: DataFrame, by: Sequence[str]) -> DataFrame:
    """Let Spark compute rows once for all their readers inside one statement; nothing is kept.

    Spark runs equal exchanges of a statement once. Its optimizer would make them unequal, by
    sending each reader's filter and choice of columns below the exchange; neither goes through
    a generator, which `inline` is.
    """
    columns = ", ".join(map(column, rows.columns))
    return rows.repartition(*by).selectExpr(f"inline(array(struct({columns})))")


class SharedResults(dict[str, DataFrame]):
    """Results by query; rows they share are kept after first use, as long as this mapping lives.

    Spark forgets what it computed for one DataFrame when the next one runs, so the shared rows are
    persisted. `unpersist` gives their memory back early; results stay valid, and compute anew.

        with weft.run(workload, {"readings": df}) as results:
            for name, result in results.items():
                result.write.parquet(name)
    """

    def __init__(self, results: Mapping[str, DataFrame], kept: Iterable[DataFrame]) -> None:
        super().__init__(results)
        self._kept = tuple(kept)
        self._release = weakref.finalize(self, _unpersist, self._kept)
        self._release.atexit = False  # the session goes first, and takes its rows along

    def unpersist(self) -> None:
        """Give back the memory of the shared rows now."""
        self._release()

    def taken(self) -> tuple[DataFrame, ...]:
        """Hand the shared rows over: whoever takes them gives their memory back."""
        self._release.detach()
        return self._kept

    def __enter__(self) -> SharedResults:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.unpersist()


def _unpersist(frames: tuple[DataFrame, ...]) -> None:
    for frame in frames:
        # A session that was stopped has given everything back already.
        with suppress(PySparkException, Py4JError, OSError):
            frame.unpersist()
