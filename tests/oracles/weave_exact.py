"""The cheapest trees there are, by trying all partitions."""

from __future__ import annotations

from weft.planners.weave.search import WeavePlan, _Problem, exact_partition


def weave_exact(windows, rate, technique, mode="paper", kind="weave") -> WeavePlan:
    """Partition windows into the cheapest trees; windows with equal edges stay together.

    >>> weave_exact([(4, 4), (6, 6), (9, 9)], rate=1, technique="flat_fit").trees
    ((0,), (1, 2))
    """
    problem = _Problem.of(windows, rate, technique, mode, kind)
    return problem.best_plan(exact_partition(problem.trees))
