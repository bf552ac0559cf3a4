"""Codes of keys: the same value has the same code in every batch, however it is looked up."""

from __future__ import annotations

from copy import copy

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engines.local.values.keys import ColumnCodes
from weft.engines.local.windows.flow import Flow, compacted, merged
from weft.kernels import parallel

# Close together, so looked up by position; one far away, and NULL, so looked up in the list.
values = st.integers(-60, 60) | st.just(5_000_000) | st.none()


@settings(deadline=None, max_examples=200)
@given(st.lists(st.lists(values, min_size=1, max_size=12), min_size=1, max_size=6))
def test_a_value_keeps_its_code(batches: list[list[int | None]]) -> None:
    codes, known = ColumnCodes(), {}
    for batch in batches:
        found = codes.encode(pa.array(batch, pa.int64()))
        assert codes.decode(found).to_pylist() == batch
        for value, code in zip(batch, found.tolist(), strict=True):
            assert known.setdefault(value, code) == code
    assert sorted(known.values()) == list(range(len(known)))


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("distinct", [3, 20_000])
def test_threads_give_the_codes_of_one(
    distinct: int, text: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.random.default_rng(7).integers(0, distinct, 2 * parallel.ROWS_PER_THREAD)
    names = pa.array([None, *(f"key {n}" for n in range(1, distinct))])
    batches = [names.take(pa.array(numbers)) if text else pa.array(numbers - 5)] * 2
    found: list[list[list[int]]] = []
    for threads in (1, 2):
        monkeypatch.setattr(parallel, "THREADS", threads)
        codes = ColumnCodes()
        found.append([codes.encode(batch).tolist() for batch in batches])
        assert [codes.decode(np.array(own)) for own in found[-1]] == batches
    assert found[0] == found[1]


def test_a_struct_may_hold_a_dictionary() -> None:
    words = pa.array(["b", "a", "b", None]).dictionary_encode()
    codes = ColumnCodes()
    found = codes.encode(pa.StructArray.from_arrays([words], ["word"]))
    assert found.tolist() == [0, 1, 0, 2]
    wanted = [{"word": word} for word in ("b", "a", "b", None)]
    assert codes.decode(found).to_pylist() == wanted
    assert ColumnCodes.of(codes.since(0)).decode(found).to_pylist() == wanted
    assert codes.ranks().tolist() == [2, 1, 0]


@pytest.mark.parametrize("nulls", [True, False])
def test_structs_that_come_back_from_a_list_have_the_codes_that_they_had(nulls: bool) -> None:
    random = np.random.default_rng(3)
    codes = ColumnCodes()
    batches = [  # the later, the smaller
        pa.array([None if nulls and x == 3 else {"x": 10 * (5 - at) + x} for x in own])
        for at, own in enumerate(random.integers(0, 10, (6, 50)).tolist())
    ]
    found = [codes.encode(batch) for batch in batches[:4]]
    restored = ColumnCodes.of(pa.concat_arrays([codes.since(0)[:2], codes.since(2)]))
    for own, batch in zip(found, batches[:4], strict=True):
        assert restored.decode(own).equals(batch)
    assert restored.ranks().tolist() == codes.ranks().tolist()
    kept = copy(codes)
    for batch in batches[4:]:
        assert restored.decode(restored.encode(batch)).equals(batch)
        assert codes.decode(codes.encode(batch)).equals(batch)
    assert [kept.decode(own).equals(batch) for own, batch in zip(found, batches, strict=False)] == [
        True
    ] * 4


rows = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-(2**62), 2**62) | st.integers(0, 4)),
    min_size=1,
    max_size=8,
    unique=True,
)


@settings(deadline=None, max_examples=200)
@given(st.lists(rows, min_size=1, max_size=8))
def test_runs_that_are_compacted_hold_the_same_slices(batches: list[list[tuple[int, int]]]) -> None:
    runs: list[Flow] = []
    for batch in batches:
        keys, starts = (np.array(column) for column in zip(*sorted(batch), strict=True))
        runs = compacted([*runs, Flow(keys, starts, None, {})])
    assert len(runs) <= 1 + np.log2(sum(map(len, batches)))
    whole = merged(runs)
    found = list(zip(whole.keys.tolist(), whole.starts_us.tolist(), strict=True))
    assert found == sorted({row for batch in batches for row in batch})
