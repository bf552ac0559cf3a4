"""A plan, cut into streams: all scopes that read one source by one time column, read together."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from weft.plan.planned_scope import PlannedScope, planned_scopes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from weft.engines.base import Unsupported
    from weft.plan import Emit, Node, Plan, Scan

    Picked = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Stream:
    """The scopes of one source and one time column: their events are read once."""

    source: str
    scopes: tuple[PlannedScope, ...]

    @property
    def name(self) -> str:
        """What tells the stream from others, also after a restart."""
        return f"{self.source} by {self.scan.time}"

    @property
    def scan(self) -> Scan:
        """A scan of the stream; others may filter differently."""
        return self.scopes[0].scan

    @cached_property
    def watermark_us(self) -> int | None:
        """The longest lateness that a query of the stream asks for."""
        asked = [scope.scan.watermark_us for scope in self.scopes]
        return max((delay for delay in asked if delay is not None), default=None)

    @cached_property
    def emits(self) -> tuple[Emit, ...]:
        """The results of all scopes."""
        return tuple(emit for scope in self.scopes for emit in scope.emits)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of all scopes, each once, inputs first."""
        return tuple(dict.fromkeys(node for scope in self.scopes for node in scope.nodes))

    @cached_property
    def queries(self) -> tuple[str, ...]:
        """The queries answered, each once."""
        return tuple(dict.fromkeys(emit.query for emit in self.emits))


@dataclass(frozen=True, slots=True)
class CompiledStream:
    """Rows of closed windows of all queries, and how each query's result is read off them.

    `results` take the streaming rows themselves, or one micro-batch of them: so many sinks are
    served from rows that were computed once.
    """

    rows: DataFrame
    results: Mapping[str, Picked] = field(default_factory=dict)


class StreamStrategy(Protocol):
    """A way to compile a stream to one streaming DataFrame."""

    @property
    def name(self) -> str:
        """The strategy's name, as users force it."""
        ...

    def unsupported(self, stream: Stream) -> tuple[Unsupported, ...]:
        """Name every node of the stream that this strategy cannot compile, and why."""
        ...

    def compile(self, stream: Stream, source: DataFrame) -> CompiledStream:
        """Return the rows of all queries as one streaming DataFrame."""
        ...


def streams_of(plan: Plan) -> tuple[Stream, ...]:
    """Cut a plan without joins into its streams, in the order of first results."""
    found: dict[tuple[str, str | None], list[PlannedScope]] = {}
    for scope in planned_scopes(plan):
        found.setdefault((scope.scan.source, scope.scan.time), []).append(scope)
    return tuple(Stream(source, tuple(scopes)) for (source, _), scopes in found.items())
