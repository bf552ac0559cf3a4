"""The timed part of a scope's plan: which slices are kept, and who reads them.

A Roll over events is evaluated by slicing at the window's own edges: the same result as folding
every event into each of its instances, at a fraction of the work.
"""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.engines.local.values.calendar import CalendarTable
from weft.engines.local.windows.emit_groups import Arrangement, arrange
from weft.engines.local.windows.flow import Flow
from weft.engines.local.windows.lateness import Readers
from weft.engines.local.windows.rolls import coarser, roll_slices, roll_stair, roll_windows
from weft.engines.local.windows.slices import edges_as_cut, slices_of_edges
from weft.engines.local.windows.stored_rolls import StoredRolls, stored_rolls
from weft.errors import InternalError
from weft.plan import STAIR, Emit, Node, Roll, Scan, Slice
from weft.window import CalendarWindow, CumulatingWindow, Edges, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from weft.aggregates import Partial
    from weft.engines.local.node_clock import NodeClock
    from weft.kernels.grouping.slices import Slices
    from weft.window import Window

Timed = (PeriodicWindow, CumulatingWindow, CalendarWindow)


def is_timed(window: Window) -> bool:
    """Tell whether the instances of a window follow from the clock alone."""
    return isinstance(window, Timed)


@dataclass(slots=True)
class Base:
    """Slices cut from events: where, for which partials, and for which windows they are kept."""

    edges: Edges
    slices: Slices
    partials: dict[Partial, None]
    windows: dict[Window, None] = field(default_factory=dict)
    _readers: Readers | None = None

    @property
    def readers(self) -> Readers:
        """The windows, once all of them are known."""
        if self._readers is None:
            self._readers = Readers.of(self.windows)
        return self._readers

    @classmethod
    def of(cls, edges: Edges, partials: Iterable[Partial], readers: Iterable[Window]) -> Base:
        """Cut at these edges, and at the ends of readers where only begins are given."""
        cut = edges_as_cut(edges, readers)
        slices = slices_of_edges(cut)
        if slices is None:
            raise InternalError("slices of time without edges")
        return cls(cut, slices, dict.fromkeys(partials))


@dataclass(slots=True)
class TimedPlan:
    """The Slices and Rolls over time of one scope, ready to be evaluated over kept slices."""

    emits: tuple[Emit, ...]
    bases: dict[Node, Base] = field(default_factory=dict)
    derived: dict[Slice, Slices] = field(default_factory=dict)
    below: dict[Roll, tuple[Node, ...]] = field(default_factory=dict)  # the bases of each Roll
    windows: tuple[Window, ...] = ()  # factor windows included
    calendars: dict[CalendarWindow, CalendarTable] = field(default_factory=dict)
    combines: int = 0  # rows that were combined with another
    rows: Counter[Node] = field(default_factory=Counter)  # that each evaluation of a node gave
    arrangement: Arrangement | None = None  # of the emits that were asked for last
    stored: tuple[StoredRolls, ...] = ()  # what a stream keeps in stores
    in_stores: frozenset[Roll] = frozenset()
    clock: NodeClock | None = None  # where somebody wants to know

    @classmethod
    def of(cls, nodes: Iterable[Node], emits: tuple[Emit, ...]) -> TimedPlan:
        """Find the bases of the timed Rolls below these emits."""
        plan = cls(emits)
        rolls = [n for n in nodes if isinstance(n, Roll) and is_timed(n.window)]
        readers: dict[Node, dict[Window, None]] = {}
        for roll in rolls:
            for feeder in roll.inputs:
                below: Node = feeder
                while isinstance(below, Slice):
                    readers.setdefault(below, {})[roll.window] = None
                    below = below.input
        for roll in rolls:
            plan._place(roll, readers)
            if isinstance(roll.window, CalendarWindow):
                plan.calendars.setdefault(roll.window, CalendarTable(roll.window))
        plan.stored = stored_rolls(rolls, plan.below, plan.derived)
        plan.in_stores = frozenset(roll for kept in plan.stored for roll in kept.rolls)
        windows = dict.fromkeys(w for base in plan.bases.values() for w in base.windows)
        plan.windows = tuple(windows)
        return plan

    def _place(self, roll: Roll, readers: Mapping[Node, dict[Window, None]]) -> None:
        for feeder in roll.inputs:
            if isinstance(feeder, Scan):
                self.bases[roll] = Base.of(Edges.of([roll.window]), roll.partials, ())
            below: Node = feeder
            while isinstance(below, Slice):
                if below not in self.bases and below not in self.derived:
                    base = Base.of(below.edges, below.partials, readers[below])
                    if isinstance(below.input, Slice):
                        self.derived[below] = base.slices
                    else:
                        self.bases[below] = base
                below = below.input
        self.below[roll] = self._bases_below(roll)
        for node in self.below[roll]:  # kept as long as the windows above need them
            self.bases[node].windows[roll.window] = None

    def _bases_below(self, roll: Roll) -> tuple[Node, ...]:
        found: dict[Node, None] = {}
        for feeder in roll.inputs:
            node: Node = feeder
            while isinstance(node, Slice) and isinstance(node.input, Slice):
                node = node.input
            if isinstance(node, Roll):
                found.update(dict.fromkeys(self.below[node]))  # inputs were placed before
            else:
                found[roll if isinstance(node, Scan) else node] = None
        return tuple(found)

    def arranged(self, emits: tuple[Emit, ...]) -> Arrangement:
        """Return how these emits close; a stream asks for the same ones again and again."""
        if self.arrangement is None or self.arrangement.emits is not emits:
            self.arrangement = arrange(emits)
        return self.arrangement

    def final_before(self, node: Node, watermark_us: int | None) -> int | None:
        """Return up to where the stores over a base have slices for final; None without any."""
        specs = (spec for spec in self.stored if spec.base == node)
        return max((spec.final_before(watermark_us) for spec in specs), default=None)

    def flow(self, node: Node, kept: Mapping[Node, Flow], made: dict[Node, Flow]) -> Flow:
        """Evaluate a Slice or a Roll over the slices kept; each node once."""
        if node not in made:
            with self.timed(node):
                flow = self._flow(node, kept, made)
            self.keep(node, flow, made)
        return made[node]

    def timed(self, *nodes: Node) -> AbstractContextManager[None]:
        """Take the time of nodes until the end of a `with` block, where it is wanted."""
        return nullcontext() if self.clock is None else self.clock.of(*nodes)

    def keep(self, node: Node, flow: Flow, made: dict[Node, Flow]) -> None:
        """Note the flow of a node, and what it took."""
        made[node] = flow
        self.combines += flow.combined
        self.rows[node] += len(flow)

    def _flow(self, node: Node, kept: Mapping[Node, Flow], made: dict[Node, Flow]) -> Flow:
        if isinstance(node, Slice):
            if node in kept:
                return kept[node]
            finer = self.flow(node.input, kept, made)
            return coarser(finer, self.derived[node], node.partials)
        if not isinstance(node, Roll):
            raise InternalError(f"a {type(node).__name__} has no partials")
        window, feeder = node.window, node.feeder
        calendar = self.calendars.get(window) if isinstance(window, CalendarWindow) else None
        assert isinstance(window, Timed)
        if isinstance(feeder, Scan):
            return roll_slices(kept[node], window, calendar, node.partials, node.technique)
        below = self.flow(feeder, kept, made)
        if isinstance(feeder, Slice):
            return roll_slices(below, window, calendar, node.partials, node.technique)
        if feeder.window == window:
            partials = {p: below.partials[p] for p in node.partials}
            return Flow(below.keys, below.starts_us, below.ends_us, partials)
        inner = feeder.window
        assert isinstance(window, PeriodicWindow)
        assert isinstance(inner, PeriodicWindow)
        if node.read == STAIR:
            steps = self.flow(node.inputs[1], kept, made)
            return roll_stair(below, steps, inner, window, node.partials, node.technique)
        return roll_windows(below, inner, window, node.partials, node.technique)


def roll_over(roll: Roll, slices: Flow) -> Flow:
    """Evaluate a Roll of a periodic window over slices."""
    assert isinstance(roll.window, PeriodicWindow)
    return roll_slices(slices, roll.window, None, roll.partials, roll.technique)
