"""Partials of custom aggregates in kept state: plain values as text, pickles on trust alone.

A plain value is made of None, booleans, numbers, text, bytes, times, numpy values, and tuples,
lists, dicts and sets of such. It is written as JSON and reads back exactly, type and all, without
running any code. Anything else only a pickle can hold, and reading a pickle runs whatever code
its writer put there: that is done where the user says so, under a key if there is one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import pickle
import secrets
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.errors import DataError, QueryError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from weft.engines.local.values.arrow import Array

_LARGE = 1 << 63  # integers from here on are written in hexadecimal: of any length, and at once
_COLLECTIONS: dict[type, str] = {tuple: "tuple", set: "set", frozenset: "frozenset"}


@dataclass(frozen=True, slots=True)
class Trust:
    """Whether values that are not plain may be pickled, and the key that signs their pickles."""

    pickle: bool = False
    key: bytes | None = None

    def __post_init__(self) -> None:
        if self.key is not None and not self.pickle:
            raise QueryError(
                "a key signs pickles, and pickles are not trusted", hint="add trust_pickle=True"
            )
        if self.key is not None and len(self.key) < 16:
            raise QueryError(
                f"a key of {len(self.key)} bytes is soon guessed", hint="give 16 bytes or more"
            )

    @staticmethod
    def within_a_run() -> Trust:
        """Trust what this run has pickled itself: its key is random, and nobody else has it."""
        return Trust(True, secrets.token_bytes(32))


NO_PICKLES = Trust()


def plain_text(value: Any) -> str:
    """Write a plain value; a TypeError names the type of one that is not.

    >>> plain_text((1, 2.5, None)), read_plain(plain_text({b"k": [-0.0, 10**30]}))
    ('{"tuple": [1, 2.5, null]}', {b'k': [-0.0, 1000000000000000000000000000000]})
    """
    return json.dumps(_told(value))


def read_plain(text: str) -> Any:
    """Read what `plain_text` wrote."""
    return _value(json.loads(text))


def _told(value: Any) -> Any:
    kind = type(value)  # exactly: what a subclass has more would be lost
    if value is None or kind in (bool, str, float) or (kind is int and -_LARGE <= value < _LARGE):
        return value
    if kind is list:
        return [*map(_told, value)]
    if kind is dict:
        return {"dict": [[_told(k), _told(v)] for k, v in value.items()]}
    if kind in _COLLECTIONS:
        return {_COLLECTIONS[kind]: [*map(_told, value)]}
    if (kind is np.ndarray or isinstance(value, np.generic)) and value.dtype.kind not in "OV":
        return {"numpy": [value.dtype.str, list(value.shape), _base64(value.tobytes())]}
    told = _SCALARS.get(kind)
    if told is None or (kind is datetime and value.tzinfo not in (None, UTC)):
        raise TypeError(f"{kind.__module__}.{kind.__qualname__}")
    name, write, _ = told
    return {name: write(value)}


def _value(told: Any) -> Any:
    if isinstance(told, list):
        return [*map(_value, told)]
    if not isinstance(told, dict):
        return told
    ((name, inside),) = told.items()
    if name == "dict":
        return {_value(k): _value(v) for k, v in inside}
    if name in _READ_COLLECTIONS:
        return _READ_COLLECTIONS[name](map(_value, inside))
    if name == "numpy":
        dtype, shape, text = inside
        array = np.frombuffer(base64.b64decode(text), np.dtype(dtype)).reshape(shape).copy()
        return array if shape else array[()]
    return _READ_SCALARS[name](inside)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _read_complex(parts: list[float]) -> complex:
    return complex(*parts)


def _read_datetime(parts: tuple[str, int]) -> datetime:
    text, fold = parts
    return datetime.fromisoformat(text).replace(fold=fold)


def _read_timedelta(parts: list[int]) -> timedelta:
    return timedelta(*parts)


_SCALARS: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    int: ("int", hex, lambda text: int(text, 16)),
    bytes: ("bytes", _base64, base64.b64decode),
    Decimal: ("decimal", str, Decimal),
    complex: ("complex", lambda z: [z.real, z.imag], _read_complex),
    datetime: ("datetime", lambda t: [t.isoformat(), t.fold], _read_datetime),
    date: ("date", date.isoformat, date.fromisoformat),
    timedelta: ("timedelta", lambda d: [d.days, d.seconds, d.microseconds], _read_timedelta),
}
_READ_SCALARS = {name: read for name, _, read in _SCALARS.values()}
_READ_COLLECTIONS = {name: made for made, name in _COLLECTIONS.items()}


def written_partials(values: Sequence[Any], trust: Trust) -> tuple[Array, dict[str, Any]]:
    """Write the partials of a custom aggregate as a column, and what is to be told of it."""
    try:
        return pa.array([*map(plain_text, values)], pa.large_string()), {"form": "plain"}
    except TypeError as reason:
        if not trust.pickle:
            raise not_plain(str(reason)) from None
    pickled = [pickle.dumps(value) for value in values]
    told: dict[str, Any] = {"form": "pickled", "digest": None}
    if trust.key is not None:
        told["digest"] = _digest(pickled, trust.key)
    return pa.array(pickled, pa.large_binary()), told


def read_partials(column: Array, told: dict[str, Any], trust: Trust) -> Any:
    """Read the partials of a custom aggregate back, as an array of objects."""
    blobs = column.to_pylist()
    if told["form"] == "plain":
        read: Callable[[Any], Any] = read_plain
    else:
        _check_trust(blobs, told["digest"], trust)
        read = pickle.loads
    made = np.empty(len(blobs), object)
    for at, blob in enumerate(blobs):
        made[at] = read(blob)
    return made


def not_plain(type_name: str) -> UnsupportedError:
    """Say that the partials of a custom aggregate can be kept in no other way than as pickles."""
    return UnsupportedError(
        f"partials of a custom aggregate are of type {type_name}, which only a pickle can keep",
        hint="use numbers, text, bytes, tuples, lists and dicts in its partials, or trust pickles "
        "with trust_pickle=True: whoever can write the state can then run code where it is read",
    )


def check_plain(values: Iterable[Any], trust: Trust) -> None:
    """Refuse values that state cannot hold, before there is any state."""
    try:
        for value in () if trust.pickle else values:
            plain_text(value)
    except TypeError as reason:
        raise not_plain(str(reason)) from None


def _check_trust(blobs: Sequence[bytes], digest: str | None, trust: Trust) -> None:
    if not trust.pickle:
        raise DataError(
            "the state holds pickles, and reading a pickle runs the code that is in it",
            hint="if nobody else can write there, say so with trust_pickle=True",
        )
    if (digest is None) != (trust.key is None):
        signed = "not signed" if digest is None else "signed"
        raise DataError(
            f"the pickles of the state are {signed}, and {'a' if trust.key else 'no'} key is given",
            hint="give the key, or none, as when they were written",
        )
    if digest is None or trust.key is None:
        return
    if not hmac.compare_digest(digest, _digest(blobs, trust.key)):
        raise DataError(
            "the pickles of the state are not signed with this key: they are another's, or "
            "were changed",
            hint="give the key that they were written with; do not read them otherwise",
        )


def _digest(blobs: Sequence[bytes], key: bytes) -> str:
    signed = hmac.new(key, digestmod=hashlib.sha256)
    for blob in blobs:
        signed.update(len(blob).to_bytes(8, "little") + blob)
    return signed.hexdigest()
