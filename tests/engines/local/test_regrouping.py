"""Sessions whose coarser key sets regroup the slices of finer ones, and take no events for it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import weft
from sampling import examples
from weft import agg
from weft.engines.local.engine import LocalEngine
from weft.engines.reference.engine import ReferenceEngine
from weft.errors import UnsupportedError
from weft.plan import FOLD, Emit, Plan, Roll, Scan, Slice
from weft.plan.nodes import regroups, topological
from weft.testing import assert_same_rows
from weft.testing.strategies import events, periodic_windows, queries, windows, workloads
from weft.window import Edges, PeriodicWindow

RELAXED = settings(deadline=None, max_examples=examples(40), suppress_health_check=[*HealthCheck])
Found = pa.Table | dict[str, pa.Table]
ASK = {"source": "t", "time": "ts", "aggs": {"n": agg.count(), "s": agg.sum("x")}}
WINDOWS = {"10": weft.tumbling(10), "20/5": weft.hopping(20, 5)}
KEY_SETS = {"pair": ["a", "b"], "one": ["a"], "none": []}
PAIRS = weft.Workload(
    weft.Query(name, keys=keys, windows=WINDOWS, **ASK) for name, keys in KEY_SETS.items()
)


def batch(*times: int) -> pa.Table:
    """Events whose keys follow from their times."""
    columns = {"a": [t % 3 for t in times], "b": [str(t % 5) for t in times]}
    return pa.table({"ts": list(times), **columns, "x": [float(t) for t in times]})


def regrouped(delay: int = 0) -> weft.LocalSession:
    plan = weft.optimize(PAIRS, engine="local", session=True, key_sets="together")
    assert sum(regroups(node) for node in plan.nodes if isinstance(node, Slice | Roll)) >= 2
    return weft.LocalSession(plan, watermark=delay)


def by_query(found: Found, name: str) -> dict[str, pa.Table]:
    return found if isinstance(found, dict) else {name: found}


def events_read(session: weft.LocalSession) -> int:
    return session.metrics.events


def test_a_push_is_read_once_for_all_key_sets() -> None:
    session = regrouped()
    session.push("t", batch(1, 2, 3, 8))
    assert events_read(session) == 4
    session.push("t", batch(9, 31, 33))
    assert events_read(session) == 7


def test_a_push_with_late_events_is_read_by_each_key_set() -> None:
    """Which events come too late depends on the windows of a query."""
    session = regrouped()
    session.push("t", batch(1, 2, 30))
    session.push("t", batch(4, 31))
    assert events_read(session) == 3 + 3 * 1
    assert dict(session.metrics.late) == {"pair": 1, "one": 1, "none": 1}
    session.push("t", batch(32))
    assert events_read(session) == 3 + 3 * 1 + 1


def test_a_push_that_fails_leaves_the_codes_of_keys_as_they_were() -> None:
    session, other = regrouped(5), regrouped(5)
    for one in (session, other):
        one.push("t", batch(1, 2))
    bad = batch(3, 4, 90).set_column(3, "x", pa.array(["no", "number", "here"]))
    with pytest.raises(weft.WeftError):
        session.push("t", bad)
    for times in ((7, 9, 11), (40, 41, 44)):
        found, wanted = session.push("t", batch(*times)), other.push("t", batch(*times))
        assert found == wanted


def test_queries_that_come_and_go_find_all_slices() -> None:
    """Whoever had the finer slices may go: the others then read events by themselves."""
    session = regrouped()
    session.push("t", batch(1, 2, 3, 8))
    session.suspend("pair")
    found = session.push("t", batch(12, 33))
    assert found["none"]["n"].to_pylist()[:2] == [4, 4]
    registered = session.resume("pair")
    assert registered.complete_from_us["10"] == 40
    assert session.push("t", batch(41, 44, 60))["pair"].num_rows > 0


@RELAXED
@given(
    workload=workloads(st.one_of(periodic_windows(), windows()), most=4),
    added=queries(periodic_windows(), "added"),
    table=events(),
    size=st.integers(1, 9),
    delay=st.sampled_from([0, 0, 3, 20]),
    change=st.integers(0, 3),
)
def test_sessions_give_the_same_rows_whether_they_regroup_or_not(
    workload: weft.Workload,
    added: weft.Query,
    table: pa.Table,
    size: int,
    delay: int,
    change: int,
) -> None:
    """With snapshots after every push, and with queries that come and go."""
    assume(table.num_rows)  # the first batch tells the types
    together = weft.optimize(workload, engine="local", session=True, key_sets="together")
    note(together.explain())
    sessions = [
        weft.LocalSession(together, watermark=delay),
        weft.LocalSession(
            weft.optimize(workload, engine="local", session=True, key_sets="apart"), delay
        ),
    ]
    asked = {query.name: query for query in (*workload, added)}
    names = list(asked)

    def assert_alike(found: Found, wanted: Found) -> None:
        for name, rows in by_query(found, names[0]).items():
            assert_same_rows(asked[name], rows, by_query(wanted, names[0])[name])

    for number, at in enumerate(range(0, table.num_rows, size)):
        if number == change:
            for one in sessions:
                one.register(added)
        if number == change + 1:
            for one in sessions:
                one.suspend(names[0])
        sessions[0] = weft.LocalSession.restore(sessions[0].snapshot())
        assert_alike(*(one.push("events", table.slice(at, size)) for one in sessions))
        assert sessions[0].metrics.late == sessions[1].metrics.late
    assert_alike(*(one.finish() for one in sessions))


def plan_by_hand(*, own: bool) -> Plan:
    """Slices by (a, b) regrouped to a, and those to none; `own`: with windows by (a, b) as well."""
    plan = weft.optimize(PAIRS, engine="local", session=True, key_sets="apart")
    ten, count = PeriodicWindow(10, 10), agg.count()
    scan, edges, partials = Scan("t", "ts", None, ("a", "b")), Edges.of([ten]), count.partials
    pair = Slice(scan, (("a", "a"), ("b", "b")), edges, partials)
    one = Slice(pair, (("a", "a"),), edges, partials)
    none = Slice(one, (), edges, partials)
    chosen = {"pair": pair, "one": one, "none": none} if own else {"none": none}
    emits = tuple(
        Emit((Roll((s,), ten, FOLD, s.keys, partials),), name, "10", (("n", count),))
        for name, s in chosen.items()
    )
    nodes = topological(emits)
    costs = (0.0,) * len(nodes)
    return Plan(nodes, "slice", "local", plan.model, plan.unit, costs, (), plan.statistics)


@pytest.mark.parametrize("own", [True, False])
def test_slices_that_are_regrouped_are_regrouped_again(own: bool) -> None:
    plan, table = plan_by_hand(own=own), batch(1, 2, 3, 8, 12, 33)
    wanted = ReferenceEngine().run(plan, {"t": table})
    found = LocalEngine().run(plan, {"t": table})
    session = weft.LocalSession(plan, watermark=100)
    for at in range(table.num_rows):
        session.push("t", table.slice(at, 1))
    closed = by_query(session.finish(), "none")
    for query in plan.queries:
        assert_same_rows(query, found[query.name], wanted[query.name])
        assert_same_rows(query, closed[query.name], wanted[query.name])
    if not own:
        assert session.metrics.open_slices == 0


def test_slices_of_fewer_keys_come_from_one_place() -> None:
    plan = plan_by_hand(own=True)
    emit = next(e for e in plan.emits if e.query == "one")
    slices = Slice(plan.scans[0], emit.keys, Edges.of([PeriodicWindow(7, 7)]), emit.needed)
    roll = Roll((slices,), PeriodicWindow(7, 7), FOLD, emit.keys, emit.needed)
    mixed = Emit((roll,), "one", "7", emit.outputs)
    nodes = topological((*plan.emits, mixed))
    plan = Plan(
        nodes, "slice", "local", plan.model, plan.unit, (0.0,) * len(nodes), (), plan.statistics
    )
    with pytest.raises(UnsupportedError, match="regroup some slices and cut others from events"):
        LocalEngine().run(plan, {"t": batch(1, 2)})
