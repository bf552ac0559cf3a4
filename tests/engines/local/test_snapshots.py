"""Snapshots: other processes go on from them, and what does not fit is refused."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import weft
from weft.engines.failpoints import stopping
from weft.sessions import archive
from weft.sessions.local_session import LocalSession

if TYPE_CHECKING:
    from pathlib import Path

KINDS: dict[str, Any] = {
    "hop": weft.hopping(20, 5),
    "day": weft.calendar("day", "Europe/Berlin"),
    "cum": weft.cumulating(20, 5),
    "gap": weft.session(6),
    "rows": weft.counting(3, 2),
    "flag": weft.punctuated("x > 5"),
    "km": weft.measured("x", 4, 2),
}
AGGS = {
    "n": weft.agg.count(),
    "sum": weft.agg.sum("x"),
    "names": weft.agg.count_distinct("name"),
    "last": weft.agg.last("name"),
    "mid": weft.agg.median("x"),
}
CONTINUE = """
import sys
import pyarrow as pa
import weft
session = weft.LocalSession.restore(open(sys.argv[1], "rb").read())
session.resume("idle")
batch = pa.ipc.open_stream(sys.argv[2]).read_all()
found = session.push("s", batch), session.finish()
for name, part in (("kinds", 0), ("late", 0), ("idle", 0), ("kinds", 1), ("late", 1), ("idle", 1)):
    print(name, part, found[part][name].to_pylist())
"""


def ask(name: str, **windows: Any) -> weft.Query:
    return weft.Query(name, source="s", time="ts", keys=["name"], windows=windows, aggs=AGGS)


def batch(start: int, stop: int) -> pa.Table:
    steps = range(start, stop)
    return pa.table(
        {"ts": [2 * n for n in steps], "name": [None if n % 5 == 0 else f"n{n % 3}" for n in steps],
         "x": list(steps)}
    )  # fmt: skip


def running() -> LocalSession:
    session = LocalSession(weft.Workload([ask("kinds", **KINDS), ask("idle", h=weft.tumbling(8))]))
    session.push("s", batch(0, 12))
    session.register(ask("late", t=weft.tumbling(10), u=weft.tumbling(7)))
    session.suspend("idle")
    session.push("s", batch(12, 17))
    return session


def test_another_process_goes_on_with_identical_rows(tmp_path: Path) -> None:
    session = running()
    (tmp_path / "snapshot").write_bytes(session.snapshot())
    more = batch(17, 40)
    with pa.ipc.new_stream(str(tmp_path / "batch"), more.schema) as writer:
        writer.write_table(more)
    told = subprocess.run(
        [sys.executable, "-c", CONTINUE, tmp_path / "snapshot", tmp_path / "batch"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    session.resume("idle")
    found = session.push("s", more), session.finish()
    names = ("kinds", "late", "idle")
    rows = [f"{name} {part} {found[part][name].to_pylist()}" for part in (0, 1) for name in names]
    assert told.splitlines() == rows
    assert found[0]["late"].num_rows > 0


def test_a_restored_session_knows_its_queries() -> None:
    session = running()
    restored = LocalSession.restore(session.snapshot())
    assert restored.queries == session.queries
    assert restored.queries["late"].complete_from_us == {"t": 30, "u": 28}
    assert not restored.queries["idle"].active


def test_a_snapshot_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = running().snapshot()
    monkeypatch.setattr(archive, "VERSION", archive.VERSION + 1)
    with pytest.raises(weft.DataError, match="is of version 5, and this weft reads version 6"):
        LocalSession.restore(snapshot)


def features() -> bytes:
    asked: Any = {"windows": {"5us": 5}, "aggs": {"s": weft.agg.sum("v")}}
    session = weft.FeatureSession(time="ts", **asked)
    session.push(pa.table({"ts": [*range(40)], "v": [1.5] * 40}))
    return session.snapshot()


@pytest.mark.parametrize("kind", [LocalSession, weft.FeatureSession])
def test_a_snapshot_that_is_cut_short_or_has_a_bit_turned_is_refused(kind: Any) -> None:
    whole = running().snapshot() if kind is LocalSession else features()
    assert kind.restore(whole)
    dice = random.Random(4)
    for at in (*range(80), *(dice.randrange(len(whole)) for _ in range(60))):
        turned = bytes([*whole[:at], whole[at] ^ (1 << dice.randrange(8)), *whole[at + 1 :]])
        for damaged in (whole[:at], turned):
            with pytest.raises(weft.DataError, match="snapshot"):
                kind.restore(damaged)


def test_a_session_goes_on_after_a_snapshot_that_was_cut_off() -> None:
    session, other = running(), running()

    def stop() -> None:
        raise MemoryError

    with stopping("snapshot.begun", stop), pytest.raises(MemoryError):
        session.snapshot()
    assert session.snapshot() == other.snapshot()
    assert session.finish() == other.finish()


def test_a_snapshot_is_checked_against_the_workload_expected() -> None:
    first = ask("a", t=weft.tumbling(10))
    session = LocalSession(weft.Workload([first]))
    session.push("s", batch(0, 3))
    snapshot = session.snapshot()
    assert LocalSession.restore(snapshot, weft.Workload([first])).metrics.events == 3
    for other in (ask("a", t=weft.tumbling(20)), ask("b", t=weft.tumbling(10))):
        with pytest.raises(weft.DataError, match="another workload"):
            LocalSession.restore(snapshot, weft.Workload([other]))


def test_a_snapshot_is_checked_against_the_plan_expected() -> None:
    windows = weft.Workload([ask("a", t=weft.tumbling(10), h=weft.hopping(20, 10))])
    plans = [weft.optimize(windows, planner, "local") for planner in ("slice", "independent")]
    session = LocalSession(plans[0])
    session.push("s", batch(0, 3))
    snapshot = session.snapshot()
    assert LocalSession.restore(snapshot, plans[0]).metrics.events == 3
    with pytest.raises(weft.DataError, match=r"is of plan .*, not of plan"):
        LocalSession.restore(snapshot, plans[1])


def test_a_plan_of_two_sources_is_restored() -> None:
    other = weft.Query("b", source="t", time="ts", windows={"w": weft.tumbling(5)},
                       aggs={"n": weft.agg.count()})  # fmt: skip
    plan = weft.optimize(weft.Workload([ask("a", t=weft.tumbling(10)), other]), engine="local")
    session = LocalSession(plan)
    session.push("t", pa.table({"ts": [1, 2]}))
    session = LocalSession.restore(session.snapshot(), plan)
    assert session.push("t", pa.table({"ts": [7]}))["b"]["n"].to_pylist() == [2]


def test_a_custom_aggregate_is_restored_where_it_is_defined() -> None:
    def total(name: str, sign: int) -> Any:
        return weft.agg.custom(
            name, lift=lambda x: sign * x, combine=lambda a, b: a + b, lower=lambda p: p,
            identity=0, commutative=True, idempotent=False, examples=[(1,), (2,)],
        )  # fmt: skip

    query = weft.Query("q", source="s", time="ts", windows={"t": weft.tumbling(10)},
                       aggs={"v": total("snapshot_total", 1)("x")})  # fmt: skip
    session = LocalSession(weft.Workload([query]))
    session.push("s", batch(0, 3))
    session = LocalSession.restore(session.snapshot())
    assert session.finish()["v"].to_pylist() == [3]


def test_many_small_slices_stay_compact() -> None:
    session = LocalSession(weft.Workload([ask("a", h=weft.hopping(10_000, 10))]))
    session.push("s", batch(0, 4000))
    assert session.metrics.open_slices > 2000
    assert len(session.snapshot()) < 100 * session.metrics.open_slices
