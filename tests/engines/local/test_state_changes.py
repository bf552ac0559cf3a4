"""State as named chunks: what changed is enough to go on, and no more than what changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft
from weft.engines.local.engine import types_of
from weft.engines.local.operator import ScopeOperator
from weft.engines.local.output.tables import result_table
from weft.engines.local.running_scopes import running_scopes
from weft.engines.local.state import slice_stretches
from weft.engines.local.state.chunks import flow_chunk, read_flow
from weft.engines.local.windows.events import read_scan
from weft.engines.schema import result_schema
from weft.plan.nodes import topological
from weft.testing.strategies import events, windows, workloads

if TYPE_CHECKING:
    from weft.engines.local.output.closed import Closed
    from weft.engines.local.state.journal import StateChanges

RELAXED = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


class Host:
    """Drives the operators of a workload, and keeps what they say they changed."""

    def __init__(
        self, workload: weft.Workload, schema: pa.Schema, technique: str | None = None
    ) -> None:
        # One operator is driven by itself: none regroups what another has sliced.
        planner = "auto" if technique is None else "slice"
        self.plan = weft.optimize(
            workload, planner, engine="local", key_sets="apart", technique=technique
        )
        self.schema = schema
        self.operators = [one.operator for ops in running_scopes(self.plan).values() for one in ops]
        self.chunks: list[dict[str, bytes]] = [{} for _ in self.operators]
        self.closed: dict[str, list[pa.Table]] = {q.name: [] for q in workload.queries}

    def push(self, batch: pa.Table, watermark_us: int | None) -> None:
        for operator in self.operators:
            timed = read_scan(operator.scan, batch)
            operator.process(timed)
            self.take(operator, operator.advance(watermark_us, self.types(operator)))

    def types(self, operator: ScopeOperator) -> Any:
        return types_of(operator.emits, self.schema)

    def take(self, operator: ScopeOperator, closed: list[Closed]) -> None:
        for one in closed:
            query = next(q for q in self.plan.queries if q.name == one.query)
            labels = [e.label for e in operator.emits if e.query == one.query]
            schema = result_schema(query, self.schema)
            self.closed[one.query].append(result_table(schema, labels, operator.codes, [one]))

    def write(self) -> list[StateChanges]:
        found = [operator.changes() for operator in self.operators]
        for changes, chunks in zip(found, self.chunks, strict=True):
            changes.apply(chunks)
        return found

    def move(self) -> None:
        """Go on in operators that know nothing but the chunks."""
        self.operators = [
            ScopeOperator.restored(one.scan, one.keys, topological(one.emits), one.emits, dict(own))
            for one, own in zip(self.operators, self.chunks, strict=True)
        ]


def batches(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(at, size) for at in range(0, table.num_rows, size)]


@RELAXED
@given(
    workload=workloads(windows(), most=2),
    table=events(),
    size=st.integers(1, 9),
    delay=st.sampled_from([0, 3, 100]),
    cuts=st.lists(st.sampled_from(["nothing", "write", "move"]), min_size=40, max_size=40),
    together=st.sampled_from([2, 3, slice_stretches.TOGETHER]),
)
def test_an_operator_restored_from_the_changes_so_far_goes_on_with_identical_rows(
    workload: weft.Workload,
    table: pa.Table,
    size: int,
    delay: int,
    cuts: list[str],
    together: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slice_stretches, "TOGETHER", together)
        go_on_from_changes(workload, table, size, delay, cuts)


def go_on_from_changes(
    workload: weft.Workload, table: pa.Table, size: int, delay: int, cuts: list[str]
) -> None:
    table = table.sort_by([("ts", "ascending")])
    host, moving = Host(workload, table.schema), Host(workload, table.schema)
    for batch, cut in zip(batches(table, size), cuts, strict=False):
        latest = pa.compute.max(batch["ts"].cast(pa.int64())).as_py()
        watermark = -(10**9) if latest is None else latest - delay
        for one in (host, moving):
            one.push(batch, watermark)
        if cut != "nothing":
            moving.write()
        if cut == "move":
            moving.move()
    for one in (host, moving):
        for operator in one.operators:
            one.take(operator, operator.advance(None, one.types(operator)))
    for name, tables in host.closed.items():
        got, wanted = ([t.to_pylist() for t in ts] for ts in (moving.closed[name], tables))
        assert repr(got) == repr(wanted)  # as text, because NaN is not equal to itself
    moving.write()
    left = {name.partition("/")[0] for chunks in moving.chunks for name in chunks}
    assert left <= {"counters", "keys", "window"}


def one_window(technique: str | None = None, **windows: Any) -> Host:
    query = weft.Query(
        "q", source="s", time="ts", keys=["k"], windows=windows, aggs={"n": weft.agg.sum("x")}
    )
    return Host(weft.Workload([query]), batch_at(0).schema, technique)


def batch_at(*times: int, key: str = "a") -> pa.Table:
    ones = [1] * len(times)
    return pa.table({"ts": pa.array(times, pa.int64()), "k": [key] * len(times), "x": ones})


def test_a_push_that_touches_three_slices_writes_three_slices() -> None:
    host = one_window(w=weft.hopping(1000, 10))
    host.push(batch_at(*range(600)), 0)
    (first,) = host.write()
    assert sum(name.startswith("slices/") for name in first.written) == 60
    host.push(batch_at(505, 515, 525), 1)
    (changes,) = host.write()
    names = {name.rpartition("/")[2] for name in changes.written if name.startswith("slices/")}
    assert names == {"500", "510", "520"}
    assert set(changes.written) - {n for n in changes.written if n.startswith("slices/")} == {
        "counters"
    }
    assert changes.removed == ()


def test_slices_that_no_event_comes_to_share_a_chunk() -> None:
    host = one_window(w=weft.hopping(10_000, 10))
    host.push(batch_at(*range(0, 9000, 10)), 0)
    (first,) = host.write()
    assert sum(name.startswith("slices/") for name in first.written) < 900 / 6
    host.push(batch_at(25, 9000), 1)
    (changes,) = host.write()
    names = {name.rpartition("/")[2] for name in changes.written if name.startswith("slices/")}
    assert {"0:630", "9000"} <= names
    host.move()
    host.push(batch_at(9010), 9010)
    assert sum(map(len, host.closed["q"])) == 901


def test_many_new_slices_of_one_push_share_chunks_but_the_newest() -> None:
    host = one_window(w=weft.hopping(100_000, 10))
    host.push(batch_at(0), 0)
    host.write()
    host.push(batch_at(*range(10, 20_010, 10)), 0)
    (changes,) = host.write()
    names = [name.rpartition("/")[2] for name in changes.written if name.startswith("slices/")]
    together, alone = ([n for n in names if (":" in n) is many] for many in (True, False))
    assert len(together) == -(-(2001 - 8) // 64)
    assert set(alone) == {f"{start}" for start in range(19_930, 20_010, 10)}
    host.move()
    host.push(batch_at(20_010), 100_000)
    (rows,) = host.closed["q"]
    assert max(rows["n"].to_pylist()) == 2002


def test_however_many_slices_are_new_they_share_few_chunks() -> None:
    host = one_window(w=weft.hopping(1_000_000, 10))
    for first in (0, 300_000):
        host.push(batch_at(*range(first, first + 300_000, 10)), 0)
        (changes,) = host.write()
        assert sum(name.startswith("slices/") for name in changes.written) <= 64 + 8


def test_chunks_in_the_order_of_time_are_read_too() -> None:
    """As checkpoints had them before they were sorted by keys."""
    host, moving = (one_window("two_stacks_lite", w=weft.hopping(1000, 10)) for _ in range(2))
    for one in (host, moving):
        for key in "ba":
            one.push(batch_at(*range(0, 2000, 10), key=key), 0)
        one.push(batch_at(2000), 1500)
    moving.write()
    (chunks,) = moving.chunks
    (base,) = moving.operators[0].plan.bases.values()
    for name in [name for name in chunks if name.startswith("slices/")]:
        flow = read_flow(chunks[name], tuple(base.partials))
        chunks[name] = flow_chunk(flow.take(np.argsort(flow.starts_us, kind="stable")))
    moving.move()
    (operator,) = moving.operators
    held = operator.slices_of(next(iter(operator.plan.bases)))
    assert any(len(flow) > 64 for flow in held)
    assert all((np.diff(flow.keys) >= 0).all() for flow in held)
    for one in (host, moving):
        one.push(batch_at(2010), 2010)
        one.push(batch_at(2500), None)
    rows = [[t.to_pylist() for t in one.closed["q"]] for one in (host, moving)]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 3


def test_slices_that_nobody_needs_are_removed() -> None:
    host = one_window(w=weft.tumbling(10))
    host.push(batch_at(1, 11, 21), 0)
    host.write()
    host.push(batch_at(31), 25)
    (changes,) = host.write()
    assert sorted(name.rpartition("/")[2] for name in changes.removed) == ["0", "10"]


def test_nothing_is_written_when_nothing_happened() -> None:
    host = one_window(w=weft.tumbling(10), s=weft.session(5), c=weft.counting(3))
    host.push(batch_at(1, 11, 21), 15)
    host.write()
    (changes,) = host.write()
    assert (changes.written, changes.removed) == ({}, ())
    host.move()
    (changes,) = host.write()
    assert (changes.written, changes.removed) == ({}, ())


def test_keys_are_written_as_few_increments_that_together_hold_all() -> None:
    host = one_window(w=weft.tumbling(10**6))
    sizes = []
    for at in range(64):
        host.push(batch_at(at, key=f"key{at}"), 0)
        (changes,) = host.write()
        sizes.append(sum(name.startswith("keys/") for name in changes.written))
        assert sum(name.startswith("keys/") for name in host.chunks[0]) <= 7
    assert set(sizes) == {1}
    host.move()
    assert host.operators[0].codes.columns[0].values.to_pylist() == [f"key{n}" for n in range(64)]


def test_changes_that_a_failed_batch_rolled_back_are_not_lost() -> None:
    host = one_window(w=weft.tumbling(10))
    host.push(batch_at(1), 0)
    host.write()
    (operator,) = host.operators
    host.push(batch_at(2), 0)
    before = operator.saved()
    host.push(batch_at(13), 0)
    host.operators = [before]
    (changes,) = host.write()
    assert {n.rpartition("/")[2] for n in changes.written if n.startswith("slices")} == {"0"}


@pytest.mark.parametrize("kind", [weft.session(5), weft.counting(4, 2), weft.punctuated("x > 0")])
def test_waiting_events_are_written_once(kind: Any) -> None:
    host = one_window(w=kind)
    host.push(batch_at(100, 101), 0)
    (first,) = host.write()
    host.push(batch_at(102), 1)
    (second,) = host.write()
    assert sum(name.startswith("waiting/") for name in first.written) == 1
    assert sum(name.startswith("waiting/") for name in second.written) == 1
    assert second.removed == ()
