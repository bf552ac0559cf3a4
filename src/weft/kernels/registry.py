"""Every technique by name, bound to an operation: the one door to the kernels.

A `Kernel` checks the laws once, when it is made, and after that only passes arrays on.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from operator import index
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from weft.errors import DataError, UnsupportedError
from weft.kernels.techniques import fiba, flat_fat, prefix_ring, slick_deque_inv
from weft.kernels.techniques.snapshot import from_bytes, to_bytes
from weft.techniques import INCREMENTAL, TECHNIQUES, Technique

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weft.kernels.columns import Columns, Partial
    from weft.kernels.operations import Operation

State: TypeAlias = Any  # the named tuple of arrays of one technique

# One technique, one module of the same name.
IMPLEMENTATIONS: dict[str, Any] = {
    name: import_module(f"weft.kernels.techniques.{name}") for name in INCREMENTAL
}
# What is compiled for any technique is told apart by the names of its types, and by them alone.
for _name, _module in IMPLEMENTATIONS.items():
    _module.State.__name__, _module.State.__module__ = f"{_name}_state", _module.__name__


def technique(name: str, operation: Operation) -> Kernel:
    """Bind a technique to an operation, or refuse when the operation lacks a law it needs.

    >>> from weft.kernels.operations import MAX_FLOAT64
    >>> technique("subtract_on_evict", MAX_FLOAT64)
    Traceback (most recent call last):
    weft.errors.UnsupportedError: technique subtract_on_evict cannot run max_float64: it needs
    an invertible combine
    hint: use one of naive, flat_fat, b_int, flat_fit, two_stacks, two_stacks_lite, daba,
    daba_lite, slick_deque, fiba
    """
    if name not in IMPLEMENTATIONS:
        raise UnsupportedError(
            f"there is no technique {name!r}", hint=f"use one of {', '.join(IMPLEMENTATIONS)}"
        )
    TECHNIQUES[name].check(operation.laws, operation.name)
    return Kernel(TECHNIQUES[name], operation)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A technique that runs an operation; all that changes is in the states it is given.

    `insert` and `evict` return the state to go on with: the same one, unless it had to grow.

    >>> from weft.kernels.operations import SUM_INT64
    >>> sums = technique("subtract_on_evict", SUM_INT64)
    >>> sums.slide([6, 1, 5, 2, 8, 3, 7, 4], n=4)
    array([ 6,  7, 12, 14, 16, 18, 20, 22])
    >>> state = sums.new(capacity=4)
    >>> for value in (6, 1, 5):
    ...     state = sums.insert(state, value)
    >>> int(sums.query(state)), int(sums.query(sums.evict(state)))
    (12, 6)
    """

    technique: Technique
    operation: Operation

    @property
    def _module(self) -> Any:
        return IMPLEMENTATIONS[self.technique.name]

    @property
    def algebra(self) -> Any:
        """What the compiled functions take as the operation."""
        if self._module is prefix_ring:
            return self.operation.prefix_algebra
        return self.operation.algebra

    def new(self, capacity: int, keys: int = 1, counts: Sequence[int] = ()) -> State:
        """Allocate empty windows for up to `capacity` partials each.

        `counts` are the ranges for `slide_ranges`; only `slick_deque_inv` must know them early.
        """
        if capacity < 1 or keys < 1:
            raise DataError(
                f"a window for {capacity} partials and {keys} keys cannot be made",
                hint="both must be at least 1",
            )
        if self._module is slick_deque_inv:
            descending = tuple(sorted(counts, reverse=True))
            return slick_deque_inv.new(self.operation, capacity, keys, descending)
        return self._module.new(self.operation, capacity, keys)

    def size(self, state: State, key: int = 0) -> int:
        """Count the partials in the window of `key`."""
        _check_key(state, key)
        return int(self._module.size(state, key))

    def insert(self, state: State, value: Partial, key: int = 0) -> State:
        """Add the newest partial; trees grow, rings refuse when they are full."""
        state = self._with_room(state, key)
        with self._refusals(state, key):
            self._module.insert(self.algebra, state, key, self._partial(value))
        return state

    def insert_at(self, state: State, time: int, value: Partial, key: int = 0) -> State:
        """Add a partial anywhere in time; only `fiba` takes events out of order."""
        self._require("insert_at", "inserts out of order")
        state = self._with_room(state, key)
        with self._refusals(state, key):
            fiba.insert_at(self.algebra, state, key, time, self._partial(value))
        return state

    def evict(self, state: State, key: int = 0) -> State:
        """Remove the oldest partial."""
        self._require_held(state, 1, key)
        with self._refusals(state, key):
            self._module.evict(self.algebra, state, key)
        return self._shrunk(state)

    def bulk_evict(self, state: State, count: int, key: int = 0) -> State:
        """Remove the oldest `count` partials, at once where the technique can."""
        self._require_held(state, count, key)
        with self._refusals(state, key):
            if hasattr(self._module, "bulk_evict"):
                self._module.bulk_evict(self.algebra, state, key, count)
            else:
                for _ in range(count):
                    self._module.evict(self.algebra, state, key)
        return self._shrunk(state)

    def evict_before(self, state: State, time: int, key: int = 0) -> State:
        """Remove every partial older than `time`; only `fiba` knows times."""
        self._require("evict_before", "evicts by time")
        with self._refusals(state, key):
            fiba.evict_before(self.algebra, state, key, time)
        return state

    def query(self, state: State, key: int = 0) -> Partial:
        """Combine the whole window; the identity when it is empty."""
        with self._refusals(state, key):
            return self._module.query(self.algebra, state, key)

    def query_last(self, state: State, count: int, key: int = 0) -> Partial:
        """Combine the newest `count` partials, or all when there are fewer."""
        self._require("query_last", "answers ranges within the window")
        if count < 0:
            raise DataError(f"there is no range of {count} partials", hint="use 0 or more")
        with self._refusals(state, key):
            return self._module.query_last(self.algebra, state, key, count)

    def query_range(self, state: State, first: int, stop: int, key: int = 0) -> Partial:
        """Combine the partials `first` up to `stop`, counted from the oldest; `fiba`: times."""
        self._require("query_range", "answers any range within the window")
        if self._module is not fiba and not 0 <= first <= stop <= self.size(state, key):
            raise DataError(
                f"the window holds {self.size(state, key)} partials, not {first} up to {stop}",
                hint="count from the oldest, which is 0",
            )
        with self._refusals(state, key):
            return self._module.query_range(self.algebra, state, key, first, stop)

    def slide(
        self, values: Any, n: int, state: State = None, key: int = 0, out: Columns = None
    ) -> Columns:
        """Answer, for each value, the combine of the last n; fewer while the window fills.

        With a `state` the stream goes on from where the last call left it. With `out`, columns
        like the values, nothing is allocated: for large batches fresh memory costs as much as
        the kernel.
        """
        given, state = self.operation.as_columns(values), self._state_for(n, state)
        if out is None:
            out = _like(given)
        elif _layout(out) != _layout(given):
            raise DataError(
                f"{self.operation.name} cannot answer into these columns",
                hint="pass arrays of the same types and length as the values",
            )
        with self._refusals(state, key):
            self._module.slide(self.algebra, state, key, given, n, out)
        return out

    def slide_ranges(
        self, values: Any, counts: Sequence[int], state: State = None, key: int = 0
    ) -> Columns:
        """Answer several ranges after each value; row i, column q is the last `counts[q]`."""
        self._require("slide_ranges", "answers several ranges")
        spans = np.asarray(counts, np.int64)
        if spans.size == 0 or spans.min() < 1:
            raise DataError("every range must span at least 1 partial", hint="drop the empty ones")
        order = np.argsort(-spans, kind="stable")
        if state is None:
            state = self.new(int(spans.max()), counts=counts)
        given, state = self.operation.as_columns(values), self._state_for(int(spans.max()), state)
        out = _like(given, len(spans))
        with self._refusals(state, key):
            self._module.slide_ranges(self.algebra, state, key, given, spans[order], out)
        return _by_range(out, np.argsort(order, kind="stable"))

    def slide_keyed(self, keys: Any, values: Any, n: int, state: State) -> Columns:
        """Slide the window of `keys[i]` by `values[i]`; all keys live in the arrays of `state`."""
        self._require("slide_keyed", "slides many keys at once")
        codes, given = np.ascontiguousarray(keys, np.int64), self.operation.as_columns(values)
        state = self._state_for(n, state)
        if codes.size and not 0 <= codes.min() <= codes.max() < len(state.at):
            raise DataError(
                f"key codes go from {codes.min()} to {codes.max()}, the windows are for "
                f"{len(state.at)} keys",
                hint="number the keys from 0",
            )
        out = _like(given)
        with self._refusals(state, 0):
            self._module.slide_keyed(self.algebra, state, codes, given, n, out)
        return out

    def snapshot(self, state: State) -> bytes:
        """Write the windows of all keys to bytes."""
        return to_bytes(state, self.technique.name, self.operation.name)

    def restore(self, snapshot: bytes) -> State:
        """Read windows that `snapshot` wrote for the same technique and operation."""
        return from_bytes(snapshot, self.new(1), self.technique.name, self.operation.name)

    def _partial(self, value: Partial) -> Partial:
        # numba compiles anew for each type: an int given to a float operation must not reach it.
        cast = [index if dtype == "int64" else float for dtype in self.operation.dtypes]
        if len(cast) == 1:
            return cast[0](value)
        return tuple(to(field) for to, field in zip(cast, value, strict=True))

    def _state_for(self, n: int, state: State) -> State:
        if n < 1:
            raise DataError(f"a window of {n} partials cannot slide", hint="use at least 1")
        if state is None:
            return self.new(n)
        if n > self._module.capacity(state):
            raise DataError(
                f"a window of {n} partials does not fit: the capacity is "
                f"{self._module.capacity(state)}",
                hint="make the window with a larger capacity",
            )
        return state

    def _with_room(self, state: State, key: int) -> State:
        capacity = self._module.capacity(state)
        if self.size(state, key) < capacity:
            return state
        if hasattr(self._module, "resized"):
            return self._module.resized(self.operation, state, 2 * capacity)
        raise DataError(
            f"the window is full: it holds {capacity} partials",
            hint="make it with a larger capacity, or use flat_fat or fiba, which grow",
        )

    def _shrunk(self, state: State) -> State:
        if self._module is not flat_fat:
            return state
        # A quarter, not a half: a window that breathes around one size must not copy each time.
        capacity = flat_fat.capacity(state)
        fullest = int((state.at[:, flat_fat.END] - state.at[:, flat_fat.FRONT]).max())
        if capacity == 1 or 4 * fullest > capacity:
            return state
        return flat_fat.resized(self.operation, state, capacity // 2)

    def _require_held(self, state: State, count: int, key: int) -> None:
        held = self.size(state, key)
        if not 0 <= count <= held:
            raise DataError(
                f"cannot evict {count} partials: the window holds {held}",
                hint="evict what was inserted, once",
            )

    def _require(self, member: str, ability: str) -> None:
        if not hasattr(self._module, member):
            able = [name for name, module in IMPLEMENTATIONS.items() if hasattr(module, member)]
            raise UnsupportedError(
                f"technique {self.technique.name} never {ability}",
                hint=f"use one of {', '.join(able)}",
            )

    @contextmanager
    def _refusals(self, state: State, key: int) -> Iterator[None]:
        _check_key(state, key)
        try:
            # With numba switched off numpy would warn about what the operation itself refuses.
            with np.errstate(over="ignore"):
                yield
        except OverflowError:
            raise DataError(
                f"{self.operation.name} overflows: a sum of partials leaves 64 bits",
                hint="cast the column to float64",
            ) from None
        except KeyError:
            raise DataError(
                "the window was not made for this range", hint="give it to new() in `counts`"
            ) from None


def _check_key(state: State, key: int) -> None:
    # Kernels do not check indices: a wrong key would write into foreign memory.
    if not 0 <= key < len(state.at):
        raise DataError(
            f"there is no key {key}: the windows are for {len(state.at)} keys",
            hint="number the keys from 0",
        )


def _layout(columns: Columns) -> Any:
    if isinstance(columns, tuple):
        return tuple(map(_layout, columns))
    return columns.dtype, columns.shape, columns.flags.c_contiguous


def _like(columns: Columns, width: int = 1) -> Columns:
    if isinstance(columns, tuple):
        return tuple(_like(column, width) for column in columns)
    return np.empty(len(columns) * width, columns.dtype)


def _by_range(columns: Columns, order: Any) -> Columns:
    if isinstance(columns, tuple):
        return tuple(_by_range(column, order) for column in columns)
    return columns.reshape(-1, len(order))[:, order]
