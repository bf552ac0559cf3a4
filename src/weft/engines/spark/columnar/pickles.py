"""User-defined windows and functions on their way to executors: with their code, not their name.

A name is enough for what is installed there as well. A module of the user's own, beside the
script or the notebook, mostly is not; over Spark Connect even the folder of the script is unknown.
"""

from __future__ import annotations

import io
import pickle
import sys
import sysconfig
from pathlib import PurePath
from types import FunctionType, ModuleType
from typing import Any

from pyspark import cloudpickle as untyped

cloudpickle: Any = untyped
_KNOWN = (__name__.partition(".")[0], "__main__", *sys.builtin_module_names)
_FOLDERS = {"site-packages", "dist-packages"}
_STANDARD = PurePath(sysconfig.get_path("stdlib"))


def dumped(value: object) -> bytes:
    """Pickle a value; classes and functions that are not installed go along as code.

    Code that reads a global which cannot be pickled goes by its name, as Spark's own
    functions do.

    >>> cloudpickle.loads(dumped(PurePath("a")))
    PurePosixPath('a')
    """
    try:
        return _with_code(value)
    except (pickle.PicklingError, TypeError):
        by_name: bytes = cloudpickle.dumps(value)
        return by_name


def _with_code(value: object) -> bytes:
    written = io.BytesIO()
    pickler = _Pickler(written)
    try:
        pickler.dump(value)  # type: ignore[no-untyped-call]
    finally:
        for module in pickler.modules:
            cloudpickle.unregister_pickle_by_value(module)
    return written.getvalue()


class _Pickler(untyped.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)  # type: ignore[no-untyped-call]
        self.modules: list[ModuleType] = []

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type | FunctionType):
            module = sys.modules.get(obj.__module__ or "")
            registered = cloudpickle.list_registry_pickle_by_value()
            if module is not None and module.__name__ not in registered and not installed(module):
                cloudpickle.register_pickle_by_value(module)
                self.modules.append(module)
        return super().reducer_override(obj)  # type: ignore[no-untyped-call]


def installed(module: ModuleType) -> bool:
    """Tell whether a module belongs to Python, to a package or to weft, and not to a script.

    >>> installed(sys), installed(io), installed(cloudpickle), installed(ModuleType("mine"))
    (True, True, True, False)
    """
    if module.__name__.partition(".")[0] in _KNOWN:
        return True
    path = PurePath(getattr(module, "__file__", None) or "")
    return path.is_relative_to(_STANDARD) or not _FOLDERS.isdisjoint(path.parts)
