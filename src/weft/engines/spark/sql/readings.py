"""Which instances a row of a feeder belongs to, for every pair of nodes that native compiles."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from weft.engines.spark.sql.fan_out import START, Reading
from weft.engines.spark.sql.instants import calendar_start
from weft.engines.spark.sql.slice_bounds import slice_start
from weft.errors import InternalError
from weft.plan import STAIR, Node, Roll, Slice
from weft.plan.nodes import ends_read_open
from weft.window import (
    CalendarWindow,
    CumulatingWindow,
    PeriodicWindow,
    SessionWindow,
    Window,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

# A window whose instances are told by their start alone.
Shape = PeriodicWindow | CalendarWindow | SessionWindow
# A node and, of a window, one shape: what a row of partials belongs to.
Place = tuple[Slice | Roll, Shape | None]


def shapes_of(window: Window) -> tuple[Shape, ...]:
    """Split a window into shapes: a cumulating one has a shape per step.

    >>> [str(shape) for shape in shapes_of(CumulatingWindow(4, 2))]
    ['HOP 2us/4us', 'TUMBLE 4us']
    """
    if isinstance(window, CumulatingWindow):
        return window.parts()
    if isinstance(window, Shape):
        return (window,)
    raise InternalError(f"{window} was not refused")


def places_of(node: Slice | Roll) -> tuple[Place, ...]:
    """List what rows of a node may belong to."""
    if isinstance(node, Slice):
        return ((node, None),)
    return tuple((node, shape) for shape in shapes_of(node.window))


def reading_of(place: Place, number: int, feeder: Node, source: Shape | None) -> Reading | None:
    """Tell how a place reads rows of a feeder that have the shape `source`; None if it does not.

    >>> from weft.plan import FOLD, Scan
    >>> scan, hop, long = Scan("t", "ts", None, ()), PeriodicWindow(4, 2), PeriodicWindow(8, 4)
    >>> inner = Roll((scan,), hop, FOLD, (), ())
    >>> reading_of((inner, hop), 0, scan, None)
    Reading(node=0, shift=0, look_back=3, slide=2, offset=0, stride=1, every=1)
    >>> reading_of((Roll((inner,), long, FOLD, (), ()), long), 1, inner, hop)
    Reading(node=1, shift=0, look_back=5, slide=4, offset=0, stride=1, every=4)
    >>> dense = PeriodicWindow(8, 2)
    >>> reading_of((Roll((inner,), dense, FOLD, (), ()), dense), 1, inner, hop)
    Reading(node=1, shift=0, look_back=5, slide=2, offset=0, stride=2, every=1)
    """
    node, shape = place
    if isinstance(feeder, Roll) and isinstance(node, Roll) and feeder.window == node.window:
        return Reading(number) if shape == source else None
    if isinstance(node, Slice):
        if len(node.edges.classes) == 1 and not node.edges.windows:
            ((residue, modulus),) = node.edges.classes
            return Reading(number, look_back=modulus - 1, slide=modulus, offset=residue)
        return Reading(number)
    if not isinstance(shape, PeriodicWindow):
        return Reading(number)
    if node.read == STAIR:
        return _stair(node, number, feeder, shape)
    if isinstance(feeder, Roll):
        return _from_window(number, shape, source)
    return Reading(number, 0, shape.range_us - 1, shape.slide_us, shape.offset_us)


def _from_window(number: int, shape: PeriodicWindow, source: Shape | None) -> Reading:
    if not isinstance(source, PeriodicWindow):
        raise InternalError(f"{source} cannot feed {shape}")
    _, distance = shape.reads(source)
    # Rows begin on a grid that the window's starts lie on as well: a look_back up to the next line
    # of it means the same, and shows that no row falls into a gap where none can.
    grid = gcd(source.slide_us, shape.slide_us, source.offset_us - shape.offset_us)
    look_back = (shape.range_us - source.range_us) // grid * grid + grid - 1
    # Instances that hold a row which begins with one of them are found without those between.
    found = distance % shape.slide_us == 0
    all_begin = grid == shape.slide_us
    return Reading(
        number,
        look_back=look_back,
        slide=shape.slide_us,
        offset=shape.offset_us,
        stride=distance // shape.slide_us if found else 1,
        every=1 if grid % distance == 0 or (found and all_begin) else distance,
    )


def _stair(node: Roll, number: int, feeder: Node, shape: PeriodicWindow) -> Reading:
    """The enclosed window ends where this one does; the slices before it make up the rest."""
    inner = node.inputs[0]
    if not isinstance(inner, Roll) or not isinstance(inner.window, PeriodicWindow):
        raise InternalError(f"{shape} is a stair over {inner}")
    before = shape.range_us - inner.window.range_us
    if feeder == inner:
        return Reading(number, before, 0, shape.slide_us, shape.offset_us)
    return Reading(number, 0, before - 1, shape.slide_us, shape.offset_us)


def special_start(place: Place, feeder: Node, nodes: Iterable[Node]) -> str | None:
    """Return the start of instances that no `Reading` can tell; None where one can."""
    node, shape = place
    if isinstance(feeder, Roll):
        return None
    if isinstance(node, Slice):
        ends = ends_read_open(node, nodes)
        if len(node.edges.classes) == 1 and not node.edges.windows and not ends:
            return None
        return slice_start(START, node.edges, ends)
    if isinstance(shape, CalendarWindow):
        return calendar_start(shape, START)
    return session_column(shape) if isinstance(shape, SessionWindow) else None


def session_column(window: SessionWindow) -> str:
    """Name the column that holds the start of a session of this window."""
    return f"session_{window.gap_us}"
