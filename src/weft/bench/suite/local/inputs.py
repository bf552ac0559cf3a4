"""Events for the entries on the local engine, and the answers to MIN over windows of them.

The answers come from numpy alone: least values of a grid of keys and grains of time, then of the
stretches of grains that are windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import weft

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt


SECOND_US = 1_000_000
EVENT_DISTANCE_US = 1_000  # a thousand events a second
RATE = SECOND_US / EVENT_DISTANCE_US
_SEED = 17

Shape = tuple[int, int]  # range and slide, in seconds
Answer = tuple[Any, Any, Any, Any]  # window (its place), key, start in microseconds, least value


@dataclass(frozen=True, slots=True, eq=False)
class WindowedEvents:
    """Events in order of time, and the windows that are asked of them.

    Time is there twice: as timestamps, and as integers for those who are faster with them.
    """

    table: pa.Table
    keys: int
    shapes: tuple[Shape, ...]

    @property
    def workload(self) -> weft.Workload:
        """MIN over all windows, by key."""
        query = weft.Query(
            "least",
            source="events",
            time="ts",
            keys=["k"],
            windows=labelled(self.shapes),
            aggs={"least": weft.agg.min("v")},
        )
        return weft.Workload([query])

    @property
    def plan(self) -> weft.Plan:
        """The plan that weft chooses, knowing the rate and the number of keys."""
        return weft.optimize(self.workload, engine="local", statistics=self._known)

    @property
    def session_plan(self) -> weft.Plan:
        """The plan that a session chooses."""
        return weft.optimize(self.workload, engine="local", statistics=self._known, session=True)

    @property
    def _known(self) -> weft.Statistics:
        return weft.Statistics(rate=RATE, keys=self.keys)


def labelled(shapes: Sequence[Shape]) -> Mapping[str, weft.Window]:
    """Name windows by their places."""
    return {
        str(place): weft.hopping(range_s * SECOND_US, slide_s * SECOND_US)
        for place, (range_s, slide_s) in enumerate(shapes)
    }


def draw_events(events: int, keys: int) -> pa.Table:
    """Draw events of random keys, a thousand a second, in order of time."""
    rng = np.random.default_rng(_SEED)
    times = np.arange(events, dtype=np.int64) * EVENT_DISTANCE_US
    columns: dict[str, Any] = {
        "ts": pa.array(times).cast(pa.timestamp("us")),
        "us": times,
        "k": rng.integers(0, keys, events).astype(np.int32),
        "v": rng.random(events),
    }
    return pa.table(columns)


def tumbling_events(
    events: int, keys: int, windows: int, first_s: int, step_s: int
) -> WindowedEvents:
    """Ask for tumbling windows of evenly growing range."""
    shapes = tuple((first_s + i * step_s,) * 2 for i in range(windows))
    return WindowedEvents(draw_events(events, keys), keys, shapes)


def hopping_events(events: int, keys: int, range_s: int, slide_s: int) -> WindowedEvents:
    """Ask for one hopping window."""
    return WindowedEvents(draw_events(events, keys), keys, ((range_s, slide_s),))


def random_hops(count: int) -> tuple[Shape, ...]:
    """Draw different windows: slides of 10 s to 10 min, ranges of 1 to 10 slides.

    >>> len(set(random_hops(100))), all(r % s == 0 for r, s in random_hops(100))
    (100, True)
    """
    rng = np.random.default_rng(_SEED)
    drawn: dict[Shape, None] = {}
    while len(drawn) < count:
        slide_s = int(rng.integers(1, 61)) * 10
        drawn[slide_s * int(rng.integers(1, 11)), slide_s] = None
    return tuple(drawn)


def random_hopping_events(events: int, keys: int, windows: int) -> WindowedEvents:
    """Ask for many random hopping windows."""
    return WindowedEvents(draw_events(events, keys), keys, random_hops(windows))


def least_by_numpy(inputs: WindowedEvents) -> Answer:
    """Answer MIN over every window without any engine."""
    times, keys, values = (inputs.table.column(c).to_numpy() for c in ("us", "k", "v"))
    grain_us = int(np.gcd.reduce(np.array(inputs.shapes).ravel())) * SECOND_US
    grains = int(times[-1]) // grain_us + 1
    grid = np.full((inputs.keys, grains), np.inf)
    places = keys.astype(np.int64) * grains + times // grain_us
    order = np.argsort(places, kind="stable")
    first = np.flatnonzero(np.diff(places[order], prepend=-1))
    grid.ravel()[places[order][first]] = np.minimum.reduceat(values[order], first)
    found = [
        _least_of_shape(grid, place, shape, grain_us) for place, shape in enumerate(inputs.shapes)
    ]
    columns = [np.concatenate(column) for column in zip(*found, strict=True)]
    return columns[0], columns[1], columns[2], columns[3]


def _least_of_shape(
    grid: npt.NDArray[np.float64], place: int, shape: Shape, grain_us: int
) -> tuple[Any, ...]:
    """Take the least of each stretch of grains that is an instance, by key and start."""
    wide, apart = (seconds * SECOND_US // grain_us for seconds in shape)
    keys, grains = grid.shape
    begins = np.arange(-(-(1 - wide) // apart), (grains - 1) // apart + 1) * apart
    padded = np.full((keys, grains + 2 * wide), np.inf)
    padded[:, wide : wide + grains] = grid
    least = np.full((keys, begins.size), np.inf)
    for step in range(wide):
        np.minimum(least, padded[:, begins + wide + step], out=least)
    some = np.isfinite(least)
    held, instances = np.nonzero(some)
    return np.full(held.size, place), held, begins[instances] * grain_us, least[some]


def same_answer(expected: Answer, answer: Any) -> str:
    """Compare the rows of a contender, in any order, with the expected ones."""
    from weft.bench.suite.kernels.oracles import identical

    columns = answer_columns(answer)
    order = np.lexsort((columns[2], columns[1], columns[0]))
    told = ("window", "key", "start", "least")
    for name, wanted, found in zip(told, expected, columns, strict=True):
        if wanted.shape == found.shape:
            found = found[order]
        if difference := identical(wanted, found):
            return f"{name} {difference}"
    return ""


def answer_columns(answer: Any) -> Answer:
    """Read a table of any library: window, key, start and least value."""
    from weft.frames import to_arrow

    table = to_arrow(answer)
    names = ("window", "k", "window_start", "least")
    window, key, start, least = (table[name].combine_chunks() for name in names)
    started = start.cast(pa.int64()) if pa.types.is_timestamp(start.type) else start
    places = window.dictionary_encode()
    numbers = np.array([int(str(label)) for label in places.dictionary.to_pylist()], np.int64)
    return (
        numbers[places.indices.to_numpy()] if numbers.size else numbers,
        key.to_numpy().astype(np.int64),
        started.to_numpy(),
        least.to_numpy(),
    )
