"""The entries on the local engine, on small inputs: everybody answers, and answers right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from weft.bench.frame import Case, Race
from weft.bench.race import run_entry
from weft.bench.registry import entries, select
from weft.bench.suite.growth import curves
from weft.bench.suite.local import cutty as local_cutty
from weft.bench.suite.local import cutty_runs
from weft.bench.suite.local import inputs as local_inputs
from weft.bench.suite.local import memory as local_memory
from weft.bench.suite.local import speed as local_speed
from weft.bench.suite.local import subsume as local_subsume

TABLES = [*local_cutty.ENTRIES, *local_memory.ENTRIES, *local_subsume.ENTRIES]


def small(race: Race) -> Race:
    (case,) = race.quick
    arguments = {**case.arguments, "events": 150_000 if "stream" in race.name else 20_000}
    if arguments["keys"] > 10:
        arguments["keys"] = 50
    return replace(race, quick=(Case(case.label, arguments, arguments["events"]),), rounds=1)


@pytest.mark.parametrize("race", local_speed.ENTRIES, ids=lambda race: race.name)
def test_every_contender_of_a_local_race_is_right(race: Race) -> None:
    outcome = run_entry(small(race), quick=True)
    assert outcome.status == "ok", outcome.notes
    assert {row["contender"] for row in outcome.rows} == set(race.contenders)


@pytest.mark.parametrize("column", ["least", "k", "window_start"])
def test_a_wrong_row_is_caught(column: str) -> None:
    inputs = local_inputs.hopping_events(5_000, 3, 4, 2)
    expected = local_inputs.least_by_numpy(inputs)
    rows = local_speed._start_weft(inputs)()
    assert local_inputs.same_answer(expected, rows) == ""
    at = rows.schema.get_field_index(column)
    values = rows[column].to_pylist()
    values[7] = values[8] if values[8] != values[7] else values[0]
    wrong = rows.set_column(at, column, pa.array(values, rows.schema.field(at).type))
    assert local_inputs.same_answer(expected, wrong) != ""
    assert "shape" in local_inputs.same_answer(expected, rows.slice(1))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_local_tables_compute_their_columns(table) -> None:
    outcome = run_entry(table, quick=True)
    assert outcome.status == "ok", outcome.notes
    columns = {column.name for column in outcome.columns}
    assert all(set(row) == columns for row in outcome.rows)


@pytest.mark.parametrize("name", [*cutty_runs.TECHNIQUES, cutty_runs.NAIVE])
def test_shared_slicing_answers_every_window(name: str) -> None:
    values = np.random.default_rng(3).integers(1, 9, 400)
    for windows in (
        cutty_runs.periodic_windows(3, 400, 1_000),
        cutty_runs.session_windows(4, 400, 100),
    ):
        counts = cutty_runs.run(name, values, windows)
        wanted = [values[a:b].sum() for a, b in zip(windows.begins, windows.ends, strict=True)]
        assert counts.answers.tolist() == wanted
        assert counts.stored > 0


def test_cutting_at_begins_stores_no_more_than_cutting_at_ends_too() -> None:
    values = np.ones(5_000, np.int64)
    windows = cutty_runs.periodic_windows(5, 5_000, 100)
    found = {name: cutty_runs.run(name, values, windows) for name in cutty_runs.TECHNIQUES}
    assert found["cutty"].stored == 2 * found["cutty, lazy"].stored
    assert found["cutty, lazy"].stored <= found["pairs"].stored < found["record"].stored
    assert found["cutty"].update < found["pairs+"].update < found["record"].update
    assert found["cutty"].lift == found["cutty, lazy"].lift


@pytest.mark.parametrize("name", ["many/local", "growth/local_queries", "limit/local"])
def test_entries_on_growth_check_their_answers(name: str) -> None:
    (table,) = select([name], entries())
    outcome = run_entry(table, quick=True)
    assert outcome.status == "ok", outcome.notes
    assert len(outcome.rows) >= 2


@pytest.mark.parametrize("number", [3, 1_000])
def test_windows_of_a_point_are_all_different(number: int) -> None:
    (query,) = curves._workload(number, 1)
    assert len({window for _, window in query.windows}) == number


def test_a_point_that_loses_events_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "_DEFAULTS", {**curves._DEFAULTS, "events": 1000})
    real = curves._local_run

    def half(sizes: dict[str, int], workload: object) -> object:
        return real({**sizes, "events": 500}, workload)

    monkeypatch.setattr(curves, "_local_run", half)
    with pytest.raises(AssertionError, match="2500 events in windows, not 5000"):
        curves.measure("local", {})
