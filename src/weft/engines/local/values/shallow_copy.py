"""Shallow copies of objects with slots, which a stream takes before every batch."""

from __future__ import annotations

from typing import Any, TypeVar

Slotted = TypeVar("Slotted")


def copied(one: Slotted) -> Slotted:
    """Copy an object whose fields are all slots of its own class.

    Does as `copy.copy`, without its detour over pickling that takes five times as long.

    >>> from weft.engines.local.values.keys import ColumnCodes
    >>> codes = ColumnCodes()
    >>> copied(codes) == codes, copied(codes) is codes
    (True, False)
    """
    made: Any = object.__new__(type(one))
    for name in type(one).__slots__:  # type: ignore[attr-defined]
        setattr(made, name, getattr(one, name))
    found: Slotted = made
    return found
