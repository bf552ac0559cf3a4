"""Executors whose Python runs weft: the driver's own on one machine, and asked once elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_NEEDED = ("weft", "numpy", "pyarrow", "numba", "sqlglot")
_ONE_MACHINE = re.compile(r"local(\[|\Z)")
_CHOICE = "spark.pyspark.python"
_PATH = "PYTHONPATH"
_OTHER_VERSION = re.compile(r"Python in worker has different version: (.+?) than")
_asked: set[tuple[str, str]] = set()  # applications, and the Pythons that can run weft there


def use_this_python() -> None:
    """Let executors run the Python that runs the driver, unless the user chose another."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def prepare_executors(session: SparkSession) -> None:
    """See to it that Python workers find weft, or say what to set, before any row is computed.

    On one machine they run the driver's Python unless the user chose another. Any other Python is
    asked what it has, once in an application, by a job of one row.
    """
    from pyspark.sql.utils import is_remote

    if is_remote():
        connected: Any = session
        _ask_once(session, connected.session_id, "the server's")
        return
    context: Any = session.sparkContext
    if context.master.startswith("local") and not _is_chosen(context):
        context.pythonExec = sys.executable
    _tell_where_weft_is(context)
    # Links are not followed: an environment's Python links to one that has other packages.
    found = os.path.abspath(shutil.which(context.pythonExec) or "")
    if found != os.path.abspath(sys.executable) or not _ONE_MACHINE.match(context.master):
        _ask_once(session, context.applicationId, context.pythonExec)


def _tell_where_weft_is(context: Any) -> None:
    """Let Python workers of the driver find the archive that weft was shipped in.

    Spark hands it on to executors. A stream with state also starts a worker beside the driver.
    """
    archive = Path(__file__).parents[3]
    known = [path for path in context.environment.get(_PATH, "").split(os.pathsep) if path]
    if archive.is_file() and str(archive) not in known:
        context.environment[_PATH] = os.pathsep.join([*known, str(archive)])


def _is_chosen(context: SparkContext) -> bool:
    return "PYSPARK_PYTHON" in os.environ or context.getConf().contains(_CHOICE)


def _ask_once(session: SparkSession, application: str, python: str) -> None:
    if (application, python) not in _asked:
        _ask(session, python)
        _asked.add((application, python))


def _ask(session: SparkSession, python: str) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import udf

    asked = udf(_missing(), "string", useArrow=False)
    try:
        (row,) = session.range(1).select(asked("id")).collect()
    except PySparkException as error:
        version = _OTHER_VERSION.search(str(error))
        if version is None:
            raise
        raise _refusal(python, f"is of another version, {version[1]}") from None
    if row[0]:
        raise _refusal(python, f"has no {row[0]}")


def _refusal(python: str, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"the columnar strategy runs on Spark's executors, and their Python ({python}) {why}",
        hint=f"set PYSPARK_PYTHON to a Python that has weft, such as {sys.executable}, or ship "
        "weft with the job; strategy='native' needs no Python there",
    )


def _missing() -> Any:
    """Return a function that names what a Python lacks; it goes to executors as code."""
    needed = _NEEDED

    def missing(_: int) -> str:
        from importlib.util import find_spec

        return " and no ".join(name for name in needed if find_spec(name) is None)

    missing.__module__ = "__main__"  # whose functions are pickled as code: there may be no weft
    return missing
