"""What commands are given, read: statements, tables, figures."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from weft.errors import DataError, QueryError, WeftError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from weft.query import Workload
    from weft.statistics import Statistics


def workload_of(file: Path | None, sql: str | None) -> Workload:
    """Read the queries of a file, of standard input (`-`), or of a text; of exactly one of them.

    >>> workload_of(None, None)
    Traceback (most recent call last):
    weft.errors.WeftError: there is no query
    hint: name a file of SQL statements, or give the SQL itself with -e
    """
    from weft import parse

    if (file is None) == (sql is None):
        raise WeftError(
            "there is no query" if file is None else f"the query is given twice: {file} and -e",
            hint="name a file of SQL statements, or give the SQL itself with -e",
        )
    if sql is not None:
        return parse(sql)
    assert file is not None
    text = _read_text(file)
    try:
        return parse(text)
    except QueryError as error:
        if str(file) == "-":
            raise
        raise WeftError(f"{file}: {error.message}", hint=error.hint) from error


def tables_of(given: Sequence[str], workload: Workload) -> dict[str, pa.Table]:
    """Read the tables that the workload needs from `NAME=PATH` pairs; others are not opened."""
    from weft.tables import read_table

    paths = _paths_of(given)
    missing = [source for source in workload.sources if source not in paths]
    if missing:
        known = f", the tables given are {', '.join(paths)}" if paths else ""
        raise DataError(
            f"the query reads {missing[0]}, and no table of that name is given{known}",
            hint=f"add --table {missing[0]}=PATH",
        )
    return {source: read_table(paths[source]) for source in workload.sources}


def statistics_of(rate: str | None, keys: int | None) -> Statistics:
    """Read what the user knows of the events.

    >>> statistics_of("1/4", 10)
    Statistics(rate=0.25, keys=10, key_skew=0.0, lateness_us=(0, 0, 0))
    """
    from weft.statistics import Statistics

    return Statistics(rate=None if rate is None else rate_of(rate), keys=keys)


def rate_of(text: str) -> float:
    """Read events per second, as a number or a fraction.

    >>> rate_of("1/60"), rate_of("2.5e3")
    (0.016666666666666666, 2500.0)
    >>> rate_of("fast")
    Traceback (most recent call last):
    weft.errors.WeftError: cannot read 'fast' as a rate
    hint: give events per second, such as 2500 or 1/60
    """
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise WeftError(
            f"cannot read {text!r} as a rate", hint="give events per second, such as 2500 or 1/60"
        ) from error


def _read_text(file: Path) -> str:
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise WeftError(
            f"cannot read {file}: there is no such file",
            hint="name a file of SQL statements, or give the SQL itself with -e",
        ) from error
    except UnicodeDecodeError as error:
        raise WeftError(
            f"cannot read {file}: it is not text in UTF-8", hint="is it a file of SQL statements?"
        ) from error


def _paths_of(given: Sequence[str]) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    for pair in given:
        name, equals, path = pair.partition("=")
        name = name.strip()
        if not (name and equals and path):
            raise WeftError(
                f"cannot read --table {pair!r}",
                hint="write NAME=PATH, such as readings=readings.parquet",
            )
        if name in paths:
            raise WeftError(
                f"table {name} is given twice: {paths[name]} and {path}",
                hint="put the files of one table into one folder, and name the folder",
            )
        paths[name] = Path(path).expanduser()
    return paths
