"""Which filters share: queries of one source and one set of keys, whatever events they keep.

Put together, they have one scan, one set of slices and wider rows; apart, each reads the source by
itself and has rows for its own events alone. So filters that keep much are put together and those
that keep little stay apart, and where the line is drawn is a question of cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from weft.cost.selectivity import kept_fraction
from weft.plan import Scan
from weft.plan.nodes import topological
from weft.plan.scope import mixed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from weft.plan import Emit, Node, Scope
    from weft.statistics import Statistics

Group = tuple["Scope", ...]
Filters = Literal["together", "apart"]
_MOST_NAMES = 4
_MOST_LINES = 8  # places where a line is tried, however many filters there are
_MOST_TRIED = 8  # filters of which neighbours are put together in every way


def families(scopes: Sequence[Scope]) -> list[Group]:
    """Gather the scopes that may share whatever they keep; the others stand alone, in order."""
    found: dict[object, list[Scope]] = {}
    for scope in scopes:
        scan = scope.scan
        alike = (scan.source, scan.time, scan.watermark_us, scope.keys)
        found.setdefault(alike if scope.may_be_mixed else scope.demands[0], []).append(scope)
    return [tuple(family) for family in found.values()]


def grouped(
    family: Group,
    everyone: Sequence[Scope],
    statistics: Statistics,
    cost: Callable[[Scope], float],
) -> list[Scope]:
    """Return the scopes to plan: of those that may share, the cheapest way to put them together.

    Filters in the order of what they keep, of which neighbours are put together: of a few in every
    way, of more the first ones together, and the rest among themselves.
    """
    if len(family) == 1:
        return list(family)
    kept = {scope.scan.where: kept_fraction(scope.scan.where, statistics) for scope in family}
    ordered = sorted(family, key=lambda scope: -kept[scope.scan.where])
    found: list[Scope] = []
    if len(ordered) <= _MOST_TRIED:
        found = _cheapest_groups(tuple(ordered), everyone, cost)
        ordered = []
    while ordered:
        together, ordered = _first_group(tuple(ordered), everyone, cost)
        found.append(together)
    place = {scope: at for at, scope in enumerate(family)}
    return sorted(found, key=lambda one: min(at for s, at in place.items() if _holds(one, s)))


def sentences(
    apart: Sequence[Scope],
    shared: Sequence[Scope],
    cost: Callable[[Scope], float],
    emits: Sequence[Emit],
    regrouped: Collection[str] = (),
) -> tuple[str, ...]:
    """Say which queries of one source share although they differ, and why others do not.

    What they share is told from the plan's `emits`. Of sources whose slices are `regrouped` it is
    said elsewhere which keys share.
    """
    found: list[str] = []
    for family in families(apart):
        groups = [one for one in shared if any(_holds(one, scope) for scope in family)]
        if len(family) == 1:
            continue
        found += [_together(group, emits) for group in groups if len(_filters(group)) > 1]
        if len(groups) > 1:
            ratio = cost(mixed(family, apart)) / max(sum(map(cost, groups)), 1e-300)
            names = "; ".join(f"{_names(g)} {_told(g.scan.where)}" for g in groups)
            found.append(f"read apart: {names}: one read for all would cost {ratio:.3g}x")
    others = [scope for scope in apart if scope.scan.source not in regrouped]
    return (*found, *_obstacles(apart), *_keys(others))


def _together(group: Scope, emits: Sequence[Emit]) -> str:
    shared = f"one read and its slices{_by(group)}" if _meet(group, emits) else "one read"
    return (
        f"{_names(group)} share {shared}: their {len(_filters(group))} filters are conditions on "
        "partials"
    )


def _meet(group: Scope, emits: Sequence[Emit]) -> bool:
    """Tell whether windows under different filters are made of the same partials."""
    own = {(demand.query, demand.label) for demand in group.demands}
    readers: dict[Node, set[object]] = {}
    for emit in emits:
        if (emit.query, emit.label) in own:
            for node in topological((emit,)):
                readers.setdefault(node, set()).add(emit.exists)
    return any(len(found) > 1 for node, found in readers.items() if not isinstance(node, Scan))


def _obstacles(apart: Sequence[Scope]) -> Iterator[str]:
    """Say why queries whose source and keys others have too can share with no other filter."""
    for scope in apart:
        others = [o for o in apart if o is not scope and _alike(o) == _alike(scope)]
        if not scope.may_be_mixed and others:
            yield (
                f"{_names(scope)} {_told(scope.scan.where)} share with no other filter: "
                f"{scope.obstacle}"
            )


def _keys(apart: Sequence[Scope]) -> Iterator[str]:
    sources: dict[object, dict[object, str]] = {}
    for scope in apart:
        by = _by(scope).strip() or "without keys"
        sources.setdefault((scope.scan.source, scope.scan.time), {})[scope.keys] = by
    for told in sources.values():
        if len(told) > 1:
            yield f"slices {', '.join(told.values())} are not shared: their keys differ"


def _alike(scope: Scope) -> tuple[object, ...]:
    return (scope.scan.source, scope.scan.time, scope.keys)


def _filters(group: Scope) -> set[object]:
    return {demand.exists for demand in group.demands}


def _names(group: Scope) -> str:
    names = list(dict.fromkeys(demand.query for demand in group.demands))
    return ", ".join(
        names if len(names) <= _MOST_NAMES else [*names[:2], f"+{len(names) - 2} more"]
    )


def _told(where: str | None) -> str:
    return "(all events)" if where is None else f"({where})"


def _by(group: Scope) -> str:
    return f" by {', '.join(name for name, _ in group.keys)}" if group.keys else ""


def _cheapest_groups(
    ordered: Group, everyone: Sequence[Scope], cost: Callable[[Scope], float]
) -> list[Scope]:
    """Cut filters into runs of neighbours that cost the least, from the last one backwards."""
    best: list[tuple[float, list[Scope]]] = [(0.0, [])]  # of the filters from some place on
    for first in reversed(range(len(ordered))):
        ways = []
        for end in range(len(ordered), first, -1):  # of equal costs, more together
            together = mixed(ordered[first:end], everyone)
            rest = best[len(ordered) - end]
            ways.append((cost(together) + rest[0], [together, *rest[1]]))
        best.append(min(ways, key=lambda way: way[0]))
    return best[-1][1]


def _first_group(
    ordered: Group, everyone: Sequence[Scope], cost: Callable[[Scope], float]
) -> tuple[Scope, list[Scope]]:
    """Draw the line where those before it together and the others cost the least.

    The others are counted as each by itself, or all together; how they share is asked once more.
    """
    alone = [cost(scope) for scope in ordered]
    count = len(ordered)
    lines = {max(1, round(count * at / _MOST_LINES)) for at in range(1, _MOST_LINES + 1)} | {
        1,
        count,
    }
    best: tuple[float, int, Scope] | None = None
    for line in sorted(lines, reverse=True):  # of equal costs, more together
        together = mixed(ordered[:line], everyone)
        rest = sum(alone[line:])
        if count - line > 1:
            rest = min(rest, cost(mixed(ordered[line:], everyone)))
        total = cost(together) + rest
        if best is None or total < best[0]:
            best = (total, line, together)
    assert best is not None
    return best[2], list(ordered[best[1] :])


def _holds(group: Scope, scope: Scope) -> bool:
    first = scope.demands[0]
    return any((d.query, d.label) == (first.query, first.label) for d in group.demands)
