"""How long each node of a plan took, by itself."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weft.plan import Node


@dataclass(slots=True)
class NodeClock:
    """The own time of nodes: what passes while another node is computed is the other's.

    Nodes that are computed side by side, or in one pass, share the time evenly.
    """

    seconds: dict[Node, float] = field(default_factory=dict)
    _inside: float = 0.0  # of the nodes that were computed within the present one

    @contextmanager
    def of(self, *nodes: Node) -> Iterator[None]:
        """Take the time until the end of a `with` block."""
        before, self._inside = self._inside, 0.0
        start = perf_counter()
        try:
            yield
        finally:
            passed = perf_counter() - start
            for node in nodes:
                own = (passed - self._inside) / len(nodes)
                self.seconds[node] = self.seconds.get(node, 0.0) + own
            self._inside = before + passed
