"""Results of several queries that share rows: computed once, kept while they are needed."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType


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
        self._release = weakref.finalize(self, _unpersist, tuple(kept))
        self._release.atexit = False  # the session goes first, and takes its rows along

    def unpersist(self) -> None:
        """Give back the memory of the shared rows now."""
        self._release()

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
