"""Nodes are values: equal ones are one, shared ones are listed once, wrong ones do not exist."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from weft.aggregates import AggregateCall, Partial
from weft.errors import InternalError, QueryError
from weft.plan import FOLD, STAIR, Emit, Join, JoinSide, Plan, Roll, Scan, Slice
from weft.plan.nodes import topological
from weft.window import Edges, hopping, tumbling

KEYS = (("device", "device"),)
MIN = (Partial("min", ("temp",)),)
LOW = (("lo", AggregateCall("min", ("temp",))),)
SCAN = Scan("readings", "ts", None, ("device", "temp"))


def roll(minutes: int, feeder: Scan | Slice | Roll = SCAN) -> Roll:
    return Roll((feeder,), tumbling(f"{minutes} minutes"), FOLD, KEYS, MIN)


def test_equal_nodes_are_the_same_node() -> None:
    assert roll(20) == roll(20)
    assert hash(roll(20)) == hash(roll(20))
    assert roll(20) != roll(30)
    assert len({roll(20), roll(20), roll(30)}) == 2


def test_nodes_of_different_kinds_are_never_equal() -> None:
    slices = Slice(SCAN, KEYS, Edges.of([tumbling("20 minutes")]), MIN)
    assert slices != roll(20)
    assert len({SCAN, slices, roll(20)}) == 3


def test_nodes_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        SCAN.source = "other"


def test_a_changed_copy_forgets_the_hash_of_the_original() -> None:
    before = hash(SCAN)
    assert hash(replace(SCAN, source="other")) != before


def test_a_pickled_node_is_equal_again() -> None:
    node = roll(40, roll(20))
    hash(node)
    copy = pickle.loads(pickle.dumps(node))
    assert copy == node
    assert hash(copy) == hash(node)


def test_topological_order_puts_inputs_first_and_shared_nodes_once() -> None:
    shared = roll(10)
    emits = tuple(Emit((roll(m, shared),), "lows", f"{m}m", LOW) for m in (20, 30))
    nodes = topological(emits)
    assert nodes == (SCAN, shared, roll(20, shared), emits[0], roll(30, shared), emits[1])


def test_topological_order_follows_long_chains() -> None:
    chain: Scan | Roll = SCAN
    for power in range(3000):
        chain = replace(roll(1), inputs=(chain,), technique=f"step {power}")
    assert len(topological((Emit((chain,), "q", "w", LOW),))) == 3002


@pytest.mark.parametrize(("technique", "inputs"), [(FOLD, 2), (STAIR, 1), (FOLD, 0)])
def test_a_roll_with_the_wrong_number_of_inputs_cannot_be_made(technique: str, inputs: int) -> None:
    with pytest.raises(InternalError, match=f"has {inputs} inputs"):
        Roll((SCAN,) * inputs, hopping("2 minutes", "1 minute"), technique, KEYS, MIN)


def test_an_emit_lists_its_columns_in_order() -> None:
    emit = Emit((roll(20),), "lows", "20m", LOW, ("id", "start", "end"))
    assert emit.columns == ("device", "id", "start", "end", "lo")


def test_a_join_reads_the_scans_of_its_sides() -> None:
    other = Scan("orders", "ts", None, ("device",))
    sides = (
        JoinSide(SCAN, "a", tumbling("1 hour"), False, KEYS, MIN),
        JoinSide(other, "b", None, False, KEYS, ()),
    )
    assert Join(sides, (("a.device", "b.device"),), KEYS, MIN).inputs == (SCAN, other)


def test_a_plan_knows_its_cost_scans_and_results() -> None:
    emit = Emit((roll(20),), "lows", "20m", LOW)
    plan = Plan((SCAN, roll(20), emit), "independent", "local", "paper", "per 20m", (0, 20, 0.5))
    assert plan.cost == 20.5
    assert plan.scans == (SCAN,)
    assert plan.emits == (emit,)
    assert str(plan) == plan.explain("text")


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    plan = Plan((), "independent", "local", "paper", "per 20m", ())
    with pytest.raises(QueryError, match="use one of text, verbose, json, mermaid, html, svg"):
        plan.explain("yaml")
