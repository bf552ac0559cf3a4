"""Combines noted down and done later: techniques run compiled over partials that are objects.

No technique that a user's aggregate may have looks into a partial; it only says which two to
combine. So kernels slide the windows of all keys over numbers of places on a shelf, and note which
places make which; the user's functions are then called once a note, and for nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba.extending import overload

from weft.kernels.compiled import kernel
from weft.kernels.operations import Operation
from weft.kernels.parallel import read_only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from weft.aggregates.laws import Laws
    from weft.kernels.columns import Compiled

Places = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

COMBINE, INVERT = 0, 1
COUNT, STEP = 0, 1  # in `at`: the notes there are, and the most that one step of a technique makes
_LEAST_NOTES, _LEAST_USED = 1 << 12, 1 << 14


class Noting(NamedTuple):
    """The algebra of places: a combine takes the next free place and notes what comes there.

    Both operands of a note are real: place 0 is the identity, and combining it does nothing.
    """

    identity: int
    free: Places
    notes: Places  # [note, (verb, older, newer)]
    at: Int64s

    def combine(op, a: int, b: int) -> int:  # noqa: D102
        if a == op.identity:
            return b
        if b == op.identity:
            return a
        return noted(op, a, b, COMBINE)

    def inverse(op, a: int, b: int) -> int:  # noqa: D102
        return a if b == op.identity else noted(op, a, b, INVERT)

    def extend(op, a: int, b: int) -> int:  # noqa: D102
        return op.combine(a, b)

    def between(op, a: int, b: int) -> int:  # noqa: D102
        return op.inverse(a, b)


@kernel
def noted(op: Noting, a: int, b: int, verb: int) -> int:
    """Note what to do with two places; return where its result will be."""
    count = op.at[COUNT]
    op.notes[count, 0], op.notes[count, 1], op.notes[count, 2] = verb, a, b
    op.at[COUNT] = count + 1
    return int(op.free[count])


def room(op: Any) -> bool:
    """Tell whether a technique may take another step; only notes can run out of room."""
    notes = getattr(op, "notes", None)
    return notes is None or bool(op.at[COUNT] + op.at[STEP] <= len(notes))


@overload(room, strict=False)
def _room(op: Any) -> Compiled:
    if "notes" in op.fields:
        return lambda op: op.at[COUNT] + op.at[STEP] <= len(op.notes)
    return lambda op: True


def _nothing_kept() -> Iterable[Any]:
    return ()


@dataclass(slots=True, eq=False)
class Shelf:
    """Objects by place, and the notes of what to make of them.

    >>> from weft.aggregates.laws import Laws
    >>> shelf = Shelf(lambda a, b: a + b, None, "", Laws())
    >>> shelf.places(["x", "y"]).tolist(), shelf.at(np.array([2, 0])).tolist()
    ([1, 2], ['y', ''])
    """

    combine: Callable[[Any, Any], Any]
    invert: Callable[[Any, Any], Any] | None
    identity: Any
    laws: Laws
    kept: Callable[[], Iterable[Any]] = _nothing_kept  # states whose places are in use
    calls: Int64s = field(default_factory=lambda: np.zeros(1, np.int64))
    objects: list[Any] = field(default_factory=list)
    _unused: Places = field(default_factory=lambda: np.empty(0, np.int32))
    _taken: int = 0  # of the unused places
    _live: int = 0  # places in use when last looked
    _given: list[Places] = field(default_factory=list)
    _notes: Places = field(default_factory=lambda: np.empty((0, 3), np.int32))

    def __post_init__(self) -> None:
        """Put the identity at place 0."""
        self.objects.append(self.identity)

    @property
    def operation(self) -> Operation:
        """What states are made for: places, all of them the identity at first."""
        none = np.empty(0, np.int32)
        algebra = Noting(0, none, none.reshape(0, 3), np.zeros(2, np.int64))
        return Operation("custom", ("int32",), algebra, self.laws, algebra, ("int32",))

    def places(self, objects: Iterable[Any]) -> Places:
        """Put objects on the shelf; they stay at least until `release`."""
        listed = list(objects)
        self._grow(len(listed))
        places = self._unused[self._taken : self._taken + len(listed)].copy()
        self._taken += len(listed)
        for place, one in zip(places.tolist(), listed, strict=True):
            self.objects[place] = one
        self._given.append(places)
        return read_only(places)

    def at(self, places: npt.NDArray[np.integer]) -> npt.NDArray[np.object_]:
        """Return what is at places."""
        found = (self.objects[place] for place in places.tolist())
        return np.fromiter(found, object, places.size)

    def release(self) -> None:
        """Let go of objects that no state holds."""
        self._given = []

    def run(self, step: Callable[..., int], count: int, slots: int, *arguments: Any) -> None:
        """Let a kernel go through `count` items, and do what it notes whenever notes are full.

        `slots` is what the rings of a state hold: no step combines more than twice as often.
        """
        begin = 0
        while begin < count:
            op = self._noting(2 * slots + 64, arguments)
            begin = step(op, *arguments, begin)
            self._carry_out(op)

    def _noting(self, step: int, arguments: tuple[Any, ...]) -> Noting:
        most = step + _LEAST_NOTES
        if len(self._notes) < most:
            self._notes = np.empty((most, 3), np.int32)
        most = len(self._notes)
        if self._unused.size - self._taken < most:
            used = len(self.objects) - (self._unused.size - self._taken)
            if used > 2 * self._live + _LEAST_USED:
                self._sweep(arguments)
            self._grow(most)
        free = self._unused[self._taken : self._taken + most]
        return Noting(0, free, self._notes, np.array([0, step]))

    def _carry_out(self, op: Noting) -> None:
        count, objects, combine = int(op.at[COUNT]), self.objects, self.combine
        verbs, older, newer = (op.notes[:count, column].tolist() for column in range(3))
        targets = op.free[:count].tolist()
        self._taken += count
        self.calls[0] += count
        if any(verbs):
            assert self.invert is not None
            functions = (combine, self.invert)
            for verb, a, b, target in zip(verbs, older, newer, targets, strict=True):
                objects[target] = functions[verb](objects[a], objects[b])
        else:
            for a, b, target in zip(older, newer, targets, strict=True):
                objects[target] = combine(objects[a], objects[b])

    def _grow(self, count: int) -> None:
        """See to it that so many places are unused."""
        left = self._unused[self._taken :]
        if left.size < count:
            begin = len(self.objects)
            more = np.arange(begin, begin + max(count, begin // 2), dtype=np.int32)
            self.objects += [None] * more.size
            self._unused, self._taken = np.concatenate([left, more]), 0

    def _sweep(self, arguments: tuple[Any, ...]) -> None:
        """Find the places that nobody holds any more."""
        live = np.zeros(len(self.objects), np.bool_)
        live[0] = True
        for places in _places_in((*self.kept(), *self._given, *arguments)):
            live[places.ravel()] = True
        self._live = int(live.sum())
        self._unused, self._taken = np.flatnonzero(~live).astype(np.int32), 0
        for place in self._unused.tolist():
            self.objects[place] = None


def _places_in(members: Iterable[Any]) -> Iterator[Places]:
    """Find the columns of places among states, columns and numbers, by their type."""
    for member in members:
        if isinstance(member, tuple):
            yield from _places_in(member)
        elif isinstance(member, np.ndarray) and member.dtype == np.int32:
            yield member
