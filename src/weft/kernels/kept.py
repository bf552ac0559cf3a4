"""Where compiled kernels are kept: one folder of the user's, for all copies of the same source.

numba keeps what it compiled beside the source, so every new environment, clone and unpacked archive
compiles everything again. The name of a kernel carries a digest of all that it is compiled from
(`weft.kernels.compiled`), so copies that say the same may share. `NUMBA_CACHE_DIR` names another
folder, and where there is no folder to write to numba decides, as for any function.

Many processes compile at once: those of Spark, those of a test run. numba numbers what it keeps for
a function, and two processes that count at the same time give one number to two signatures, after
which either may load the other's code. Names that nobody else can choose rule that out.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from numba import __version__ as numba_version
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

if TYPE_CHECKING:
    from collections.abc import Callable

_KEPT_FOR_S = 60 * 86_400.0


class SharedFolder:
    """Tells numba where to look; what is found there under a kernel's name is never stale."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._line = function.__code__.co_firstlineno
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self._folder = home / "weft" / f"kernels-numba-{numba_version}"

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> SharedFolder | None:
        """Return the folder; none where another is named, none can be had, or no source is there.

        A source inside an archive has no digest, so its name does not tell it from another version.
        """
        if os.environ.get("NUMBA_CACHE_DIR") or not Path(file).is_file():
            return None
        try:
            found = cls(function)
            found._folder.mkdir(parents=True, exist_ok=True)
        except (OSError, RuntimeError):  # no home, or one that cannot be written to
            return None
        return found if os.access(found._folder, os.W_OK) else None

    def ensure_cache_path(self) -> None:
        """Make the folder, and take out of it what is old."""
        self._folder.mkdir(parents=True, exist_ok=True)
        _remove_old(self._folder)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Return what changes when the source does: nothing, since then the name does."""
        return "named by digest"

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name in one module apart."""
        return str(self._line)


@cache
def _remove_old(folder: Path) -> None:
    """Remove what is old, once in a process."""
    oldest = time.time() - _KEPT_FOR_S
    for path in folder.iterdir():
        with suppress(OSError):  # another process may be faster
            if path.stat().st_mtime < oldest:
                path.unlink()


class _Implementation(CompileResultCacheImpl):
    _locator_classes: list[Any] = [  # noqa: RUF012 (as numba declares it)
        SharedFolder,
        *CompileResultCacheImpl._locator_classes,
    ]


class _Files(IndexDataCacheFile):
    def _data_name(self, number: int) -> str:
        name: str = super()._data_name(number)  # type: ignore[no-untyped-call]
        return f"{name.removesuffix('.nbc')}.{uuid4().hex[:12]}.nbc"


class KernelCache(FunctionCache):
    """What numba keeps of one kernel on disk."""

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file = _Files(  # type: ignore[no-untyped-call]
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )
