"""Where the instances of periodic windows begin and end: the edges that slices are cut at.

Panes, pairs and the begins-only slicing of Cutty differ in nothing but the edges they take
(Shein & Chrysanthis; Carbone et al.). An edge class (residue, modulus) stands for the positions
`residue + m*modulus` for every integer m.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Literal

from weft.window.kinds import CumulatingWindow
from weft.window.periodic import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft.window.any_window import Window

Slicing = Literal["panes", "pairs", "begins"]
EdgeClass = tuple[int, int]
# So many times the slices that a plan asks for are cut, rather than slices of many widths.
MOST_FINER = 2


def edge_classes(windows: Iterable[PeriodicWindow], slicing: Slicing) -> tuple[EdgeClass, ...]:
    """List the edge classes a slicing of these windows needs, without duplicates, sorted.

    Pairs cut at begins and ends, `begins` at begins only, panes at every common divisor.

    >>> from weft.window import PeriodicWindow
    >>> edge_classes([PeriodicWindow(5, 3)], "pairs")
    ((0, 3), (2, 3))
    >>> edge_classes([PeriodicWindow(5, 3)], "begins")
    ((0, 3),)
    >>> edge_classes([PeriodicWindow(14, 8)], "panes")
    ((0, 2),)
    """
    chosen = tuple(windows)
    if slicing == "panes":
        size = gcd(*(v for w in chosen for v in (w.range_us, w.slide_us)))
        first = chosen[0].offset_us
        # Windows of different phase only share panes that also divide the phases' distance.
        size = gcd(size, *(w.offset_us - first for w in chosen))
        return ((first % size, size),)
    classes = {(w.offset_us, w.slide_us) for w in chosen}
    if slicing == "pairs":
        classes |= {((w.offset_us + w.range_us) % w.slide_us, w.slide_us) for w in chosen}
    return tuple(sorted(classes, key=lambda c: (c[1], c[0])))


def primitive_classes(classes: Iterable[EdgeClass]) -> tuple[EdgeClass, ...]:
    """Drop duplicates and every class whose edges all belong to another one.

    >>> primitive_classes([(0, 4), (6, 4), (0, 2), (1, 4), (0, 5)])
    ((0, 2), (1, 4), (0, 5))
    """
    kept: dict[int, set[int]] = {}
    ordered = sorted({(modulus, residue % modulus) for residue, modulus in classes})
    for modulus, residue in ordered:
        if not any(
            modulus % finer == 0 and residue % finer in residues for finer, residues in kept.items()
        ):
            kept.setdefault(modulus, set()).add(residue)
    return tuple((r, m) for m, residues in kept.items() for r in sorted(residues))


def common_grain(classes: Iterable[EdgeClass]) -> int:
    """Return the largest step such that all edges lie a whole number of steps apart.

    >>> common_grain([(1, 4), (3, 6)])
    2
    """
    chosen = tuple(classes)
    origin = chosen[0][0]
    return gcd(*(modulus for _, modulus in chosen), *(residue - origin for residue, _ in chosen))


def even_or_not(classes: Iterable[EdgeClass]) -> tuple[EdgeClass, ...]:
    """Cut at every common divisor where that gives few slices more: even slices need no lookup.

    >>> even_or_not([(0, 10), (0, 15), (0, 25)]), even_or_not([(0, 59), (0, 61)])
    (((0, 5),), ((0, 59), (0, 61)))
    """
    chosen = primitive_classes(classes)
    grain = common_grain(chosen)
    edges_per_grain = sum(grain / modulus for _, modulus in chosen)
    return ((chosen[0][0] % grain, grain),) if edges_per_grain * MOST_FINER >= 1 else chosen


@dataclass(frozen=True, slots=True)
class Edges:
    """Where slices are cut: periodic classes, and windows whose edges only a run can tell.

    Calendar windows follow their zone, data-driven windows the events; both cut at begins and ends.

    >>> from weft.window import PeriodicWindow
    >>> edges = Edges.of([PeriodicWindow(6, 2), PeriodicWindow(8, 4), PeriodicWindow(5, 3)])
    >>> edges.classes, edges.contains((2, 4)), edges.contains((1, 4))
    (((0, 2), (0, 3), (2, 3)), True, False)
    """

    classes: tuple[EdgeClass, ...]
    windows: tuple[Window, ...] = ()
    slicing: Slicing = "pairs"

    @classmethod
    def of(cls, windows: Iterable[Window], slicing: Slicing = "pairs") -> Edges:
        """Return the edges of these windows, redundant classes left out."""
        periodic: dict[PeriodicWindow, None] = {}
        others: dict[Window, None] = {}
        for window in windows:
            if isinstance(window, PeriodicWindow):
                periodic[window] = None
            elif isinstance(window, CumulatingWindow):
                periodic[PeriodicWindow(window.step_us, window.step_us)] = None
            else:
                others[window] = None
        classes = edge_classes(periodic, slicing) if periodic else ()
        return cls(primitive_classes(classes), tuple(others), slicing)

    def contains(self, edge_class: EdgeClass) -> bool:
        """True when every position of the class is an edge (by one class that includes it)."""
        residue, modulus = edge_class
        return any(modulus % m == 0 and (residue - r) % m == 0 for r, m in self.classes)
