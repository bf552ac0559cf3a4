"""A scope described on one Python is the same operator on another."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import weft
from weft import agg
from weft.engines.spark.columnar.hosted_operator import END, HostedScope
from weft.plan import Plan
from weft.plan.nodes import FOLD, Emit, Roll, Scan, topological
from weft.plan.planned_scope import planned_scopes
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from pathlib import Path

TABLE = pa.table(
    {
        "ts": pa.array([1, 2, 3, 7, 8], pa.timestamp("us", "UTC")),
        "k": ["a", "b", "a", "a", "a"],
        "x": [1, 2, 3, 4, 5],
    }
)


def hosted(windows: dict[str, Any], aggs: dict[str, Any]) -> HostedScope:
    query = weft.Query("q", source="t", time="ts", keys=["k"], windows=windows, aggs=aggs)
    (scope,) = planned_scopes(weft.optimize(weft.Workload([query])))
    return HostedScope(scope.emits, TABLE.schema)


def test_rows_carry_the_emit_the_key_the_bounds_and_the_aggregates() -> None:
    scope = hosted({"4": weft.tumbling(4), "s": weft.session(2)}, {"s": agg.sum("x")})
    host = HostedScope.load(scope.dump()).open()
    assert host.process(TABLE) == 8
    early, late = host.advance(6), host.advance(None)
    assert early.schema == late.schema == scope.output
    assert early.column_names == ["node", "k0", "start", END, "v0"]
    found = {tuple(row.values()) for part in (early, late) for row in part.to_pylist()}
    assert found == {
        (0, "a", 0, 4, 4),
        (0, "b", 0, 4, 2),
        (1, "a", 1, 5, 4),
        (1, "b", 2, 4, 2),
        (0, "a", 4, 8, 4),
        (0, "a", 8, 12, 5),
        (1, "a", 7, 10, 9),
    }


def test_custom_aggregates_and_local_windows_reach_a_process_that_never_saw_them(
    tmp_path: Path,
) -> None:
    class Pairs(weft.UserWindow):
        def begins(self, event: Any, state: dict[str, Any]) -> int:
            state["seen"] = state.get("seen", 0) + 1
            return state["seen"] % 2

        def ends(self, event: Any, state: dict[str, Any]) -> int:
            return 1 if state.get("seen", 0) and state["seen"] % 2 == 0 else 0

    weights = {"offset": 10}
    shifted = agg.custom(
        "shifted_total",
        lift=lambda x: x + weights["offset"],
        combine=lambda a, b: a + b,
        lower=lambda total: total / 2,
        identity=0,
        commutative=True,
        idempotent=False,
    )
    scope = hosted({"u": Pairs()}, {"v": shifted("x")})
    assert scope.output.field("v0").type == pa.float64()
    assert rows_elsewhere(scope, tmp_path) == "[6.0, 12.0, 14.5]"


OWN_MODULE = """
import weft

LENGTH = 2

class Pairs(weft.UserWindow):
    def begins(self, event, state):
        state["seen"] = state.get("seen", 0) + 1
        return state["seen"] % LENGTH

    def ends(self, event, state):
        return 1 if state.get("seen", 0) and state["seen"] % LENGTH == 0 else 0

def add(a, b):
    return a + b

total = weft.agg.custom(
    "total_of_own_module", lift=float, combine=add, lower=float, identity=0.0,
    commutative=True, idempotent=False,
)
"""


def test_a_module_of_the_users_own_goes_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is on the path of this process only, as that of a script is."""
    folder = tmp_path / "beside_the_script"
    folder.mkdir()
    (folder / "own_windows.py").write_text(OWN_MODULE)
    monkeypatch.syspath_prepend(str(folder))
    own = importlib.import_module("own_windows")
    scope = hosted({"u": own.Pairs()}, {"v": own.total("x")})
    assert rows_elsewhere(scope, tmp_path) == "[2.0, 4.0, 9.0]"
    monkeypatch.setattr(own, "LENGTH", threading.Lock())
    assert HostedScope.load(scope.dump()).emits == scope.emits  # by name, where that is known
    assert not cloudpickle.list_registry_pickle_by_value()  # type: ignore[no-untyped-call]


def rows_elsewhere(scope: HostedScope, folder: Path) -> str:
    """Run a scope in another process, over the table."""
    described, batch = folder / "scope", folder / "batch.arrow"
    described.write_bytes(scope.dump())
    with pa.ipc.new_file(batch, TABLE.schema) as writer:
        writer.write_table(TABLE)
    program = f"""
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from weft.engines.spark.columnar.hosted_operator import HostedScope
host = HostedScope.load(open({str(described)!r}, "rb").read()).open()
host.process(pa.ipc.open_file({str(batch)!r}).read_all())
print(sorted(host.advance(None)["v0"].to_pylist()))
"""
    run = [sys.executable, "-c", program]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_results_of_a_query_stand_side_by_side_in_its_scope() -> None:
    scan = Scan("t", "ts", None, ())
    calls = (("n", agg.count()),)
    rolls = [Roll((scan,), PeriodicWindow(w, w), FOLD, (), agg.count().partials) for w in (2, 3, 5)]
    emits = tuple(
        Emit((roll,), query, str(roll.window), calls)
        for roll, query in zip(rolls, ("a", "b", "a"), strict=True)
    )
    nodes = topological(emits)
    plan = Plan(nodes, "by hand", "spark", "none", "", (0.0,) * len(nodes))
    (scope,) = planned_scopes(plan)
    assert [emit.query for emit in scope.emits] == ["a", "a", "b"]


def test_a_chain_of_thousands_of_nodes_is_described() -> None:
    scan = Scan("t", "ts", None, ("x",))
    partials = agg.sum("x").partials
    roll = Roll((scan,), PeriodicWindow(1, 1), FOLD, (), partials)
    for width in range(2, 3000):
        roll = Roll((roll,), PeriodicWindow(width, width), FOLD, (), partials)
    emit = Emit((roll,), "q", "w", (("s", agg.sum("x")),))
    scope = HostedScope((emit,), TABLE.schema)
    assert HostedScope.load(scope.dump()).emits == scope.emits


def test_a_custom_aggregate_whose_type_cannot_be_told_is_refused() -> None:
    broken = agg.custom(
        "broken_on_numbers",
        lift=lambda x: x.upper(),
        combine=lambda a, b: a,
        lower=lambda p: p,
        identity="",
        commutative=True,
        idempotent=True,
    )
    with pytest.raises(weft.QueryError, match=r"the type of broken_on_numbers\(x\) is not known"):
        _ = hosted({"4": weft.tumbling(4)}, {"v": broken("x")}).output


def test_a_result_that_does_not_fit_its_type_is_a_clear_error() -> None:
    fickle = agg.custom(
        "fickle_type",
        lift=lambda x: x,
        combine=max,
        lower=lambda p: p if p < 3 else "many",
        identity=0,
        commutative=True,
        idempotent=True,
    )
    host = hosted({"1": weft.tumbling(1)}, {"v": fickle("x")}).open()
    host.process(TABLE.slice(2))
    with pytest.raises(weft.DataError, match="does not fit the column's type int64"):
        host.advance(None)
