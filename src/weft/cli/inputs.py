"""What commands are given, read: statements, tables, figures."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from weft.errors import DataError, InputError, QueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from weft.query import Workload
    from weft.statistics import Statistics


def workload_of(file: Path | None, sql: str | None) -> Workload:
    """Read the queries of a file, of standard input (`-`), or of a text; of exactly one of them.

    >>> workload_of(None, None)
    Traceback (most recent call last):
    weft.errors.InputError: there is no query
    hint: name a file of SQL statements, or give the SQL itself with -e
    """
    from weft import parse

    text = statement_text(file, sql)
    if file is None:
        return parse(text)
    try:
        return parse(text)
    except QueryError as error:
        if str(file) == "-":
            raise
        raise QueryError(f"{file}: {error.message}", hint=error.hint) from error


def workload_or_statements(file: Path | None, sql: str | None) -> Workload | str:
    """Read queries that weft reads by itself, or else the text of statements for Spark."""
    from weft.statement.door import anchored_of
    from weft.statement.syntax import statements_of

    try:
        return workload_of(file, sql)
    except QueryError:
        if file is not None and str(file) == "-":
            raise  # it has been read to its end
        text = statement_text(file, sql)
        if not statements_of(text) and anchored_of(text) is None:
            raise
        return text


def statement_text(file: Path | None, sql: str | None) -> str:
    """Return the statements themselves, of a file, of standard input, or as given."""
    if (file is None) == (sql is None):
        raise InputError(
            "there is no query" if file is None else f"the query is given twice: {file} and -e",
            hint="name a file of SQL statements, or give the SQL itself with -e",
        )
    if sql is not None:
        return sql
    assert file is not None
    return _read_text(file)


def named_frames(given: Sequence[str]) -> dict[str, DataFrame]:
    """Open all tables of `NAME=PATH` pairs as Spark DataFrames; Spark is started for it."""
    from weft.engines.spark.files import read_frame
    from weft.engines.spark.session import current_session

    session = current_session()
    pairs = _pairs_of(given, "table")
    return {name: read_frame(Path(path).expanduser(), session) for name, path in pairs.items()}


def named_tables(given: Sequence[str]) -> dict[str, pa.Table]:
    """Read all tables of `NAME=PATH` pairs."""
    from weft.tables import read_table

    pairs = _pairs_of(given, "table")
    return {name: read_table(Path(path).expanduser()) for name, path in pairs.items()}


def tables_of(given: Sequence[str], workload: Workload) -> dict[str, pa.Table]:
    """Read the tables that the workload needs from `NAME=PATH` pairs; others are not opened."""
    from weft.tables import read_table

    paths = places_of(given, workload, "table")
    return {source: read_table(Path(path).expanduser()) for source, path in paths.items()}


def frames_of(given: Sequence[str], workload: Workload) -> dict[str, DataFrame]:
    """Open the tables that the workload needs as Spark DataFrames; Spark is started for it."""
    from weft.engines.spark.files import read_frame
    from weft.engines.spark.session import MONITORED, current_session

    paths = places_of(given, workload, "table")
    # Only a progress line needs the monitoring service, and only a terminal gets one.
    session = current_session(MONITORED if sys.stderr.isatty() else None)
    return {s: read_frame(Path(path).expanduser(), session) for s, path in paths.items()}


def places_of(given: Sequence[str], workload: Workload | None, noun: str) -> dict[str, str]:
    """Find where each source of the workload is, in the `NAME=PATH` pairs of an option."""
    places = _pairs_of(given, noun)
    if workload is None:
        return places
    missing = [source for source in workload.sources if source not in places]
    if missing:
        known = f", the {noun}s given are {', '.join(places)}" if places else ""
        raise DataError(
            f"the query reads {missing[0]}, and no {noun} of that name is given{known}",
            hint=f"add --{noun} {missing[0]}=PATH",
        )
    return {source: places[source] for source in workload.sources}


def statistics_of(rate: str | None, keys: int | None, events: int | None = None) -> Statistics:
    """Read what the user knows of the events.

    >>> known = statistics_of("1/4", 10)
    >>> known.rate, known.keys, known.events
    (0.25, 10, None)
    """
    from weft.statistics import Statistics

    return Statistics(rate=None if rate is None else rate_of(rate), keys=keys, events=events)


def rate_of(text: str) -> float:
    """Read events per second, as a number or a fraction.

    >>> rate_of("1/60"), rate_of("2.5e3")
    (0.016666666666666666, 2500.0)
    >>> rate_of("fast")
    Traceback (most recent call last):
    weft.errors.InputError: cannot read 'fast' as a rate
    hint: give events per second, such as 2500 or 1/60
    """
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise InputError(
            f"cannot read {text!r} as a rate", hint="give events per second, such as 2500 or 1/60"
        ) from error


def import_all(modules: Sequence[str]) -> None:
    """Import modules of the user's, beside which the command runs or which are installed."""
    import importlib

    if modules and "" not in sys.path:
        sys.path.insert(0, "")  # as Python does for a program that is typed in
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:
            raise InputError(
                f"cannot import {module}: {error}",
                hint="name a module of this folder, or one that is installed",
            ) from error


def key_of(file: Path) -> bytes:
    """Read a key that signs pickles: all bytes of a file."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read the key {file}: {error.strerror}", hint="name a file of 16 bytes or more"
        ) from error


def _read_text(file: Path) -> str:
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(
            f"cannot read {file}: there is no such file",
            hint="name a file of SQL statements, or give the SQL itself with -e",
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"cannot read {file}: it is not text in UTF-8", hint="is it a file of SQL statements?"
        ) from error


def _pairs_of(given: Sequence[str], noun: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for pair in given:
        name, equals, path = pair.partition("=")
        name = name.strip()
        if not (name and equals and path):
            raise InputError(
                f"cannot read --{noun} {pair!r}",
                hint="write NAME=PATH, such as readings=readings.parquet",
            )
        if name in pairs:
            raise InputError(
                f"{noun} {name} is given twice: {pairs[name]} and {path}",
                hint=f"put the files of one {noun} into one folder, and name the folder",
            )
        pairs[name] = path
    return pairs
