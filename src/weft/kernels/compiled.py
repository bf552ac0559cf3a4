"""Compile loops over arrays with numba, and keep what was compiled on disk.

numba looks only at a function's own file when it decides whether a compilation on disk is stale,
but these functions are compiled into each other. So the name under which one is kept carries a
digest of all kernels and of the folder it stands in: an edit anywhere there is never ignored.

Most of them only borrow arrays, and do without reference counts, which are atomic and taken for
each array of each call: one slide of DABA takes 30 ns and not 300. They can neither allocate an
array nor return a view. Nobody calls them from C, and that entry takes time to compile.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from numba import njit

from weft.kernels.kept import KernelCache

if TYPE_CHECKING:
    from collections.abc import Callable

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@cache
def digest_of_sources(*folders: Path) -> str:
    """Return a name for all that the modules of folders say: another after an edit of any."""
    digest = blake2b(digest_size=6)
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def compiled(
    function: Callable[Parameters, Result], **options: Any
) -> Callable[Parameters, Result]:
    """Compile `function`; another process on this machine compiles it no more."""
    own = Path(function.__code__.co_filename).parent
    name = digest_of_sources(Path(__file__).parent, own)
    function.__qualname__ = f"{function.__qualname__}_{name}"
    dispatcher: Any = njit(**{"no_cfunc_wrapper": True, **options})(function)
    if dispatcher is not function:  # as it is where numba is told not to compile
        dispatcher._cache = KernelCache(function)  # no option of numba takes one
    result: Callable[Parameters, Result] = dispatcher
    return result


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function that only borrows arrays and takes an operation as its first argument.

    The type of that argument selects the specialisation, so the combine is inlined and each
    operation has its own machine code.

    >>> from weft.kernels.techniques import naive
    >>> from weft.kernels.operations import COUNT
    >>> naive.size(naive.new(COUNT, capacity=4), 0)
    0
    """
    return compiled(function, _nrt=False)


def borrowing(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function that only borrows arrays and runs without the interpreter lock."""
    return compiled(function, _nrt=False, nogil=True)


def merged(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function that only borrows arrays into those that call it.

    A call hands over eight words for each array, so a step of a join that is a call takes a fifth
    longer.
    """
    return compiled(function, _nrt=False, nogil=True, inline="always")


def unlocked(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function that may make arrays and runs without the interpreter lock."""
    return compiled(function, nogil=True)
