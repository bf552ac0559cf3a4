"""Nothing is unpickled unless the user says so, and code comes from the user's environment."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.engines.local.state import custom_partials
from weft.engines.local.state.custom_partials import plain_text, read_plain
from weft.sessions.local_session import LocalSession

SOURCES = Path(weft.__file__).parent
KEY = b"sixteen bytes or more of a key"

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(2**20_000), 2**20_000), st.floats(),
    st.text(st.characters()), st.binary(), st.decimals(), st.complex_numbers(), st.dates(),
    st.datetimes(), st.datetimes(timezones=st.just(UTC)), st.timedeltas(),
    st.floats().map(np.float64), st.integers(-128, 127).map(np.int8), st.booleans().map(np.bool_),
)  # fmt: skip
HASHABLE = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(st.characters()), st.binary(),
    st.tuples(st.integers(), st.text()),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(HASHABLE, inner),
        st.sets(HASHABLE), st.frozensets(HASHABLE),
    ),
    max_leaves=12,
)  # fmt: skip


def exact(value: Any) -> Any:
    """Write a value so that equal texts mean equal values of equal types, NaN and zeros too."""
    kind = type(value).__name__
    if isinstance(value, float | np.floating):
        return kind, "nan" if math.isnan(value) else float(value).hex()
    if isinstance(value, complex):
        return kind, exact(value.real), exact(value.imag)
    if isinstance(value, int) and not isinstance(value, bool):
        return kind, hex(value)
    if isinstance(value, dict):
        return kind, [(exact(k), exact(v)) for k, v in value.items()]
    if isinstance(value, set | frozenset):
        return kind, sorted(repr(exact(v)) for v in value)
    if isinstance(value, list | tuple):
        return kind, [exact(v) for v in value]
    return kind, repr(value)


@given(VALUES)
def test_plain_values_read_back_exactly(value: Any) -> None:
    text = plain_text(value)
    assert text.isascii()
    assert exact(read_plain(text)) == exact(value)


def test_arrays_read_back_exactly() -> None:
    for array in (np.arange(6.0).reshape(2, 3), np.array(["a", "né"]), np.zeros((0, 4), "<i2")):
        again = read_plain(plain_text((array,)))[0]
        assert again.dtype == array.dtype
        assert again.shape == array.shape
        assert (again == array).all()


class Total(int):
    """What a pickle alone brings back as it was."""


@pytest.mark.parametrize(
    "value", [Total(3), Fraction(1, 3), [object()], {1: range(3)}, np.array([None])]
)
def test_other_values_are_not_plain(value: Any) -> None:
    with pytest.raises(TypeError, match=r"Total|Fraction|object|range|ndarray"):
        plain_text(value)


def total_of(lift: Any) -> Any:
    return weft.agg.custom(
        "total_in_trust", lift=lift, combine=lambda a, b: type(a)(a + b), lower=int,
        identity=lift(0), commutative=True, idempotent=False,
    )  # fmt: skip


def running(lift: Any) -> LocalSession:
    windows = {"10": weft.tumbling(10), "gap": weft.session(4)}
    query = weft.Query("q", source="s", time="ts", windows=windows, aggs={"t": total_of(lift)("x")})
    session = LocalSession(query)
    session.push("s", pa.table({"ts": [1, 2, 8], "x": [1, 2, 3]}))
    return session


def finished(session: LocalSession) -> list[int]:
    totals: list[int] = session.finish()["t"].to_pylist()
    return totals


def test_plain_partials_come_back_without_a_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom_partials, "pickle", None)
    session = running(int)
    assert finished(LocalSession.restore(session.snapshot())) == finished(session) == [6, 3]


def test_other_partials_are_refused_without_trust() -> None:
    session = running(Total)
    with pytest.raises(weft.UnsupportedError, match=r"are of type .*Total, which only a pickle"):
        session.snapshot()
    trusted = session.snapshot(trust_pickle=True)
    with pytest.raises(weft.DataError, match="reading a pickle runs the code") as refused:
        LocalSession.restore(trusted)
    assert "trust_pickle=True" in str(refused.value)
    assert finished(LocalSession.restore(trusted, trust_pickle=True)) == finished(session)


def test_signed_pickles_are_read_with_their_key_alone() -> None:
    session = running(Total)
    signed = session.snapshot(trust_pickle=True, key=KEY)
    again = LocalSession.restore(signed, trust_pickle=True, key=KEY)
    for key in (None, KEY + b"!"):
        with pytest.raises(weft.DataError, match="signed"):
            LocalSession.restore(signed, trust_pickle=True, key=key)
    unsigned = session.snapshot(trust_pickle=True)
    with pytest.raises(weft.DataError, match="not signed, and a key is given"):
        LocalSession.restore(unsigned, trust_pickle=True, key=KEY)
    assert finished(again) == finished(session)


def test_a_key_must_be_long_and_asks_for_trust() -> None:
    with pytest.raises(weft.QueryError, match="soon guessed"):
        running(int).snapshot(trust_pickle=True, key=b"short")
    with pytest.raises(weft.QueryError, match="pickles are not trusted"):
        running(int).snapshot(key=KEY)


class Trap:
    """Runs code where it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


def test_no_code_of_a_snapshot_runs(tmp_path: Path) -> None:
    trap = Trap(tmp_path / "sprung")
    weft.agg.custom(
        "trap", lift=lambda x: trap, combine=lambda a, b: trap, lower=lambda p: 1, identity=trap,
        commutative=True, idempotent=True,
    )  # fmt: skip
    query = weft.Query(
        "q", source="s", time="ts", windows={"10": weft.tumbling(10)}, aggs={"t": "trap(x)"}
    )
    session = LocalSession(query)
    session.push("s", pa.table({"ts": [1], "x": [1]}))
    snapshot = session.snapshot(trust_pickle=True)
    with pytest.raises(weft.DataError):
        LocalSession.restore(snapshot)
    assert not trap.folder.exists()
    LocalSession.restore(snapshot, trust_pickle=True)
    assert trap.folder.exists()  # the trap is one


def test_pickles_are_read_in_few_places_only() -> None:
    """Behind trust, and out of closures that Spark sends to the executors of an application."""
    loads = re.compile(r"\b(?:pickle|cloudpickle|marshal|shelve|joblib|dill)\.(?:loads?|open)\(")
    found = {
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if loads.search(path.read_text().replace(">>> cloudpickle.loads", ""))
        or "pickle.loads" in path.read_text().replace("cloudpickle.loads", "")
    }
    assert found == {
        "engines/local/state/custom_partials.py",
        "engines/spark/anchors/executor.py",
        "engines/spark/columnar/hosted_operator.py",
        "engines/spark/columnar/user_code.py",
        "engines/spark/streaming/anchors/processor.py",
    }


OWN_MODULE = """
import weft

class Pairs(weft.UserWindow):
    {window}
    def begins(self, event, state):
        state["seen"] = state.get("seen", 0) + 1
        return state["seen"] % 2
    def ends(self, event, state):
        return 1 if state.get("seen", 0) and state["seen"] % 2 == 0 else 0

weft.agg.custom(
    "doubled_elsewhere", lift=lambda x: 2 * x, combine=lambda a, b: a + b, lower=int, identity=0,
    commutative=True, idempotent=False, {aggregate}
)
"""
WRITER = """
import own_definitions, pyarrow as pa, sys, weft
query = weft.Query("q", source="s", time="ts", windows={"p": own_definitions.Pairs()},
                   aggs={"t": "doubled_elsewhere(x)"})
session = weft.LocalSession(query)
session.push("s", pa.table({"ts": [1, 2, 3], "x": [1, 2, 3]}))
sys.stdout.buffer.write(session.snapshot())
"""
READER = """
import sys, weft
try:
    print(weft.LocalSession.restore(sys.stdin.buffer.read()).finish()["t"].to_pylist())
except weft.WeftError as error:
    print(error)
"""


def elsewhere(program: str, folder: Path, given: bytes = b"") -> bytes:
    """Run a program in a process of its own, with a folder on its path."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    run = [sys.executable, "-c", program]
    return subprocess.run(run, input=given, env=environment, check=True, capture_output=True).stdout


def test_aggregates_and_windows_are_imported_by_name_and_checked_by_version(tmp_path: Path) -> None:
    module = tmp_path / "own_definitions.py"
    module.write_text(OWN_MODULE.format(window="version = 'a'", aggregate="version='1'"))
    snapshot = elsewhere(WRITER, tmp_path)
    assert elsewhere(READER, tmp_path, snapshot).decode() == "[6, 6]\n"
    module.write_text(OWN_MODULE.format(window="version = 'a'", aggregate="version='2'"))
    told = elsewhere(READER, tmp_path, snapshot).decode()
    assert "version 1 of custom aggregate 'doubled_elsewhere', and here is version 2" in told
    module.write_text(OWN_MODULE.format(window="version = 'b'", aggregate="version='1'"))
    told = elsewhere(READER, tmp_path, snapshot).decode()
    assert "version a of window class own_definitions:Pairs, and here is version b" in told
    module.unlink()
    told = elsewhere(READER, tmp_path, snapshot).decode()
    assert "the module 'own_definitions' of custom aggregate 'doubled_elsewhere'" in told
    assert "cannot be imported: No module named 'own_definitions'" in told


def test_times_and_decimals_are_plain() -> None:
    moment = datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC)
    for value in (moment, moment.date(), date.min, timedelta(-1, 3, 7), Decimal("-1E+400")):
        assert read_plain(plain_text(value)) == value
