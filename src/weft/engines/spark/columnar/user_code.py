"""The user's own aggregates and windows, from the driver to executors: as part of Spark's closures.

What is on disk names them, and holds none of their code: executors have the code of the process
that started the stream, or import it by its name.
"""

from __future__ import annotations

import pickle
from functools import lru_cache
from typing import TYPE_CHECKING

from pyspark import cloudpickle

from weft.aggregates.base import add_custom, aggregate_function, custom_names, monoid
from weft.engines.spark.columnar.pickles import dumped
from weft.plan.nodes import Roll
from weft.window import UserWindow
from weft.window.user import add_window_class, place_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft.plan import Node


def code_of(nodes: Iterable[Node], needed: Iterable[str]) -> tuple[bytes, ...]:
    """Return the code of the windows of nodes and of all custom aggregates of this process.

    Queries that are added later may ask for any aggregate. One that cannot be pickled is left out,
    unless it is among those `needed` now.
    """
    found = []
    asked = set(needed)
    for name in custom_names():
        try:
            found.append(dumped((None, (monoid(name), aggregate_function(name)))))
        except (pickle.PicklingError, TypeError):
            if name in asked:
                raise
    windows = {
        type(node.window)
        for node in nodes
        if isinstance(node, Roll) and isinstance(node.window, UserWindow)
    }
    ordered = sorted(windows, key=place_of)
    return (*found, *(dumped((place_of(cls), cls)) for cls in ordered))


def load_code(code: Iterable[bytes]) -> None:
    """Make known in this process what `code_of` packed on the driver."""
    for one in code:
        _load(one)


@lru_cache(maxsize=256)
def _load(code: bytes) -> None:
    place, own = cloudpickle.loads(code)
    if place is None:
        add_custom(*own)
    else:
        add_window_class(place, own)
