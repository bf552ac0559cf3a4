"""Compile the kernels, and keep what was compiled on disk.

numba looks only at a kernel's own file when it decides whether a cached compilation is stale, but
every kernel inlines operations and column access from other files of this package. So the name of
a cached kernel carries a digest of the whole package: an edit anywhere here is never ignored.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def digest_of_sources(folder: Path) -> str:
    """Return a name for all that the modules of a folder say: another after an edit of any."""
    digest = blake2b(digest_size=6)
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_DIGEST = digest_of_sources(Path(__file__).parent)

# Kernels only borrow arrays. Without reference counts, which are atomic and taken on every call,
# one slide of DABA takes 30 ns and not 300. Nobody calls a kernel from C, and that
# entry takes time to compile.
_OPTIONS: dict[str, Any] = {"cache": True, "_nrt": False, "no_cfunc_wrapper": True}


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile `function` with numba; another process on this machine compiles it no more.

    A kernel takes the operation as its first argument. The type of that argument selects the
    specialisation, so the combine is inlined and each operation has its own machine code. A
    kernel works in arrays that it is given; it can neither allocate one nor return a view.

    >>> from weft.kernels.techniques import naive
    >>> from weft.kernels.operations import COUNT
    >>> naive.size(naive.new(COUNT, capacity=4), 0)
    0
    """
    function.__qualname__ = f"{function.__qualname__}_{_DIGEST}"
    compiled: Callable[Parameters, Result] = njit(**_OPTIONS)(function)
    return compiled
