"""Results of several queries that share rows: computed once, kept while they are needed."""

from __future__ import annotations

import sys
import weakref
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from weft.engines.spark.sql.fan_out import NODE, START
from weft.expression import column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType


@dataclass(frozen=True, slots=True)
class Keep:
    """How rows that several results read are computed once."""

    hold: Callable[[DataFrame, Sequence[str]], DataFrame]  # given columns that spread the rows
    early: bool = False  # hold what is made of events, and let each result make its own windows


def _persisted(rows: DataFrame, by: Sequence[str]) -> DataFrame:
    """Keep rows in memory; those of a window lie together: Spark then skips those of others."""
    return (rows.sortWithinPartitions(NODE) if NODE in rows.columns else rows).persist()


def _reused(rows: DataFrame, by: Sequence[str]) -> DataFrame:
    """Let Spark compute rows once for all their readers: equal exchanges are run once.

    Its optimizer would make them unequal, by sending each reader's filter and choice of columns
    below the exchange. No filter goes below one that Spark cannot foretell, and no choice among
    columns through a generator, which `inline` is. Columns that spread the rows stay outside of it,
    so that what is grouped by them moves no more.
    """
    spread = [column(name) for name in rows.columns if name in (*by, NODE, START)]
    others = [column(name) for name in rows.columns if name not in (*by, NODE, START)]
    made = rows.repartition(*by).where("spark_partition_id() >= 0")
    return made.selectExpr(*spread, f"inline(array(struct({', '.join(others)})))")


IN_MEMORY = Keep(_persisted)  # for results that are run one after another
IN_ONE_STATEMENT = Keep(_reused, early=True)  # nothing is kept after it


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
        with suppress(PySparkException, OSError, *_errors_of_java()):
            frame.unpersist()


def _errors_of_java() -> tuple[type[Exception], ...]:
    """Return what a session with Java beside it raises; a client of Connect has none."""
    py4j: Any = sys.modules.get("py4j.protocol")
    return () if py4j is None else (py4j.Py4JError,)
