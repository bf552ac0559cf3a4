from __future__ import annotations

import json

import pyarrow as pa
import pytest

import weft
from weft.generate import sensors

TABLE = sensors(300, 2, devices=3, rate=1.0)
WINDOWS = {"1m": weft.tumbling("1 minute"), "2m": weft.tumbling("2 minutes")}
AGGS = {"lo": weft.agg.min("temp"), "n": weft.agg.count()}


def workload(**settings) -> weft.Workload:
    asked = {"source": "readings", "time": "ts", "keys": ["device"], "windows": WINDOWS}
    return weft.Workload([weft.Query("q", **asked | {"aggs": AGGS} | settings)])


def test_a_plan_of_queries_that_name_the_time_or_do_not_reads_once() -> None:
    named, open_ = (
        weft.Query(n, source="readings", time=time, keys=["device"], windows=WINDOWS, aggs=AGGS)
        for n, time in (("a", "ts"), ("b", None))
    )
    plan = weft.optimize(weft.Workload([named, open_]), engine="local")
    rows = weft.run(plan, {"readings": TABLE})
    assert rows["a"].equals(rows["b"])


def test_the_same_type_comes_back() -> None:
    polars = pytest.importorskip("polars")
    arrow = weft.run(workload(), {"readings": TABLE}, engine="reference")
    pandas = weft.run(workload(), {"readings": TABLE.to_pandas()}, engine="reference")
    frame = weft.run(workload(), {"readings": polars.from_arrow(TABLE)}, engine="reference")
    assert isinstance(arrow, pa.Table)
    assert type(pandas).__module__.startswith("pandas")
    assert isinstance(frame, polars.DataFrame)
    assert arrow["lo"].to_pylist() == pandas["lo"].tolist() == frame["lo"].to_list()


def test_several_queries_give_a_mapping() -> None:
    many = weft.Workload([*workload(), *workload().queries[:0]])
    many.add(weft.Query("other", source="readings", time="ts", windows=WINDOWS, aggs=AGGS))
    results = weft.run(many, {"readings": TABLE}, engine="reference")
    assert list(results) == ["q", "other"]


def test_sql_runs_over_named_tables() -> None:
    text = "SELECT device, MIN(temp) AS lo FROM readings GROUP BY device, window(ts, '1 minute')"
    result = weft.sql(text, engine="reference", readings=TABLE)
    assert result.column_names == ["device", "window", "window_start", "window_end", "lo"]


def test_the_only_timestamp_is_the_event_time() -> None:
    named = weft.run(workload(), {"readings": TABLE}, engine="reference")
    found = weft.run(workload(time=None), {"readings": TABLE}, engine="reference")
    assert found.equals(named)
    plan = weft.optimize(workload(time=None), engine="reference")
    assert weft.run(plan, {"readings": TABLE}, engine="reference").equals(named)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: weft.run(workload(), {}, engine="reference"), weft.QueryError, "readings"),
        (
            lambda: weft.run(workload(), {"reading": TABLE}, engine="reference"),
            weft.QueryError,
            "did you mean 'reading'",
        ),
        (
            lambda: weft.run(workload(keys=["devic"]), {"readings": TABLE}, engine="reference"),
            weft.QueryError,
            "did you mean 'device'",
        ),
        (
            lambda: weft.run(workload(time="temp"), {"readings": TABLE}, engine="reference"),
            weft.DataError,
            "the time column 'temp' is of type double",
        ),
        (
            lambda: weft.run(
                workload(aggs={"s": weft.agg.sum("device")}),
                {"readings": TABLE},
                engine="reference",
            ),
            weft.QueryError,
            "device is of type string",
        ),
        (lambda: weft.run(workload(), {"readings": [1, 2]}), weft.DataError, "from list"),
        (
            lambda: weft.run(workload(), {"readings": TABLE}, engine="flink"),
            weft.QueryError,
            "unknown engine 'flink'",
        ),
        (
            lambda: weft.run(
                workload(time=None),
                {"readings": TABLE.append_column("at", TABLE["ts"])},
                engine="reference",
            ),
            weft.QueryError,
            "several timestamps: ts, at",
        ),
        (lambda: weft.optimize(workload(), planner="best"), weft.QueryError, "unknown planner"),
        (lambda: weft.optimize(workload(), engine="flink"), weft.QueryError, "unknown engine"),
        (lambda: weft.optimize(workload(), model="guess"), weft.QueryError, "unknown cost model"),
        (lambda: weft.optimize(weft.Workload()), weft.QueryError, "has no query"),
        (
            lambda: weft.optimize(workload(), technique="magic"),
            weft.QueryError,
            "unknown technique 'magic'",
        ),
        (
            lambda: weft.optimize(workload()).explain("pdf"),
            weft.QueryError,
            "cannot be explained as 'pdf'",
        ),
        (lambda: weft.Plan.from_json("{}"), weft.QueryError, "not a plan of weft"),
        (lambda: weft.Plan.from_json("hello"), weft.QueryError, "not a plan of weft"),
    ],
)
def test_mistakes_get_a_clear_answer(call, error, message: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert message in str(raised.value)
    assert "hint: " in str(raised.value)


def edited(change) -> str:
    values = json.loads(weft.optimize(workload(), planner="factor").explain("json"))
    change(values)
    return json.dumps(values)


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v["nodes"][-1].update(inputs=[99]),
        lambda v: v["nodes"][1].update(technique="magic"),
        lambda v: v["nodes"][1]["window"].update(range_us=7),
        lambda v: v.update(node_costs=[]),
        lambda v: v.update(weft_plan=99),
    ],
)
def test_an_edited_plan_is_refused(change) -> None:
    with pytest.raises(weft.QueryError):
        weft.Plan.from_json(edited(change))


def test_a_plan_keeps_the_watermark() -> None:
    plan = weft.optimize(workload(watermark="10 minutes"))
    assert plan.queries[0].watermark_us == 600_000_000
    assert weft.Plan.from_json(plan.explain("json")).queries == plan.queries


def test_joins_go_through_every_door() -> None:
    text = """SELECT a.k, COUNT(*) AS n FROM x AS a [RANGE 1 HOUR SLIDE 1 HOUR],
              y AS b [RANGE 1 HOUR SLIDE 1 HOUR] WHERE a.k = b.k GROUP BY a.k"""
    tables = {name: pa.table({"k": [1], "ts": pa.array([0], pa.timestamp("us"))}) for name in "xy"}
    assert weft.sql(text, engine="reference", **tables)["n"].to_pylist() == [1]
    plan = weft.optimize(weft.parse(text))
    again = weft.Plan.from_json(plan.explain("json"))
    assert weft.run(again, tables, engine="reference")["n"].to_pylist() == [1]
    assert weft.verify(weft.parse(text), tables, engines=("reference",)).ok


def test_statistics_of_a_source_nobody_reads_are_refused() -> None:
    with pytest.raises(weft.QueryError, match="statistics name reading,"):
        weft.optimize(workload(), statistics={"reading": weft.Statistics(rate=1.0)})


def test_nanoseconds_before_1970_belong_to_the_microsecond_before() -> None:
    table = pa.table({"ts": pa.array([-1], pa.timestamp("ns", "UTC"))})
    result = weft.aggregate(
        table,
        time="ts",
        windows={"w": weft.tumbling(1)},
        aggs={"n": weft.agg.count()},
        engine="reference",
    )
    assert result["window_start"].cast(pa.int64()).to_pylist() == [-1]


def test_times_outside_the_calendar_are_an_error_with_a_hint() -> None:
    table = pa.table({"ts": pa.array([1_700_000_000_000_000_000], pa.int64())})
    with pytest.raises(weft.DataError, match="is the time column in microseconds"):
        weft.aggregate(
            table,
            time="ts",
            windows={"w": weft.tumbling("1 hour")},
            aggs={"n": weft.agg.count()},
            engine="reference",
        )


def test_verify_finds_no_difference_between_an_engine_and_itself() -> None:
    report = weft.verify(workload(), {"readings": TABLE}, engines=("reference", "reference"))
    assert report.ok
    assert report.rows > 0
    assert report.differences == ()


OF_NUMBERS = ["sum", "avg", "var", "var_pop", "stddev", "stddev_pop", "product", "median"]


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("function", OF_NUMBERS)
def test_functions_of_numbers_refuse_text_alike(function: str, engine: str) -> None:
    asked = workload(aggs={"x": getattr(weft.agg, function)("device")})
    with pytest.raises(weft.QueryError) as refused:
        weft.run(asked, {"readings": TABLE}, engine=engine)
    assert str(refused.value) == (
        f"{function}(device) cannot be computed: device is of type string\n"
        f"hint: {function} needs numbers; cast the column, or use another aggregate"
    )


def test_a_query_by_itself_is_a_workload_of_one() -> None:
    (query,), tables = workload(), {"readings": TABLE}
    wanted = weft.run(workload(), tables)
    assert weft.run(query, tables).equals(wanted)
    assert weft.run(query, tables, engine="reference").equals(wanted)
    assert weft.optimize(query) == weft.optimize(workload())
    assert weft.verify(query, tables, engines=("reference", "local")).ok
    assert weft.Workload(query).queries == (query,)
    session = weft.LocalSession(query)
    again = weft.LocalSession.restore(session.snapshot(), query)
    assert pa.concat_tables([again.push("readings", TABLE), again.finish()]).equals(wanted)


def test_joins_by_themselves_are_workloads_of_one() -> None:
    text = """SELECT COUNT(*) AS n FROM a TIMESTAMP BY ts [RANGE 9 SECONDS SLIDE 3 SECONDS],
              b TIMESTAMP BY ts [RANGE 3 SECONDS SLIDE 3 SECONDS] WHERE a.device = b.device"""
    (join,), tables = weft.parse(text), {"a": TABLE, "b": TABLE}
    assert weft.run(join, tables).equals(weft.run(weft.parse(text), tables))


@pytest.mark.parametrize("asked", ["SELECT 1", 7, None])
def test_what_is_no_query_is_refused(asked) -> None:
    for door in (weft.optimize, weft.LocalSession, lambda it: weft.run(it, {"readings": TABLE})):
        with pytest.raises(weft.QueryError, match="neither a query nor a workload") as refused:
            door(asked)
        assert "hint: build queries with weft.Query" in str(refused.value)
