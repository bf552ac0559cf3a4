"""What every technique can do, told apart by the type of its state.

A kernel that calls these verbs works with any technique: numba looks at the class of the state,
finds the module that made it, and compiles that module's own code in.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from numba.extending import overload

if TYPE_CHECKING:
    from weft.kernels.columns import Compiled, Partial

State = Any  # the named tuple of arrays of one technique


def _called(state: State, verb: str) -> Any:
    return getattr(sys.modules[type(state).__module__], verb, None)


def _compiled(state: Any, verb: str) -> Any:
    return getattr(sys.modules[state.instance_class.__module__], verb, None)


def size(state: State, key: int) -> int:
    """Count the partials in the window of a key."""
    return int(_called(state, "size")(state, key))


def insert(op: Any, state: State, key: int, value: Partial) -> None:
    """Add the newest partial."""
    _called(state, "insert")(op, state, key, value)


def evict(op: Any, state: State, key: int) -> None:
    """Remove the oldest partial."""
    _called(state, "evict")(op, state, key)


def replace(op: Any, state: State, key: int, value: Partial) -> None:
    """Remove the oldest partial and add the newest, at once where a technique can."""
    at_once = _called(state, "replace")
    if at_once is not None:
        at_once(op, state, key, value)
    else:
        evict(op, state, key)
        insert(op, state, key, value)


def query(op: Any, state: State, key: int) -> Partial:
    """Combine the whole window."""
    return _called(state, "query")(op, state, key)


def query_last(op: Any, state: State, key: int, count: int) -> Partial:
    """Combine the newest `count` partials; a technique of one range has no others to tell."""
    found = _called(state, "query_last")
    return query(op, state, key) if found is None else found(op, state, key, count)


@overload(size, strict=False)
def _size(state: Any, key: Any) -> Compiled:
    found = _compiled(state, "size")
    return lambda state, key: found(state, key)


@overload(insert, strict=False)
def _insert(op: Any, state: Any, key: Any, value: Any) -> Compiled:
    found = _compiled(state, "insert")
    return lambda op, state, key, value: found(op, state, key, value)


@overload(evict, strict=False)
def _evict(op: Any, state: Any, key: Any) -> Compiled:
    found = _compiled(state, "evict")
    return lambda op, state, key: found(op, state, key)


@overload(replace, strict=False)
def _replace(op: Any, state: Any, key: Any, value: Any) -> Compiled:
    found = _compiled(state, "replace")
    if found is not None:
        return lambda op, state, key, value: found(op, state, key, value)
    out, into = _compiled(state, "evict"), _compiled(state, "insert")

    def in_two_steps(op: Any, state: State, key: int, value: Partial) -> None:
        out(op, state, key)
        into(op, state, key, value)

    return in_two_steps


@overload(query, strict=False)
def _query(op: Any, state: Any, key: Any) -> Compiled:
    found = _compiled(state, "query")
    return lambda op, state, key: found(op, state, key)


@overload(query_last, strict=False)
def _query_last(op: Any, state: Any, key: Any, count: Any) -> Compiled:
    found = _compiled(state, "query_last")
    if found is None:
        whole = _compiled(state, "query")
        return lambda op, state, key, count: whole(op, state, key)
    return lambda op, state, key, count: found(op, state, key, count)
