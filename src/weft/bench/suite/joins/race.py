"""Which placement is the fastest: all go through the same stretches of streams, in turn.

A machine that is shared is faster at one moment than at the next, by more than close plans differ.
So a plan's time counts in comparison with the others' on the same stretch, which they take right
after each other, and there are more stretches until the fastest has beaten each of the others often
enough, or time is up.
"""

from __future__ import annotations

from math import ceil, sqrt
from statistics import fmean, median
from time import process_time
from typing import TYPE_CHECKING, Any

from weft.bench.suite.joins.runs import BATCH, filled, streams_of
from weft.cost.joins.tuples import placement_name, placements

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from weft.cost.joins.tuples import Method, SideLoad

_ALL_TAKE = 2  # stretches, before plans that are far behind drop out
_FAR_BEHIND = 1.5  # times as long as the fastest
_SIGMAS = 2.5  # by which the stretches won exceed half of them, before the fastest is certain
Times = dict[str, list[float]]  # plan -> seconds of its stretches, from the first one on


def raced(
    loads: tuple[SideLoad, ...], method: Method, tuples: int, most: int, budget: float
) -> tuple[dict[str, float], bool]:
    """Return the seconds of every placement for so many tuples, and whether all answers agree.

    There are at most so many stretches, and none is begun once a budget of processor seconds is
    used up. What is timed is tuples that arrive and expire: to read batches and to number their
    keys is the same for every placement, and is left out. The stretch before the first warms up.
    """
    streams = streams_of(loads, tuples * (most + 1))
    joins = {placement_name(e): filled(streams, e, method) for e in placements(len(loads))}
    per_stretch = ceil(tuples / BATCH)
    batches = streams.batches(ceil(tuples / per_stretch))
    times: Times = {plan: [] for plan in joins}
    racing, start, agree = [*joins], process_time(), True
    for turn in range(most + 1):
        stretch = batches[turn * per_stretch : (turn + 1) * per_stretch]
        first = turn % len(racing)
        for plan in (*racing[first:], *racing[:first]):
            taken = _taken(joins[plan], stretch)
            times[plan] += [taken] if turn else []
        if turn == min(_ALL_TAKE, most):
            agree = _agree([join.result() for join in joins.values()])
        if turn >= _ALL_TAKE:
            racing = _hopeful(times)
            if decided(times, racing) or process_time() - start > budget:
                break
    return typical(times), agree and _agree([joins[plan].result() for plan in racing])


def _taken(join: Any, stretch: Sequence[Mapping[str, pa.Table]]) -> float:
    taken = 0.0
    for batch in stretch:
        admitted = join.admit(batch)
        start = process_time()
        join.settle(admitted)
        taken += process_time() - start
    return taken


def _agree(answers: Sequence[pa.Table]) -> bool:
    return all(answer == answers[0] for answer in answers)


def typical(times: Times) -> dict[str, float]:
    """Return a typical time for each plan: how it compares on a stretch, times the usual stretch.

    Plan b took half as long as a both times, though the machine was slower the second time:

    >>> typical({"a": [4.0, 12.0], "b": [2.0, 6.0]})
    {'a': 8.0, 'b': 4.0}
    """
    turns = max(map(len, times.values()))
    full = [own for own in times.values() if len(own) == turns]
    usual = [fmean(stretch) for stretch in zip(*full, strict=True)]
    # Plans that dropped out have been on the first stretches only.
    return {
        plan: median(t / u for t, u in zip(own, usual, strict=False)) * median(usual)
        for plan, own in times.items()
    }


def _hopeful(times: Times) -> list[str]:
    turns = max(map(len, times.values()))
    seconds = typical(times)
    least = min(seconds.values())
    return [
        plan
        for plan, own in times.items()
        if len(own) == turns and seconds[plan] <= least * _FAR_BEHIND
    ]


def decided(times: Times, racing: Sequence[str]) -> bool:
    """Tell whether the fastest plan was so on far more stretches than chance would give it.

    >>> decided({"a": [1.0] * 7, "b": [1.1] * 7}, ["a", "b"])
    True
    >>> decided({"a": [1.0] * 7, "b": [1.1] * 6 + [0.9]}, ["a", "b"])
    False
    """
    seconds = typical({plan: times[plan] for plan in racing})
    fastest = min(seconds, key=lambda plan: seconds[plan])
    for plan in racing:
        won = sum(mine < other for mine, other in zip(times[fastest], times[plan], strict=True))
        turns = len(times[plan])
        if plan != fastest and won < turns / 2 + _SIGMAS * sqrt(turns) / 2:
            return False
    return True
