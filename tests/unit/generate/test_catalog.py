"""Sets by name: same seed, same bytes; bad options are refused with a hint."""

from __future__ import annotations

import pyarrow as pa
import pytest

from weft.errors import QueryError
from weft.generate import SETS, generate, nexmark, sensors, trace

OPTIONS = {
    "sensors": {"disorder": "3 seconds", "late_share": 0.01, "skew": 1.2},
    "nexmark": {"disorder_group": 50},
    "trace": {"skew": 1.5},
}


def as_bytes(tables: dict[str, pa.Table]) -> dict[str, bytes]:
    blocks = {}
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        blocks[name] = sink.getvalue().to_pybytes()
    return blocks


@pytest.mark.parametrize("name", SETS)
def test_same_seed_gives_the_same_bytes(name):
    first = as_bytes(generate(name, 5000, 42, **OPTIONS[name]))
    assert first == as_bytes(generate(name, 5000, 42, **OPTIONS[name]))


@pytest.mark.parametrize("name", SETS)
def test_another_seed_gives_another_table(name):
    first, second = generate(name, 5000, 42), generate(name, 5000, 43)
    assert first.keys() == second.keys()
    assert all(not first[table].equals(second[table]) for table in first)


def test_generate_names_the_tables():
    assert {name: list(generate(name, 10, 1)) for name in SETS} == {
        "nexmark": ["person", "auction", "bid"],
        "sensors": ["readings"],
        "trace": ["connections"],
    }
    assert generate("sensors", 10, 1, devices=2)["readings"].equals(sensors(10, 1, devices=2))


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (
            lambda: generate("nexmrk", 1, 1),
            "unknown data set 'nexmrk'",
            "did you mean 'nexmark'? the choices are nexmark, sensors, trace",
        ),
        (
            lambda: generate("zzz", 1, 1),
            "unknown data set 'zzz'",
            "the choices are nexmark, sensors, trace",
        ),
        (
            lambda: generate("trace", 1, 1, host=3),
            "unknown option of trace 'host'",
            "did you mean 'hosts'? the choices are rate, hosts, skew, start",
        ),
        (lambda: sensors(-1, 1), "rows cannot be -1", "give a whole number, 0 or more"),
        (lambda: sensors(1.5, 1), "rows cannot be 1.5", "give a whole number, 0 or more"),
        (lambda: sensors(True, 1), "rows cannot be True", "give a whole number, 0 or more"),
        (lambda: trace(1, -3), "seed cannot be -3", "give a whole number, 0 or more"),
        (lambda: sensors(1, 1, devices=0), "devices cannot be 0", "give a whole number, 1 or more"),
        (lambda: trace(1, 1, hosts=1), "hosts cannot be 1", "give a whole number, 2 or more"),
        (lambda: sensors(1, 1, rate=-1.0), "rate cannot be -1.0", "give a number above 0"),
        (lambda: nexmark(1, 1, rate=0.0), "rate cannot be 0.0", "give a number above 0"),
        (lambda: trace(1, 1, rate=float("nan")), "rate cannot be nan", "give a number above 0"),
        (lambda: sensors(1, 1, rate=float("inf")), "rate cannot be inf", "give a number above 0"),
        (lambda: sensors(1, 1, rate="9"), "rate cannot be '9'", "give a number above 0"),
        (lambda: sensors(1, 1, skew=-0.1), "skew cannot be -0.1", "give a number, 0 or more"),
        (
            lambda: sensors(1, 1, late_share=1.1),
            "late_share cannot be 1.1",
            "give a number between 0 and 1, such as 0.05",
        ),
        (
            lambda: sensors(1, 1, disorder="-2 seconds"),
            "disorder cannot be '-2 seconds'",
            "give a duration of 0 or more",
        ),
        (
            lambda: sensors(1, 1, start="today"),
            "start cannot be str 'today'",
            "give a datetime.datetime, or an int of microseconds since 1970 UTC",
        ),
        (
            lambda: sensors(1000, 1, rate=1e-9),
            "1000 rows at 1e-09 a second do not fit between 1 and 9999 AD",
            "raise the rate, or move the start",
        ),
        (
            lambda: nexmark(1, 1, disorder_group=0),
            "disorder_group cannot be 0",
            "give a whole number, 1 or more",
        ),
    ],
)
def test_bad_options_are_refused_with_a_hint(call, message, hint):
    with pytest.raises(QueryError) as refused:
        call()
    assert (refused.value.message, refused.value.hint) == (message, hint)
