"""What a strategy is: it compiles the scopes of a plan, one by one or some together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from weft.engines.base import Unsupported
    from weft.engines.spark.text_rows import TextRows
    from weft.plan.planned_scope import PlannedScope


@dataclass(frozen=True, slots=True)
class Compiled:
    """Lazy results by query, and the frames persisted because several results use them."""

    results: Mapping[str, DataFrame | TextRows]
    kept: tuple[DataFrame, ...] = ()


class Strategy(Protocol):
    """A way to compile a scope to DataFrames."""

    @property
    def name(self) -> str:
        """The strategy's name, as users force it."""
        ...

    def unsupported(self, scope: PlannedScope) -> tuple[Unsupported, ...]:
        """Name every node of the scope that this strategy cannot compile, and why."""
        ...

    def compile(self, scope: PlannedScope, source: DataFrame) -> Compiled:
        """Return a lazy DataFrame for each query of the scope."""
        ...

    def compile_together(self, scopes: Sequence[PlannedScope], source: DataFrame) -> Compiled:
        """Return a lazy DataFrame for each query of scopes that share more than the source."""
        ...
