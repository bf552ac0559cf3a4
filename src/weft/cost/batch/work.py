"""Work: how often each operation is done, and what that takes at an engine's prices."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

from weft.cost.prices import ONCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.cost.prices import Coefficients

# (whose price, operation): how often.
Work = dict[tuple[str, str], float]


def work(engine: str, **counts: float) -> Work:
    """Count operations at the prices of an engine.

    >>> work("spark", run=1, lift=200.0)
    {('spark', 'run'): 1, ('spark', 'lift'): 200.0}
    """
    return {(engine, operation): count for operation, count in counts.items() if count}


def total(*works: Work) -> Work:
    """Add up work.

    >>> total(work("local", lift=2.0), work("local", lift=1.0, run=1.0))
    {('local', 'lift'): 3.0, ('local', 'run'): 1.0}
    """
    found: Work = {}
    for one in works:
        for operation, count in one.items():
            found[operation] = found.get(operation, 0.0) + count
    return found


def times(done: Work, factor: float) -> Work:
    """Return work that is done so often.

    >>> times(work("local", lift=2.0), 3.0)
    {('local', 'lift'): 6.0}
    """
    return {operation: count * factor for operation, count in done.items()}


def doublings(groups: float, cached: float) -> float:
    """How often groups have doubled beyond those that a cache holds: finding one takes longer.

    >>> doublings(400.0, 100.0), doublings(50.0, 100.0)
    (2.0, 0.0)
    """
    return max(log2(max(groups, 1.0) / cached), 0.0)


def ms_of(done: Work, prices: Callable[[str], Coefficients], cores: int | None = None) -> float:
    """Price work in milliseconds; rows are shared by the cores, what is paid once is not.

    >>> from weft.cost.prices import Coefficients
    >>> paid = Coefficients("local", "by hand", run_ms=2.0, lift_ns=10.0, cores=2)
    >>> done = work("local", run=1.0, lift=1e6)
    >>> ms_of(done, lambda engine: paid), ms_of(done, lambda engine: paid, cores=4)
    (12.0, 7.0)
    """
    spent_ns = 0.0
    for (engine, operation), count in done.items():
        paid = prices(engine)
        faster = 1.0 if cores is None or operation in ONCE else paid.cores / cores
        spent_ns += count * paid.ns(operation) * faster
    return spent_ns / 1e6
