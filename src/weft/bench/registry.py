"""All bench entries, in the order in which they are listed and run."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from weft.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.bench.frame import Entry


def entries() -> tuple[Entry, ...]:
    """Return every entry; none has run, and no optional library is loaded.

    >>> names = [entry.name for entry in entries()]
    >>> len(names) == len(set(names))
    True
    """
    from weft.bench.suite.joins import entries as joins
    from weft.bench.suite.kernels import latency as kernels_latency
    from weft.bench.suite.kernels import speed as kernels_speed
    from weft.bench.suite.kernels import techniques as kernels_techniques
    from weft.bench.suite.local import cutty as local_cutty
    from weft.bench.suite.local import memory as local_memory
    from weft.bench.suite.local import speed as local_speed
    from weft.bench.suite.local import subsume as local_subsume
    from weft.bench.suite.planners import factor as planners_factor
    from weft.bench.suite.planners import subsume as planners_subsume
    from weft.bench.suite.planners import weave as planners_weave
    from weft.bench.suite.spark import batch as spark_batch
    from weft.bench.suite.spark import plans as spark_plans
    from weft.bench.suite.spark import stream as spark_stream

    families = (
        kernels_speed,
        kernels_latency,
        kernels_techniques,
        planners_weave,
        planners_factor,
        planners_subsume,
        local_speed,
        local_memory,
        local_subsume,
        local_cutty,
        joins,
        spark_batch,
        spark_plans,
        spark_stream,
    )
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
