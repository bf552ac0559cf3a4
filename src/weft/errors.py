"""Every error weft raises on purpose, in one screen.

A message says what was asked, why it cannot be done, and after `hint:` what to do instead.
It is written in lower case, without a full stop, in the user's own words.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class WeftError(Exception):
    """Base of all errors; catch it to catch everything weft says no to.

    >>> print(WeftError("cannot weave", hint="use more thread"))
    cannot weave
    hint: use more thread
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")


class QueryError(WeftError):
    """The query itself is wrong; shows the place in the SQL text when there is one.

    >>> print(QueryError("unknown unit 'minuts'", hint="did you mean 'minutes'?",
    ...                  sql="SELECT x\\nFROM t [RANGE 5 MINUTS]", line=2, column=17))
    line 2, column 17: unknown unit 'minuts'
      FROM t [RANGE 5 MINUTS]
                      ^
    hint: did you mean 'minutes'?
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        sql: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.sql, self.line, self.column = sql, line, column
        if sql is not None and line is not None and column is not None:
            source_line = sql.splitlines()[line - 1] if sql else ""
            caret = "".join("\t" if c == "\t" else " " for c in source_line[: column - 1]) + "^"
            message = f"line {line}, column {column}: {message}\n  {source_line}\n  {caret}"
        super().__init__(message, hint=hint)


class DataError(WeftError):
    """The events do not fit the query: a column is missing, has the wrong type, or overflows."""


class InputError(WeftError):
    """What was named cannot be used: a file, a folder, an option of the command line."""


class UnsupportedError(WeftError):
    """A correct request that this engine, planner or technique cannot serve."""


class InternalError(WeftError):
    """A broken promise inside weft: our bug, never the user's."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"internal error: {message}",
            hint="this is a bug in weft; please report it with the output of `weft explain`",
        )


def require(package: str, extra: str, what: str) -> None:
    """Refuse what needs a package that is not installed, and say how to get it.

    >>> require("no_such_package", "spark", "the engine")
    Traceback (most recent call last):
    weft.errors.UnsupportedError: the engine needs no_such_package, which is not installed
    hint: pip install 'weft-spark[spark]'
    """
    if find_spec(package) is None:
        raise UnsupportedError(
            f"{what} needs {package}, which is not installed",
            hint=f"pip install 'weft-spark[{extra}]'",
        )


def suggest(word: str, known: Iterable[str], otherwise: str) -> str:
    """Write the hint for a misspelt word.

    >>> suggest("tmep", ["device", "temp"], "name another one")
    "did you mean 'temp'?"
    """
    folded = {name.casefold(): name for name in known}
    close = get_close_matches(word.casefold(), folded, n=1)
    return f"did you mean {folded[close[0]]!r}?" if close else otherwise
