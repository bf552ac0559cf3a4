"""All bench entries, in the order in which they are listed and run."""

from __future__ import annotations

from fnmatch import fnmatchcase
from importlib import import_module
from typing import TYPE_CHECKING

from weft.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.bench.frame import Entry


_FAMILIES = (
    *("kernels.speed", "kernels.latency", "kernels.techniques"),
    *("planners.weave", "planners.factor", "planners.subsume"),
    *("local.speed", "local.memory", "local.subsume", "local.cutty"),
    *("techniques.curves", "techniques.experiments"),
    *(
        "anchors.techniques",
        "anchors.local",
        "anchors.stream",
        "joins.entries",
        "mixed.local",
        "mixed.sessions",
        "store.nights",
    ),
    *("spark.batch", "spark.plans", "mixed.spark", "statements.spark"),
    *("spark.stream", "mixed.stream"),
    *("anchors.spark", "store.spark", "ui.page", "regret.entries"),
    *("growth.many", "growth.curves", "growth.limits"),
)


def entries() -> tuple[Entry, ...]:
    """Return every entry; none has run, and no optional library is loaded.

    >>> names = [entry.name for entry in entries()]
    >>> len(names) == len(set(names))
    True
    """
    families = (import_module(f"weft.bench.suite.{family}") for family in _FAMILIES)
    return tuple(entry for family in families for entry in family.ENTRIES)


def select(names: Sequence[str], known: Sequence[Entry]) -> tuple[Entry, ...]:
    """Pick entries by name, group or pattern (`*`, `?`, `[...]`); no name picks all.

    >>> select(["no/such*"], entries())
    Traceback (most recent call last):
    weft.errors.QueryError: no bench entry is named 'no/such*'
    hint: `weft bench --list` shows the names; a group or a pattern such as 'kernels/*' works too
    """
    if not names:
        return tuple(known)
    for name in names:
        if not any(_matches(name, entry) for entry in known):
            raise QueryError(
                f"no bench entry is named {name!r}",
                hint="`weft bench --list` shows the names; a group or a pattern such as "
                "'kernels/*' works too",
            )
    return tuple(entry for entry in known if any(_matches(name, entry) for name in names))


def _matches(name: str, entry: Entry) -> bool:
    return name == entry.group or fnmatchcase(entry.name, name)
