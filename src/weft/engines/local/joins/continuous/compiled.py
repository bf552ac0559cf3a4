"""Compile the loops of joins, and keep what was compiled on disk until a file here changes.

Like the kernels, they only borrow arrays, so reference counts, which are atomic and taken for each
array of each call, are left out; they run without the interpreter lock.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from numba import njit

from weft.kernels.compiled import digest_of_sources

if TYPE_CHECKING:
    from collections.abc import Callable

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


_DIGEST = digest_of_sources(Path(__file__).parent)


def borrowing(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function that neither makes nor keeps an array.

    numba looks at a function's own file alone to tell whether a compilation on disk is stale; its
    name carries a digest of all files here, because these functions are compiled into each other.
    """
    return _compiled(function, "never")


def merged(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function into those that call it.

    A call hands over eight words for each array, so a step of a join that is a call takes a fifth
    longer.
    """
    return _compiled(function, "always")


def _compiled(
    function: Callable[Parameters, Result], inline: Literal["never", "always"]
) -> Callable[Parameters, Result]:
    function.__qualname__ = f"{function.__qualname__}_{_DIGEST}"
    options: dict[str, Any] = {
        "cache": True,
        "nogil": True,
        "inline": inline,
        "_nrt": False,
        "no_cfunc_wrapper": True,
    }
    compiled: Callable[Parameters, Result] = njit(**options)(function)
    return compiled
