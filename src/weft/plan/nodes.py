"""The plan language: five frozen nodes that every planner writes and every engine obeys.

    Scan   the events of a source, filtered
    Slice  events, or finer slices, to one partial per (key, slice); slices are disjoint
    Roll   events or a feeder's partials to one partial per (key, instance) of a window
    Join   window tuples or early aggregates of several inputs, joined and aggregated
    Emit   partials to results, named and handed to the user

A factor window is a Roll that no Emit reads. Equal nodes are the same node: sharing is equality.
A Slice or a Roll may have fewer keys than what it reads: then it regroups, and partials of keys
that differ in nothing else are combined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.aggregates.base import decompose
from weft.errors import InternalError
from weft.query import WINDOW_COLUMNS, Keys
from weft.window import CumulatingWindow, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from weft.aggregates import AggregateCall, Partial
    from weft.window import Edges, LandmarkWindow, Window

# How a Roll reads its feeder.
FOLD = "fold"  # every event or partial into the instances that hold it
PICK = "pick"  # the feeder's instance as it is
STAIR = "stair"  # the enclosed window's result plus the slices before it
RANGES = "ranges"  # an instance is a range of the feeder's partials, side by side
READS = (FOLD, PICK, STAIR, RANGES)


class _Identified:
    """Equal by value, however deep: hashes are made once, and neither walks the stack.

    Plans may hold a million nodes, and chains of a thousand.
    """

    __slots__ = ("_hash",)
    __match_args__: tuple[str, ...]  # the fields, in order
    _hash: int

    def __post_init__(self) -> None:
        # Now, while the inputs' hashes are known: later would mean to recurse down a chain.
        object.__setattr__(self, "_hash", hash((type(self).__name__, *self._values())))

    def _values(self) -> tuple[object, ...]:
        return tuple([getattr(self, name) for name in self.__match_args__])

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:  # unpickled: hashes of text differ between processes
            _Identified.__post_init__(self)
            return self._hash

    def __eq__(self, other: object) -> bool:
        pairs: list[tuple[object, object]] = [(self, other)]
        seen: set[tuple[int, int]] = set()
        while pairs:
            a, b = pairs.pop()
            if a is b or (id(a), id(b)) in seen:
                continue
            if type(a) is not type(b) or hash(a) != hash(b):
                return False
            if isinstance(a, _Identified) and isinstance(b, _Identified):
                seen.add((id(a), id(b)))
                pairs.extend(zip(_flat(a._values()), _flat(b._values()), strict=False))
            elif a != b:
                return False
        return True


def _flat(values: tuple[object, ...]) -> Iterator[object]:
    """Open tuples of nodes, so that nodes are compared one by one and not by their tuples."""
    for value in values:
        if isinstance(value, tuple) and value and isinstance(value[0], _Identified):
            yield len(value)
            yield from value
        else:
            yield value


@dataclass(frozen=True, slots=True, eq=False)
class Scan(_Identified):
    """Read the events of a source once, keep those that pass the filter.

    `time` is None until the source's only timestamp column is looked up in its schema.
    """

    source: str
    time: str | None
    where: str | None
    columns: tuple[str, ...]
    whole_events: bool = False  # a user-defined window may look at any column
    watermark_us: int | None = None  # how long events may be late, in a stream

    @property
    def inputs(self) -> tuple[Node, ...]:
        """Nothing feeds a scan."""
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class Slice(_Identified):
    """Fold the input into one partial per key and slice; slices lie between neighbouring edges."""

    input: Scan | Slice
    keys: Keys
    edges: Edges
    partials: tuple[Partial, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The scan, or the finer slices."""
        return (self.input,)


@dataclass(frozen=True, slots=True, eq=False)
class Roll(_Identified):
    """Bring the input to one partial per key and instance of the window.

    Over a `Scan` events are lifted, over anything else partials are combined. A stair has two
    inputs: the enclosed Roll, and the Slice that holds what lies before it. `technique` names how
    instances that overlap are put together, of `weft.techniques`; None where nothing is in two
    instances, and in proposals that are not yet for an engine.
    """

    inputs: tuple[Scan | Slice | Roll, ...]
    window: Window
    read: str
    keys: Keys
    partials: tuple[Partial, ...]
    technique: str | None = None

    def __post_init__(self) -> None:
        if len(self.inputs) != (2 if self.read == STAIR else 1):
            raise InternalError(f"{self.read} over {self.window} has {len(self.inputs)} inputs")
        _Identified.__post_init__(self)

    @property
    def feeder(self) -> Scan | Slice | Roll:
        """The first input: events, slices, or the window this one is computed from."""
        return self.inputs[0]


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One input of a join: its rows, its window, and whether it is aggregated early.

    An early input may read slices that other joins read too.
    """

    input: Scan | Slice
    alias: str
    window: PeriodicWindow | LandmarkWindow | None
    early: bool
    keys: Keys  # group and join attributes this input owns
    partials: tuple[Partial, ...]

    @property
    def scan(self) -> Scan:
        """The rows of the source."""
        below: Scan | Slice = self.input
        while not isinstance(below, Scan):
            below = below.input
        return below


@dataclass(frozen=True, slots=True, eq=False)
class Join(_Identified):
    """Join the windows of several inputs and aggregate; early inputs arrive aggregated."""

    sides: tuple[JoinSide, ...]
    on: tuple[tuple[str, str], ...]
    keys: Keys
    partials: tuple[Partial, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        """What all sides read: scans, or slices."""
        return tuple(side.input for side in self.sides)


@dataclass(frozen=True, slots=True, eq=False)
class Emit(_Identified):
    """Lower partials to the results of one window of one query.

    Several inputs hold the same (key, instance) rows with different partials. A query that keeps
    fewer events than its scan has calls under a condition, and `exists` counts its events: rows
    where there are none belong to other queries.
    """

    inputs: tuple[Roll | Join, ...]
    query: str
    label: str
    outputs: tuple[tuple[str, AggregateCall], ...]
    window_columns: tuple[str, str, str] = WINDOW_COLUMNS
    exists: Partial | None = None

    @property
    def keys(self) -> Keys:
        """The grouping keys, as the inputs have them."""
        return self.inputs[0].keys

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the result, in order."""
        names = tuple(name for name, _ in self.keys)
        return (*names, *self.window_columns, *(alias for alias, _ in self.outputs))

    @property
    def where(self) -> str | None:
        """The condition of the query, where its scan keeps more than its events."""
        return None if self.exists is None else self.exists.where

    @property
    def needed(self) -> tuple[Partial, ...]:
        """The partials that rows are made of, each once, the one that tells them apart included."""
        found = decompose(call for _, call in self.outputs)
        return found if self.exists is None else tuple(dict.fromkeys((*found, self.exists)))


Node = Scan | Slice | Roll | Join | Emit


def scan_below(node: Node) -> Scan:
    """Return the scan that a node reads in the end; of a join, that of its first input."""
    while not isinstance(node, Scan):
        node = node.inputs[0]
    return node


def regroups(node: Slice | Roll) -> bool:
    """True when a node has fewer keys than the slices or windows that it reads."""
    return any(isinstance(i, Slice | Roll) and i.keys != node.keys for i in node.inputs)


def picks_rows(node: Node) -> bool:
    """True when a query looks for its own rows among those of other filters."""
    return isinstance(node, Emit) and node.exists is not None


def periodic_parts(window: Window) -> tuple[PeriodicWindow, ...]:
    """Return the periodic windows that a window is made of; none for the other kinds."""
    if isinstance(window, CumulatingWindow):
        return window.parts()
    return (window,) if isinstance(window, PeriodicWindow) else ()


def ends_read_open(node: Slice, nodes: Iterable[Node]) -> tuple[PeriodicWindow, ...]:
    """Return the windows of a plan that end inside a begins-only slice; none of other slices.

    A stream could read such a slice while it is open. In batch nothing is, so they cut it as well.
    """
    if node.edges.slicing != "begins":
        return ()
    below: set[Node] = {node}
    found: dict[PeriodicWindow, None] = {}
    for other in nodes:
        if isinstance(other, Slice) and other.input in below:
            below.add(other)
        elif isinstance(other, Roll) and not below.isdisjoint(other.inputs):
            found.update(dict.fromkeys(periodic_parts(other.window)))
    return tuple(found)


def topological(last: Sequence[Node]) -> tuple[Node, ...]:
    """List the last nodes of a plan and all they read, inputs first, each equal node once.

    >>> from weft.aggregates import AggregateCall, Partial
    >>> from weft.window import PeriodicWindow
    >>> scan = Scan("t", "ts", None, ())
    >>> roll = Roll((scan,), PeriodicWindow(2, 2), FOLD, (), (Partial("count_rows", ()),))
    >>> emit = Emit((roll,), "q", "2", (("n", AggregateCall("count")),))
    >>> [type(node).__name__ for node in topological((emit,))]
    ['Scan', 'Roll', 'Emit']
    """
    order: dict[Node, None] = {}
    stack: list[tuple[Node, bool]] = [(emit, False) for emit in reversed(last)]
    while stack:
        node, ready = stack.pop()
        if node in order:
            continue
        if ready or not node.inputs:
            order[node] = None
            continue
        stack.append((node, True))
        stack.extend((feeder, False) for feeder in reversed(node.inputs) if feeder not in order)
    return tuple(order)
