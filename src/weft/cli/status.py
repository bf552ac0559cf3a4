"""How every command ends: its exit status, and one message for what went wrong.

0 done; 1 the answer is "no"; 2 bad input; 3 a bug of weft; 130 interrupted; 141 nobody reads on.
"""

import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from weft.errors import InternalError, WeftError

NO = 1
BAD_INPUT = 2
BUG = 3
INTERRUPTED = 130
BROKEN_PIPE = 141  # what a shell reports of a command that SIGPIPE ended, such as `cat` in `| head`

# Packages that weft runs without, and the extra that each comes with.
_EXTRAS = {
    **dict.fromkeys(("pyspark", "py4j", "pandas"), "spark"),
    **dict.fromkeys(("starlette", "uvicorn"), "ui"),
    **dict.fromkeys(("adbc_driver_manager", "adbc_driver_postgresql"), "postgresql"),
    "deltalake": "delta",
    "pyiceberg": "iceberg",
    **dict.fromkeys(("bottleneck", "duckdb", "matplotlib", "polars"), "bench"),
}


class Commands(TyperGroup):
    """A group of commands none of which ends in a traceback."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run the command that the arguments name, and leave with its status."""
        extra["standalone_mode"] = False
        status = _status_of(lambda: super(Commands, self).main(*args, **extra))
        try:
            sys.stdout.flush()
        except OSError:
            _write_no_more()
        sys.exit(status)

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the arguments; `--help` and `--version` print here."""
        with _reader_may_leave():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, up to its last word."""
        with _reader_may_leave():
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """End without a word when nobody reads on, as behind `| head`."""
    try:
        yield
    except BrokenPipeError:
        _write_no_more()
        raise typer.Exit(BROKEN_PIPE) from None


def _write_no_more() -> None:
    # The interpreter flushes once more as it leaves, and must find somebody who reads.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _status_of(command: Callable[[], Any]) -> int:
    try:
        result = command()
    except typer.TyperException as error:
        return _failed(_usage_message(error), BAD_INPUT)
    except InternalError as error:
        return _failed(str(error), BUG)
    except WeftError as error:
        return _failed(f"error: {error}", BAD_INPUT)
    except OSError as error:
        return _failed(_os_message(error), BAD_INPUT)
    except (typer.Abort, KeyboardInterrupt):
        result = INTERRUPTED
    except Exception as error:  # noqa: BLE001  the last resort: a bug is told as one
        if _is_sparks(error):
            return _failed(_spark_message(error), BAD_INPUT)
        if isinstance(error, ModuleNotFoundError) and error.name in _EXTRAS:
            return _failed(_package_message(error.name), BAD_INPUT)
        return _failed(str(InternalError(f"{type(error).__name__}: {error}")), BUG)
    if result == INTERRUPTED:
        return _failed("interrupted", INTERRUPTED)
    return result if isinstance(result, int) else 0


def _failed(message: str, status: int) -> int:
    if os.environ.get("WEFT_DEBUG") == "1":
        traceback.print_exc()
    elif status == BUG:
        message += "\n      (WEFT_DEBUG=1 in the environment shows where it happened)"
    typer.echo(message, err=True)
    return status


def _usage_message(error: typer.TyperException) -> str:
    """Put a complaint about the arguments into the words of all other errors."""
    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "weft"
    return f"error: {message[:1].lower()}{message[1:]}\nhint: {path} --help shows what can be given"


def _is_sparks(error: Exception) -> bool:
    """Tell whether Spark refused the tables, or the values in them."""
    pyspark, py4j = (sys.modules.get(name) for name in ("pyspark.errors", "py4j.protocol"))
    ours = () if pyspark is None else (pyspark.PySparkException,)
    javas = () if py4j is None else (py4j.Py4JJavaError,)
    return isinstance(error, (*ours, *javas))


def _spark_message(error: Exception) -> str:
    # Of all it says, what went wrong is behind the name of its error class, as in [DIVIDE_BY_ZERO].
    # What ends in a colon only counts the failures, each of which has a line and a name of its own.
    text = str(error)
    found = re.search(r"\[[A-Z0-9_.]+\] (.*[^:\s])\s*$", text, re.MULTILINE)
    said = (found[1] if found else text.strip().splitlines()[0]).split(" SQLSTATE")[0].strip(" .")
    hint = "check the table and its values; WEFT_DEBUG=1 in the environment shows all Spark said"
    return f"error: spark: {said[:1].lower()}{said[1:]}\nhint: {hint}"


def _package_message(package: str) -> str:
    hint = f"pip install 'weft-spark[{_EXTRAS[package]}]'"
    return f"error: this needs {package}, which is not installed\nhint: {hint}"


def _os_message(error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    if error.filename is None:
        return f"error: {reason}"
    return f"error: cannot open {error.filename}: {reason}\nhint: check the path and permissions"
