"""Targets by the texts that name them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from weft.errors import InputError

if TYPE_CHECKING:
    from weft.targets.base import Target

DELTA = "delta://"
ICEBERG = "iceberg://"
POSTGRESQL = ("jdbc:postgresql://", "postgresql://", "postgres://")


def target_of(text: str) -> Target | None:
    """Read the place of a table; None if it names a folder.

    >>> target_of("delta://out/lows?key=device,start")
    DeltaTarget(uri='out/lows', key=('device', 'start'))
    >>> target_of("jdbc:postgresql://db:5432/metrics?user=weft&table=lows").table
    'lows'
    >>> target_of("out/lows")
    """
    if text.startswith(DELTA):
        from weft.targets.delta import DeltaTarget

        place, options = _parts(text.removeprefix(DELTA))
        return DeltaTarget(place, _key(options, only=True))
    if text.startswith(ICEBERG):
        from weft.targets.iceberg import IcebergTarget

        place, options = _parts(text.removeprefix(ICEBERG))
        return IcebergTarget.of(place, _key(options, only=True))
    if text.startswith(POSTGRESQL):
        from weft.targets.postgresql import PostgresTarget

        place, options = _parts(text.removeprefix("jdbc:"))
        key = _key(options)
        return PostgresTarget.of(place, options, key)
    return None


def _parts(text: str) -> tuple[str, dict[str, str]]:
    place, _, options = text.partition("?")
    return place, dict(parse_qsl(options, keep_blank_values=True))


def _key(options: dict[str, str], *, only: bool = False) -> tuple[str, ...]:
    """Take out the columns that tell rows apart; other options may follow, or are unknown."""
    given = options.pop("key", "")
    if only and options:
        raise InputError(
            f"option {next(iter(options))!r} of the table is unknown",
            hint="key=COLUMN,... names the columns that tell rows apart, and is the only one",
        )
    return tuple(filter(None, (name.strip() for name in given.split(","))))
