"""Sessions that are driven push by push, technique by technique, and what each push took."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft import agg
from weft.planners.portfolio import optimize
from weft.query import Query
from weft.techniques import INCREMENTAL, TECHNIQUES
from weft.window import hopping

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from weft.plan import Plan

SECOND_US = 1_000_000
_SELECTIVE, _INVERTIBLE = "highest", "total"


class Load(NamedTuple):
    """Keys with one event a second each, and hopping windows of so many seconds over them."""

    keys: int
    ranges: tuple[int, ...]

    def events(self, from_s: int, seconds: int) -> pa.Table:
        """Return the events of some seconds; the same ones whenever they are asked for."""
        import pyarrow as pa

        times = np.repeat(np.arange(from_s, from_s + seconds), self.keys)
        keys = np.tile(np.arange(self.keys), seconds)
        values = (times * 7919 + keys * 104_729) % 10_007
        columns = {"ts": times * SECOND_US, "k": keys, "n": values}
        return pa.table({name: pa.array(column) for name, column in columns.items()})


class Pushed(NamedTuple):
    """What pushes answered, and how long each of them took."""

    checksum: int
    rows: int
    seconds: npt.NDArray[np.float64]


def asked_of(technique: str) -> str:
    """Name the aggregate that a technique is timed with: a sum where it needs an inverse."""
    return _INVERTIBLE if "invertible" in TECHNIQUES[technique].needs else _SELECTIVE


def plan_of(technique: str, load: Load) -> Plan:
    """Plan windows over slices of a second, kept by a technique."""
    name = asked_of(technique)
    aggregate = agg.sum("n") if name == _INVERTIBLE else agg.max("n")
    windows = {f"{r}s": hopping(r * SECOND_US, SECOND_US) for r in load.ranges}
    query = Query("q", source="s", time="ts", keys=["k"], windows=windows, aggs={name: aggregate})
    exact = {"s": frozenset({"n"})}
    return optimize(query, "slice", "local", exact_columns=exact, technique=technique, session=True)


def pushed(
    technique: str, load: Load, *, pushes: int, seconds_each: int, passes: int = 1
) -> Pushed:
    """Fill the windows of a session, then push; of several passes each push's best time counts."""
    best: npt.NDArray[np.float64] | None = None
    found: set[tuple[int, int]] = set()
    for _ in range(passes):
        times, answer = _pass(technique, load, pushes, seconds_each)
        best = times if best is None else np.minimum(best, times)
        found.add(answer)
    (answer,) = found
    assert best is not None
    return Pushed(*answer, best)


def _pass(
    technique: str, load: Load, pushes: int, seconds_each: int
) -> tuple[npt.NDArray[np.float64], tuple[int, int]]:
    from weft.sessions.local_session import LocalSession

    session = LocalSession(plan_of(technique, load))
    longest = max(load.ranges)
    warm = 4  # pushes of the same size as those that count, which also compile what is missing
    session.push("s", load.events(0, longest))
    tables = [load.events(longest + at * seconds_each, seconds_each) for at in range(warm + pushes)]
    times: list[float] = []
    checksum, rows = 0, 0
    for at, table in enumerate(tables):
        start = perf_counter()
        closed = session.push("s", table)
        taken = perf_counter() - start
        if at >= warm:
            times.append(taken)
            values = closed[asked_of(technique)].to_numpy()
            checksum, rows = checksum + int(values.sum()), rows + len(values)
    return np.array(times), (checksum, rows)


def compared(found: dict[str, Pushed]) -> list[str]:
    """Say which techniques gave other rows than those that aggregate the same."""
    first: dict[str, tuple[str, Pushed]] = {}
    wrong = []
    for technique, got in found.items():
        other, wanted = first.setdefault(asked_of(technique), (technique, got))
        if (got.checksum, got.rows) != (wanted.checksum, wanted.rows):
            wrong.append(f"{technique} gives {got[:2]}, and {other} {wanted[:2]}")
    return wrong


def running_at(slices: int, most: int) -> Sequence[str]:
    """List the techniques to time; one by one takes too long over many slices."""
    return [name for name in INCREMENTAL if name != "naive" or slices <= most]


def milliseconds(seconds: Any) -> float:
    """Convert, for cells."""
    return float(seconds) * 1e3
