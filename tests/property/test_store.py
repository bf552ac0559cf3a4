"""Whatever is appended, replaced and asked: a store answers as a run over all events does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft
from sampling import examples
from weft.testing import assert_same_rows
from weft.testing.strategies import events, periodic_windows, workloads
from weft.window import CalendarWindow, CumulatingWindow

if TYPE_CHECKING:
    from pathlib import Path

    from weft.query import Workload

HOUR = 3_600_000_000
TIMED = st.one_of(
    periodic_windows(unit_us=HOUR),
    periodic_windows(unit_us=HOUR),
    st.builds(lambda n, s: CumulatingWindow(n * s * HOUR, s * HOUR), *[st.integers(1, 6)] * 2),
    st.sampled_from([CalendarWindow("day", "Europe/Berlin"), CalendarWindow("week")]),
)
STEPS = st.sampled_from(["append", "append", "again", "replace", "refresh", "compact"])
BATCHES = st.lists(st.tuples(STEPS, events(12, HOUR)), min_size=1, max_size=6)


def steps(
    store: weft.Store, batches: list[tuple[str, pa.Table]], workload: Workload, results: Path
) -> dict[str, pa.Table]:
    """Take the steps; return what each id should now hold."""
    held: dict[str, pa.Table] = {}
    for number, (step, table) in enumerate(batches):
        if step == "refresh":
            weft.refresh(workload, store, into=results)
        elif step == "compact":
            store.compact(unused_after=0)
        elif step == "append" or not held:
            store.append(table, id=str(number))
            held[str(number)] = table
        elif step == "again":
            store.append(table, id=next(iter(held)))
        else:
            store.replace(table, id=next(iter(held)))
            held[next(iter(held))] = table
    return held


def assert_equal_to_a_run(workload: Workload, got: Any, tables: list[pa.Table]) -> None:
    wanted = weft.run(workload, {"events": pa.concat_tables(tables)}, engine="reference")
    for query in workload:
        one = len(workload) == 1
        assert_same_rows(
            query, got if one else got[query.name], wanted if one else wanted[query.name]
        )


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(workload=workloads(TIMED), batches=BATCHES)
def test_any_steps_and_refreshes_give_what_a_run_over_all_events_does(
    tmp_path_factory: Any, workload: Workload, batches: list[tuple[str, pa.Table]]
) -> None:
    folder = tmp_path_factory.mktemp("store")
    store = weft.Store(folder / "store", workload)
    held = [*steps(store, [("append", batches[0][1]), *batches], workload, folder / "r").values()]
    assert_equal_to_a_run(workload, store.run(workload), held)
    weft.refresh(workload, store, into=folder / "r")
    wanted = store.run(workload)
    for query in workload:
        one = len(workload) == 1
        asked = wanted if one else wanted[query.name]
        got = folder / "r" if one else folder / "r" / query.name
        if asked.num_rows:
            assert_same_rows(query, pq.read_table(got), asked)
        else:
            assert not [*got.glob("*.parquet")]
