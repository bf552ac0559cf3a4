"""What the local operator does for each node, in its own process or in executors of Spark's."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING

from weft.aggregates.kinds import GROWING_KINDS
from weft.cost.batch.work import Work, total, work
from weft.plan.nodes import PICK, STAIR, Emit, Node, Roll, Scan, Slice, regroups
from weft.techniques import INCREMENTAL, LAZY, TECHNIQUES
from weft.window import Edges, PeriodicWindow
from weft.window.edges import even_or_not

if TYPE_CHECKING:
    from collections.abc import Collection

    from weft.aggregates import Partial
    from weft.cost.volumes import Volumes
    from weft.window import Window

# As the kernels decide (`weft.kernels.grouping`), which are not loaded to plan.
TABLE_EDGES = 1 << 17
DENSE_ALWAYS = 1 << 16
DENSE_PER_EVENT = 4


@dataclass(frozen=True)
class KernelWork:
    """Counts the operations of kernels over whole arrays, at the prices of `engine`."""

    engine: str
    volumes: Volumes

    def works(self, nodes: tuple[Node, ...], given: Collection[Node] = ()) -> dict[Node, Work]:
        """Count for every slicing and window; slices of what is `given` come from elsewhere."""
        # Techniques that answer several ranges keep one store for all Rolls on the same slices.
        readers: Counter[tuple[Node, str | None]] = Counter(
            (n.feeder, n.technique) for n in nodes if isinstance(n, Roll)
        )
        anew = self._read_anew(nodes)
        found: dict[Node, Work] = {}
        for node in nodes:
            if isinstance(node, Slice):
                found[node] = {} if node in given else self._sliced(node)
            elif isinstance(node, Roll):
                sharers = readers[node.feeder, node.technique]
                found[node] = self.rolled(node, sharers, sliced=node in given)
                if anew.get(node):
                    again = self._read_again(node, anew[node])
                    found[node] = total(found[node], again)
        return found

    def _read_anew(self, nodes: tuple[Node, ...]) -> dict[Roll, float]:
        """Return for how much time, in all, the Rolls of a session read what they read before.

        Windows that are kept take in what is new. Others are put together of all slices that are
        held whenever they close, or a window that they feed does.
        """
        if self.volumes.pushes == 1:
            return {}
        push_us = self.volumes.lasts_us / self.volumes.pushes
        held_us: dict[Node, float] = {}  # how long slices stay, as the longest reader needs them
        closings: dict[Roll, float] = {}
        emitted = {roll for node in nodes if isinstance(node, Emit) for roll in node.inputs}
        rolls = [node for node in nodes if isinstance(node, Roll)]
        for roll in reversed(rolls):
            own = self._closings(roll, 1) if roll in emitted else 0.0
            closings[roll] = max(own, closings.get(roll, 0.0))
            for node in roll.inputs:
                above = max(self.volumes.range_us(roll.window), held_us.get(roll, 0.0))
                held_us[node] = max(above, held_us.get(node, 0.0))
                if isinstance(node, Roll) and roll.read != PICK:
                    closings[node] = max(closings[roll], closings.get(node, 0.0))
        found: dict[Roll, float] = {}
        for roll in rolls:
            if roll.technique in INCREMENTAL or roll.read == PICK:
                continue
            held = max(held_us.get(n, 0.0) for n in (roll, *roll.inputs)) + push_us
            found[roll] = max(closings[roll] * held - self.volumes.lasts_us, 0.0)
        return found

    def _read_again(self, node: Roll, time_us: float) -> Work:
        """Read and combine what is fed once more, for so much time in all."""
        base = node if isinstance(node.feeder, Scan) else node.feeder
        rows = self.volumes.rows(base) / self.volumes.lasts_us * time_us
        return work(self.engine, read_partial=rows, combine=rows * len(node.partials))

    def _sliced(self, node: Slice) -> Work:
        if isinstance(node.input, Scan):
            return self.folded(node.partials, self.volumes.rows(node), node.edges)
        arriving, width = self.volumes.rows(node.input), len(node.partials)
        rows = self.volumes.rows(node)
        sorted_rows = 0.0
        if regroups(node):
            # With every push, those that it brought; they are put in order anew, column by column.
            sorted_rows = arriving = self.volumes.rows_in_pushes(node.input)
        return work(
            self.engine,
            operator=self.volumes.pushes,
            read_partial=arriving,
            combine=arriving * width,
            write_partial=rows + sorted_rows * (1 + width),
            cold_row=sorted_rows,
        )

    def folded(self, partials: tuple[Partial, ...], rows: float, edges: Edges) -> Work:
        """Fold all events into slices."""
        events = self.volumes.events
        growing = sum(p.kind in GROWING_KINDS for p in partials)
        return work(
            self.engine,
            operator=self.volumes.pushes,
            fold_event=events,
            hash_event=events if self._is_hashed(edges) else 0.0,
            lift=events * (len(partials) - growing),
            lift_where=events * sum(p.where is not None for p in partials),
            set_value=events * growing,
            write_partial=rows,
        )

    def _is_hashed(self, edges: Edges) -> bool:
        """Tell whether there are too many pairs of key and slice to have a place for each."""
        if edges.windows:
            return False  # runs of a key's events are found by sorting them
        edges = Edges(even_or_not(edges.classes))
        if _marks_per_period(edges) > TABLE_EDGES:
            return True
        slices = self.volumes.slices_per_second(edges) * self.volumes.lasts_us / 1e6 + 1
        places = slices * self.volumes.statistics.key_count
        return places > max(DENSE_ALWAYS, DENSE_PER_EVENT * self.volumes.events)

    def rolled(self, node: Roll, sharers: int = 1, *, sliced: bool = False) -> Work:
        """Put instances together; a window that reads events cuts them at its own edges first."""
        if not isinstance(node.feeder, Scan):
            return self._combined(node, sum(map(self.volumes.rows, node.inputs)), sharers)
        slices = self.slices_of(node.window)
        edges = Edges.of([node.window])
        first = {} if sliced else self.folded(node.partials, slices, edges)
        if isinstance(node.window, PeriodicWindow) and node.window.is_tumbling:
            return first  # its slices are its instances
        return total(first, self._combined(node, slices, sharers))

    def slices_of(self, window: Window) -> float:
        """Rows of the slices that a window alone cuts."""
        if isinstance(window, PeriodicWindow):
            length_us = 1e6 / self.volumes.slices_per_second(Edges.of([window]))
        else:
            length_us = self.volumes.period_us(window)
        return self.volumes.rows_of(length_us, length_us)

    def _combined(self, node: Roll, arriving: float, sharers: int) -> Work:
        width, rows = len(node.partials), self.volumes.rows(node)
        combines = self._combines(node, arriving, rows)
        shared = TECHNIQUES[node.technique].several_ranges if node.technique else False
        return work(
            self.engine,
            operator=self._closings(node, sharers),
            read_partial=arriving,
            combine=combines * width / (sharers if shared else 1),
            write_partial=rows,
        )

    def _closings(self, node: Roll, sharers: int) -> float:
        """How often a window closes by itself; those of a stream on the same slices do together."""
        pushes = self.volumes.pushes
        if pushes == 1:
            return 1.0
        often = max(min(pushes, self.volumes.lasts_us / self.volumes.period_us(node.window)), 1.0)
        together = isinstance(node.feeder, Slice) and isinstance(node.window, PeriodicWindow)
        return often / sharers if together else often

    def _combines(self, node: Roll, arriving: float, rows: float) -> float:
        """How often two partials of one kind are combined."""
        if node.read == PICK:
            return 0.0
        if node.read == STAIR or isinstance(node.feeder, Roll):
            return arriving
        overlap = self.volumes.overlap(node.window)
        if node.technique in LAZY:
            return arriving * max(overlap, 1.0)
        held = max(arriving * self.volumes.range_us(node.window) / self.volumes.lasts_us, 1.0)
        keys = max(self.volumes.keys_in(self.volumes.range_us(node.window)), 1e-9)
        combines = TECHNIQUES[node.technique].combines_per_slide(max(held / keys, 1.0))
        return arriving * max(combines - 1, 0.0) + rows


def _marks_per_period(edges: Edges) -> int:
    """Edges of all classes until they repeat together."""
    period = lcm(*(modulus for _, modulus in edges.classes))
    return sum(period // modulus for _, modulus in edges.classes)
