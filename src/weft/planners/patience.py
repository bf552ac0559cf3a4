"""How long a search may take: less than half of what it could save.

Planning is part of a run. Hundreds of windows over a few events are computed in less time than the
best trees for them are found, so that a plan which is less good, and there at once, ends earlier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from weft.plan import Scope
    from weft.window import PeriodicWindow

# What searches of 10 to 1,000 windows take for each of them, if it is tumbling and if it overlaps;
# a middle of many shapes. A clock in its place would make plans differ from run to run.
_MS_PER_WINDOW = {"factor": (1.5, 7.0), "weave": (4.0, 4.0), "triweave": (4.0, 4.0)}
_NO_SEARCH = (0.0, 0.0)
_UNNOTICED_MS = 25.0  # beside what else planning takes
_WORTH = 0.5  # no plan saves all that another spends on slices and windows


def quickest_first(names: Iterable[str]) -> list[str]:
    """Order planners so that each search can be weighed against plans that took less to find.

    >>> quickest_first(["factor", "weave", "slice"])
    ['slice', 'factor', 'weave']
    """
    return sorted(names, key=lambda name: _MS_PER_WINDOW.get(name, _NO_SEARCH))


def search_ms(name: str, windows: Sequence[PeriodicWindow]) -> float:
    """Return about how long a planner searches.

    >>> from weft.window import PeriodicWindow
    >>> search_ms("factor", [PeriodicWindow(60, 60), PeriodicWindow(60, 10)])
    8.5
    """
    tumbling_ms, overlapping_ms = _MS_PER_WINDOW.get(name, _NO_SEARCH)
    tumbling = sum(window.is_tumbling for window in windows)
    return tumbling_ms * tumbling + overlapping_ms * (len(windows) - tumbling)


def too_long(name: str, scope: Scope, at_stake_ms: float) -> str:
    """Say why a planner is not asked: its search would take too much of what it could save.

    At stake is what the best plan so far spends beyond what every plan does.
    """
    asked = search_ms(name, scope.shareable)
    if asked <= max(_UNNOTICED_MS, _WORTH * at_stake_ms):
        return ""
    return (
        f"its search would take about {asked:,.0f} ms, over half of the {at_stake_ms:,.0f} ms "
        "that it could save at most"
    )
