"""What a plan costs in batch: the time it is expected to take, in milliseconds, node by node.

The work of every node is counted, over all events, and priced; a plan costs the sum. So what a run
or an operator takes once weighs as much as it does, and a plan that is best for a million events
need not be for a thousand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from weft.aggregates import Partial
from weft.cost.batch.kernels import KernelWork
from weft.cost.batch.spark import SparkWork
from weft.cost.batch.work import Work, doublings, ms_of, work
from weft.cost.model import CALIBRATED
from weft.cost.prices import Coefficients, coefficients_of
from weft.plan.nodes import FOLD, Emit, Join, Node, Roll, Scan, Slice, picks_rows

if TYPE_CHECKING:
    from weft.cost.volumes import Volumes
    from weft.window import PeriodicWindow, Window

# Windows that a planner only thinks of read this; what matters is that it is no feeder.
_EVENTS = Scan("events", None, None, ())
_PLAIN = Partial("count_rows", ())
_CACHED_KEYS = 1000.0  # that the local engine finds without waiting for memory


@dataclass(frozen=True)
class BatchModel(ABC):
    """Prices the nodes of one scope over all its events."""

    engine: str
    volumes: Volumes
    prices: dict[str, Coefficients]
    name: str = CALIBRATED
    unit: str = "ms"

    def ms(self, done: Work) -> float:
        """Price work."""
        return ms_of(done, self.prices.__getitem__, self.volumes.statistics.cores)

    @abstractmethod
    def works(self, nodes: tuple[Node, ...]) -> list[Work]:
        """Count the work of each node."""

    def node_costs(self, nodes: tuple[Node, ...]) -> tuple[float, ...]:
        """Price each node, in order."""
        return tuple(self.ms(done) for done in self.works(nodes))

    @abstractmethod
    def from_events(self, window: Window, width: int) -> float:
        """Price of a window that folds events, for `width` partials; reading them is not in it."""

    @abstractmethod
    def from_feeder(self, window: PeriodicWindow, feeder: PeriodicWindow, width: int) -> float:
        """Price of a window that combines instances of another, for `width` partials."""

    def events_per_partial(self, width: int, slice_us: float) -> float:
        """Price of the events of one microsecond in units of combining one slice of all keys.

        This is the rate a paper would call lambda, where every operation costs the same.
        """
        event = self.ms(work(self.engine, fold_event=1.0, lift=float(width)))
        partial = self.ms(work(self.engine, read_partial=1.0, combine=float(width)))
        keys = self.volumes.keys_in(slice_us)
        return self.volumes.statistics.events_per_us * event / max(partial * keys, 1e-30)


class SparkModel(BatchModel):
    """Prices nodes on Spark, natively; other ways to run them share its volumes and prices."""

    @classmethod
    def of(cls, volumes: Volumes) -> SparkModel:
        """Take the prices of both strategies."""
        names = ("spark", "spark-columnar")
        return cls("spark", volumes, {name: coefficients_of(name) for name in names})

    @cached_property
    def spark(self) -> SparkWork:
        """What Spark does for a scope."""
        return SparkWork(self.volumes)

    def works(self, nodes: tuple[Node, ...]) -> list[Work]:
        """Count the work of each node, natively."""
        return self.spark.native(nodes)

    def from_events(self, window: Window, width: int) -> float:
        """Price of a window that folds events, for `width` partials; reading them is not in it."""
        rows = self.volumes.rows_of(self.volumes.range_us(window), self.volumes.period_us(window))
        return self.ms(self.spark.from_events(window, (_PLAIN,) * width, rows, 2, rows))

    def from_feeder(self, window: PeriodicWindow, feeder: PeriodicWindow, width: int) -> float:
        """Price of a window that combines instances of another, for `width` partials."""
        read = self.volumes.rows_of(feeder.range_us, feeder.slide_us)
        rows = self.volumes.rows_of(window.range_us, window.slide_us)
        copies = read * self.spark.instances_of_row(window, feeder)
        return self.ms(self.spark.grouped(copies, rows, width, rows))


class LocalModel(BatchModel):
    """Prices nodes that the local operator runs in this process."""

    @classmethod
    def of(cls, volumes: Volumes) -> LocalModel:
        """Take the prices of the local engine."""
        return cls("local", volumes, {"local": coefficients_of("local")})

    @cached_property
    def kernels(self) -> KernelWork:
        """What the kernels do for a scope."""
        return KernelWork(self.engine, self.volumes)

    def works(self, nodes: tuple[Node, ...]) -> list[Work]:
        """Count the work of each node; reading events and finding their keys is the scan's."""
        computed = self.kernels.works(nodes)
        return [self._work(node, computed) for node in nodes]

    def _work(self, node: Node, computed: dict[Node, Work]) -> Work:
        match node:
            case Scan():
                events, known = self.volumes.events, self.volumes.statistics
                return work(
                    self.engine,
                    run=1,
                    scan_event=events + self.volumes.dropped,
                    key_byte=events * known.row_key_bytes,
                    cold_row=events * doublings(known.key_count, _CACHED_KEYS),
                )
            case Slice() | Roll():
                return computed[node]
            case Emit() | Join():
                rows = self.volumes.rows(node)
                outputs = len(node.outputs) if isinstance(node, Emit) else len(node.partials)
                # Rows of other filters are looked at, and left out.
                looked_at = self.volumes.rows(node.inputs[0]) if picks_rows(node) else 0.0
                return work(
                    self.engine,
                    read_partial=looked_at,
                    emit_row=rows,
                    emit_value=rows * outputs,
                )

    def from_events(self, window: Window, width: int) -> float:
        """Price of a window that folds events, for `width` partials; reading them is not in it."""
        return self.ms(self.kernels.rolled(Roll((_EVENTS,), window, FOLD, (), (_PLAIN,) * width)))

    def from_feeder(self, window: PeriodicWindow, feeder: PeriodicWindow, width: int) -> float:
        """Price of a window that combines instances of another, for `width` partials."""
        inner = Roll((_EVENTS,), feeder, FOLD, (), (_PLAIN,) * width)
        return self.ms(self.kernels.rolled(Roll((inner,), window, FOLD, (), (_PLAIN,) * width)))


def batch_model(engine: str, volumes: Volumes) -> BatchModel:
    """Return the model of an engine that runs batches."""
    return SparkModel.of(volumes) if engine == "spark" else LocalModel.of(volumes)
