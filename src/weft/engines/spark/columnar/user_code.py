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
    from collections.abc import Container, Iterable

    from weft.plan import Node


Code = tuple[tuple[str, bytes], ...]  # by the name of an aggregate, or the place of a class


def code_of(nodes: Iterable[Node], needed: Iterable[str]) -> Code:
    """Return the code of the windows of nodes and of all custom aggregates of this process.

    Queries that are added later may ask for any aggregate. One that cannot be pickled is left out,
    unless it is among those `needed` now.
    """
    found: dict[str, bytes] = {}
    asked = set(needed)
    for name in custom_names():
        try:
            found[name] = dumped((monoid(name), aggregate_function(name)))
        except (pickle.PicklingError, TypeError):
            if name in asked:
                raise
    classes = {place_of(type(window)): type(window) for window in user_windows(nodes)}
    return (*found.items(), *((place, dumped(own)) for place, own in classes.items()))


def user_windows(nodes: Iterable[Node]) -> list[UserWindow]:
    """Return the user-defined windows of nodes."""
    rolls = (node.window for node in nodes if isinstance(node, Roll))
    return [window for window in rolls if isinstance(window, UserWindow)]


def load_code(code: Code, names: Container[str]) -> None:
    """Make known in this process what `code_of` packed on the driver, as far as it is named."""
    for name, one in code:
        if name in names:
            _load(name, one)


@lru_cache(maxsize=256)
def _load(name: str, code: bytes) -> None:
    own = cloudpickle.loads(code)
    if isinstance(own, type):
        add_window_class(name, own)
    else:
        add_custom(*own)
