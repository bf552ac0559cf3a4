"""Small runs that can be followed with a pencil, and the invariants behind them."""

from __future__ import annotations

import numpy as np
import pytest

from weft.kernels.columns import get
from weft.kernels.operations import MAX_INT64, SUM_INT64
from weft.kernels.registry import technique
from weft.kernels.techniques import daba, daba_lite, fiba_nodes, flat_fit, two_stacks_lite
from weft.techniques import INCREMENTAL

SUM_STREAM = [6, 1, 5, 2, 8, 3, 7, 4]


@pytest.fixture
def letters(letter, word, counted_affine):
    """Slide a window of 4 over letters, one at a time, and spell what is asked."""

    class Letters:
        def __init__(self, name):
            self.kernel = technique(name, counted_affine[0])
            self.state = self.kernel.new(4)
            self.calls = counted_affine[1]

        def slide(self, text):
            for c in text:
                before = int(self.calls[0])
                scale, code = letter(c)
                answer = self.kernel.slide(([scale], [code]), 4, self.state)
                self.answer, self.spent = word((answer[0][0], answer[1][0])), self.calls[0] - before
            return self

        def spell(self, columns, first, stop):
            slots = columns[0].shape[1]
            return [word(get(columns, 0, p % slots)) for p in range(first, stop)]

    return Letters


@pytest.mark.parametrize(
    "name",
    [name for name in INCREMENTAL if name != "slick_deque"],
)
def test_windows_of_four_letters_are_spelled_in_order(name, letters):
    run = letters(name)
    answers = [run.slide(c).answer for c in "abcdefghij"]
    assert " ".join(answers) == "a ab abc abcd bcde cdef defg efgh fghi ghij"


def test_sums_of_four(compiled):
    for name in ("subtract_on_evict", "prefix_ring", "slick_deque_inv", "two_stacks_lite"):
        answers = technique(name, SUM_INT64).slide(SUM_STREAM, 4)
        assert answers.tolist() == [6, 7, 12, 14, 16, 18, 20, 22]


def test_prefix_ring_answers_ranges_from_its_prefixes():
    ring = technique("prefix_ring", SUM_INT64)
    state = ring.new(8)
    ring.slide(SUM_STREAM, 8, state)
    high, low = state.prefixes
    assert low[0, 1:9].tolist() == [6, 7, 12, 14, 22, 25, 32, 36]
    assert not high.any()
    assert [ring.query_last(state, count) for count in (4, 2, 8)] == [22, 11, 36]


def test_slick_deque_keeps_one_running_sum_per_range():
    sums = technique("slick_deque_inv", SUM_INT64).slide_ranges(SUM_STREAM, (4, 2))
    assert sums[:, 0].tolist() == [6, 7, 12, 14, 16, 18, 20, 22]
    assert sums[:, 1].tolist() == [6, 7, 6, 7, 10, 11, 10, 11]


def test_flat_fat_replaces_one_leaf_and_its_path(letters):
    run = letters("flat_fat").slide("abcd")
    trees = []
    for c in " efgh":
        if c != " ":
            run.slide(c)
        trees.append(run.spell(run.state.tree, 1, 8))
    assert trees == [
        ["abcd", "ab", "cd", "a", "b", "c", "d"],
        ["ebcd", "eb", "cd", "e", "b", "c", "d"],
        ["efcd", "ef", "cd", "e", "f", "c", "d"],
        ["efgd", "ef", "gd", "e", "f", "g", "d"],
        ["efgh", "ef", "gh", "e", "f", "g", "h"],
    ]


def test_b_int_builds_only_finished_intervals(letters):
    run = letters("b_int")
    spent = [run.slide(c).spent for c in "abcdefgh"]
    assert spent[3:] == [2, 2, 2, 2, 2]
    assert run.spell(run.state.levels, 0, 7) == ["e", "f", "g", "h", "ef", "gh", "efgh"]


def test_flat_fit_shortens_the_paths_it_takes(letters):
    run = letters("flat_fit").slide("abcde")
    assert run.spent == 3
    assert run.spell(run.state.jumps, 0, 4) == ["e", "bcde", "cde", "de"]
    assert run.state.beyond[0].tolist() == [5, 5, 5, 5]
    assert [run.slide(c).spent for c in "fghij"] == [1, 2, 2, 1, 3]


def test_two_stacks_lite_turns_its_front_into_suffixes(letters):
    run, seen = letters("two_stacks_lite").slide("abcd"), []
    for c in "efgh":
        run.slide(c)
        front, middle, end = run.state.at[0].tolist()
        back = run.spell(run.state.back, 0, 1)[0]
        ring = run.state.ring
        seen.append((run.spell(ring, front, middle), run.spell(ring, middle, end), back))
    assert seen == [
        (["bcd", "cd", "d"], ["e"], "e"),
        (["cd", "d"], ["e", "f"], "ef"),
        (["d"], ["e", "f", "g"], "efg"),
        ([], ["e", "f", "g", "h"], "efgh"),
    ]


DABA_TRACE = [
    ([0, 1, 2, 3, 4, 4], ["abcd", "b", "c", "d"]),
    ([1, 3, 3, 3, 4, 5], ["bcd", "cd", "d", "e"]),
    ([2, 3, 4, 5, 6, 6], ["cdef", "d", "e", "f"]),
    ([3, 5, 5, 5, 6, 7], ["def", "ef", "f", "g"]),
    ([4, 5, 6, 7, 8, 8], ["efgh", "f", "g", "h"]),
    ([5, 7, 7, 7, 8, 9], ["fgh", "gh", "h", "i"]),
]


@pytest.mark.parametrize(("name", "columns"), [("daba", "aggregates"), ("daba_lite", "ring")])
def test_daba_moves_six_positions(name, columns, letters):
    run, seen = letters(name).slide("abc"), []
    for c in "defghi":
        run.slide(c)
        at = run.state.at[0].tolist()
        seen.append((at, run.spell(getattr(run.state, columns), at[0], at[5])))
    assert seen == DABA_TRACE


def test_daba_lite_keeps_the_middle_and_the_newest(letters):
    run = letters("daba_lite").slide("abc")
    seen = [tuple(run.slide(c).spell(run.state.sums, 0, 2)) for c in "defg"]
    assert seen == [("cd", ""), ("d", "e"), ("ef", ""), ("f", "g")]


def test_slick_deque_keeps_only_what_can_still_win():
    deque = technique("slick_deque", MAX_INT64)
    stream, counts = [2, 5, 3, 1, 4, 4, 2, 1, 0, 3], (6, 3, 1)
    state, kept, answers = deque.new(6), [], []
    for value in stream:
        answers.append(deque.slide_ranges([value], counts, state)[0].tolist())
        head, tail = state.at[0, 2:].tolist()
        slots = [p % 8 for p in range(head, tail)]
        kept.append(" ".join(f"{state.positions[0, s]}:{state.winners[0, s]}" for s in slots))
    assert kept == [
        "0:2",
        "1:5",
        "1:5 2:3",
        "1:5 2:3 3:1",
        "1:5 4:4",
        "1:5 5:4",
        "1:5 5:4 6:2",
        "5:4 6:2 7:1",
        "5:4 6:2 7:1 8:0",
        "5:4 9:3",
    ]
    assert [answers[t] for t in (4, 6, 7, 8, 9)] == [
        [5, 4, 4],
        [5, 4, 2],
        [4, 4, 1],
        [4, 2, 0],
        [4, 3, 3],
    ]


def _tree(state, word):
    """Print the tree: times, side and aggregate of each node."""

    def node_text(node):
        entries = int(state.nodes[node, fiba_nodes.ENTRIES])
        times = state.nodes[node, fiba_nodes.TIMES :][:entries].tolist()
        children = state.nodes[node, fiba_nodes.CHILDREN :][: entries + 1].tolist()
        aggregate = word(get(state.partials, node, fiba_nodes.AGGREGATE))
        below = [] if children[0] == fiba_nodes.NONE else [node_text(child) for child in children]
        return (times, aggregate, *below)

    return node_text(int(state.at[0, fiba_nodes.ROOT]))


def test_fiba_takes_late_letters_and_lets_old_ones_go(letter, word, counted_affine):
    tree = technique("fiba", counted_affine[0])
    state = tree.new(4)  # the pool grows on the way
    for i, c in enumerate("abcdefghij"):
        state = tree.insert_at(state, 10 * i, letter(c))
    left, right = ([0, 10], "ab"), ([90], "j")
    inner = ([30, 40], "de"), ([60, 70], "gh")
    assert _tree(state, word) == ([20, 50, 80], "cdefghi", left, *inner, right)
    state = tree.insert_at(state, 35, letter("x"))
    inner = ([30, 35, 40], "dxe"), ([60, 70], "gh")
    assert _tree(state, word) == ([20, 50, 80], "cdxefghi", left, *inner, right)
    state = tree.evict(tree.evict(state))
    left, inner = ([20], "c"), (([35, 40], "xe"), ([60, 70], "gh"))
    assert _tree(state, word) == ([30, 50, 80], "dxefghi", left, *inner, right)
    assert word(tree.query_range(state, 30, 51)) == "dxef"
    state = tree.evict_before(state, 60)
    assert word(tree.query(state)) == "ghij"
    assert tree.size(tree.evict_before(state, 1000)) == 0


def _product(op, values, first, stop):
    answer = op.identity
    for position in range(first, stop):
        answer = op.combine(answer, values[position])
    return answer


@pytest.mark.parametrize("name", ["daba", "daba_lite"])
def test_the_invariants_of_daba_hold_after_every_operation(name, counted_affine):
    kernel = technique(name, counted_affine[0])
    op, rng = kernel.operation.algebra, np.random.default_rng(5)
    state, values, module = kernel.new(32), [], {"daba": daba, "daba_lite": daba_lite}[name]
    ring = state.aggregates if name == "daba" else state.ring
    for _ in range(600):
        front, left, right, gathered, back, end = state.at[0].tolist()
        if end - front == 32 or (end > front and rng.random() < 0.48):
            state = kernel.evict(state)
        else:
            values.append((int(rng.integers(2, 2**31 - 1)), int(rng.integers(1, 2**31 - 1))))
            state = kernel.insert(state, values[-1])
        front, left, right, gathered, back, end = state.at[0].tolist()
        assert front <= left <= right <= gathered <= back <= end
        if end > front:
            assert (back - left) + 1 == (back - front) - (end - back)
            assert right - left == gathered - right
        want = {i: _product(op, values, i, back) for i in range(front, left)}
        want |= {i: _product(op, values, i, right) for i in range(left, right)}
        want |= {i: _product(op, values, i, back) for i in range(gathered, back)}
        if name == "daba":
            want |= {i: _product(op, values, right, i + 1) for i in range(right, gathered)}
            want |= {i: _product(op, values, back, i + 1) for i in range(back, end)}
        else:
            want |= {i: values[i] for i in (*range(right, gathered), *range(back, end))}
            assert get(state.sums, 0, module.NEWEST) == _product(op, values, back, end)
        assert {i: get(ring, 0, i % 32) for i in want} == want


def test_the_invariants_of_flat_fit_and_flat_fat_hold(counted_affine):
    fit, fat = (technique(name, counted_affine[0]) for name in ("flat_fit", "flat_fat"))
    op, rng = fit.operation.algebra, np.random.default_rng(6)
    paths, tree, values = fit.new(16), fat.new(4), []
    for _ in range(300):
        if fit.size(paths) == 16 or (fit.size(paths) and rng.random() < 0.45):
            paths, tree = fit.evict(paths), fat.evict(tree)
        else:
            values.append((int(rng.integers(2, 2**31 - 1)), int(rng.integers(1, 2**31 - 1))))
            paths, tree = fit.insert(paths, values[-1]), fat.insert(tree, values[-1])
        assert fit.query_last(paths, int(rng.integers(0, 17))) is not None
        front, end = paths.at[0].tolist()
        for position in range(front, end):
            beyond = int(paths.beyond[0, position % 16])
            assert position < beyond <= end
            want = _product(op, values, position, beyond)
            assert get(paths.jumps, 0, position % 16) == want
        nodes = tree.tree[0].shape[1]
        for node in range(1, nodes // 2):
            both = op.combine(get(tree.tree, 0, 2 * node), get(tree.tree, 0, 2 * node + 1))
            assert get(tree.tree, 0, node) == both
        assert fat.query(tree) == _product(op, values, front, end)


def test_flat_fat_grows_and_shrinks_with_its_window():
    fat = technique("flat_fat", SUM_INT64)
    state, capacities = fat.new(1), []
    for value in range(1, 34):
        state = fat.insert(state, value)
    assert fat.query(state) == sum(range(1, 34))
    while fat.size(state):
        state = fat.evict(state)
        capacities.append(state.tree.shape[1] // 2)
    assert capacities[0] == 64
    assert capacities[-1] <= 2
    assert sorted(capacities, reverse=True) == capacities
    assert fat.query(fat.insert(state, 5)) == 5


@pytest.mark.parametrize("disorder", [0, 2, 5, 30, 200])
def test_fiba_keeps_the_order_of_time_whatever_order_it_gets(disorder, counted_affine):
    tree = technique("fiba", counted_affine[0])
    op, rng = tree.operation.algebra, np.random.default_rng(disorder)
    state, held, clock = tree.new(2), {}, 1000
    for _ in range(500):
        if held and rng.random() < 0.45:
            state = tree.evict(state)
            del held[min(held)]
        else:
            clock += 1
            time = clock - int(rng.integers(0, disorder + 1))
            value = (int(rng.integers(2, 2**31 - 1)), int(rng.integers(1, 2**31 - 1)))
            held[time] = op.combine(held[time], value) if time in held else value
            state = tree.insert_at(state, time, value)
        ordered = [held[time] for time in sorted(held)]
        assert tree.size(state) == len(held)
        assert tree.query(state) == _product(op, ordered, 0, len(ordered))
        first, stop = sorted(int(t) for t in rng.integers(min(held, default=0) - 2, clock + 3, 2))
        inside = [held[time] for time in sorted(held) if first <= time < stop]
        assert tree.query_range(state, first, stop) == _product(op, inside, 0, len(inside))


def test_bulk_evict_of_two_stacks_flips_at_most_once(counted_affine):
    operation, calls = counted_affine
    kernel = technique("two_stacks_lite", operation)
    state = kernel.new(64)
    for i in range(64):
        state = kernel.insert(state, (i + 2, i + 1))
    calls[0] = 0
    state = kernel.bulk_evict(state, 60)
    assert calls[0] == 3
    assert two_stacks_lite.capacity(state) == 64
    assert flat_fit.capacity(technique("flat_fit", operation).new(5)) == 8
