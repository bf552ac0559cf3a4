"""Rows that are put in order by counting: where sorting them puts them, or not at all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engines.local.output.closed import Closed
from weft.engines.local.output.counting_order import MOST_BUCKETS, placed
from weft.engines.local.output.tables import result_order

KEYS = 5


def window_of(place: int, cells: list[tuple[int, int]], slide: int, length: int) -> Closed:
    """Make rows of one periodic window from the keys and numbers of its instances."""
    keys, numbers = (np.array(column) for column in zip(*sorted(set(cells)), strict=True))
    starts = numbers * slide - 7
    values = pa.array(1000 * place + keys * 100 + numbers)
    return Closed("q", np.full(keys.size, place), keys, starts, starts + length, (values,))


cells = st.lists(st.tuples(st.integers(0, KEYS - 1), st.integers(-3, 4)), min_size=1)
windows = st.lists(st.tuples(cells, st.integers(1, 6), st.integers(1, 30)), min_size=1, max_size=4)


@settings(deadline=None)
@given(windows, st.permutations(range(KEYS)))
def test_counting_puts_rows_where_sorting_does(shapes, ranks) -> None:
    closed = [window_of(place, *shape) for place, shape in enumerate(shapes)]
    placement = placed(closed, np.array(ranks))
    assert placement is not None
    keys, places, starts, ends = (
        np.concatenate([one[at] for one in closed]) for at in (2, 1, 3, 4)
    )
    order = result_order(ends, places, starts, np.array(ranks)[keys])
    assert placement.order().tolist() == order.tolist()
    assert placement.written([one.keys for one in closed]).tolist() == keys[order].tolist()
    spread = [placement.repeated(pa.array(column)) for column in placement[1:4]]
    assert [column.to_pylist() for column in spread] == [
        column[order].tolist() for column in (places, starts, ends)
    ]
    values = pa.concat_arrays([one.values[0] for one in closed])
    found = placement.in_order([one.values[0] for one in closed])
    assert found.equals(values.take(pa.array(order)))


ONE = window_of(0, [(0, 1), (1, 1), (1, 2)], 10, 20)
FAR = window_of(0, [(0, 0), (0, MOST_BUCKETS * 3), (1, 1)], 10, 20)


@pytest.mark.parametrize(
    "closed",
    [
        pytest.param([ONE, ONE], id="one window in two parts"),
        pytest.param([ONE._replace(keys=ONE.keys[::-1])], id="keys that go back"),
        pytest.param([ONE._replace(ends_us=ONE.ends_us + ONE.keys)], id="several lengths"),
        pytest.param([ONE._replace(places=np.array([0, 1, 1]))], id="several windows"),
        pytest.param([FAR], id="far more instances than rows"),
    ],
)
def test_what_is_no_periodic_window_is_left_to_sorting(closed) -> None:
    assert placed(closed, np.arange(2)) is None


@pytest.mark.parametrize("values", [[1, None, 3], ["a", "b", "c"], [True, False, True]])
def test_values_of_other_kinds_are_left_to_the_order(values) -> None:
    placement = placed([ONE], np.arange(2))
    assert placement is not None
    assert placement.in_order([pa.array(values)]) is None
