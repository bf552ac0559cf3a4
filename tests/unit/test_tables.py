"""Tables in files: formats by extension, instants, NULLs, folders, and refusals with a hint."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import DataError, WeftError
from weft.tables import EXTENSIONS, format_of, read_table, write_table

UTC_US = pa.timestamp("us", tz="UTC")
NOON = dt.datetime(2026, 1, 1, 12, 0, tzinfo=dt.UTC)

MIXED = pa.table(
    {
        "ts": pa.array([NOON, None, NOON + dt.timedelta(microseconds=1)], UTC_US),
        "device": pa.array(["a,b", None, ""]),
        "temp": pa.array([20.5, None, 21.0]),
        "n": pa.array([1, None, -(2**62)], pa.int64()),
        "ok": pa.array([True, None, False]),
    }
)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_table_with_nulls_survives_every_format(tmp_path, extension):
    path = write_table(MIXED, tmp_path / f"t{extension}")
    assert read_table(path).equals(MIXED)


@settings(deadline=None, max_examples=60)
@given(
    texts=st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs", "Cc"])), min_size=1),
    extension=st.sampled_from([".csv", ".json"]),
)
def test_text_survives_csv_and_json(tmp_path_factory, texts, extension):
    # A word beside each text, so that no column is all numbers, all instants or all NULL.
    table = pa.table({"word": ["w", *texts], "n": [*range(len(texts) + 1)]})
    path = write_table(table, tmp_path_factory.mktemp("t") / f"t{extension}")
    assert read_table(path).equals(table)


@pytest.mark.parametrize("extension", [".parquet", ".csv", ".json"])
def test_nan_and_infinity_are_numbers_and_not_null(tmp_path, extension):
    table = pa.table({"x": [1.5, float("nan"), float("inf"), float("-inf"), None]})
    found = read_table(write_table(table, tmp_path / f"t{extension}"))
    assert str(found["x"].to_pylist()) == "[1.5, nan, inf, -inf, None]"
    assert found.schema.field("x").type == pa.float64()


@pytest.mark.parametrize(
    ("texts", "want"),
    [
        (["2026-01-01T12:00:00Z"], NOON),
        (["2026-01-01 12:00:00"], NOON),
        (["2026-01-01T12:00"], NOON),
        (["2026-01-01T14:00:00+02:00"], NOON),
        (["2026-01-01T14:00:00.000000+0200"], NOON),
        (["2026-01-01T12:00:00.000000999Z"], NOON),
        (["2026-01-01T12:00:00.5"], NOON + dt.timedelta(seconds=0.5)),
        (["1969-12-31T23:59:59.999999999Z"], dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC)),
        (["2026-01-01"], NOON.replace(hour=0)),
        (["3026-01-01T12:00:00.25Z"], NOON.replace(year=3026, microsecond=250000)),
        (["2026-01-01T12:00:00", "2026-01-01T12:00:00Z"], NOON),
        (["2026-01-01T12:00:00", "2026-01-01T14:00:00.0+02:00"], NOON),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
@pytest.mark.parametrize("extension", [".csv", ".json"])
def test_iso_8601_text_becomes_instants_in_utc(tmp_path, extension, texts, want):
    path = tmp_path / f"t{extension}"
    if extension == ".csv":
        path.write_text("ts,x\n" + "".join(f"{text},1\n" for text in texts) + ",2\n")
    else:
        path.write_text("".join(f'{{"ts":"{text}"}}\n' for text in texts) + '{"ts":null}\n')
    column = read_table(path)["ts"]
    assert column.type == UTC_US
    assert column.to_pylist() == [want] * len(texts) + [None]


@pytest.mark.parametrize("text", ["2026-13-01T00:00:00.5Z", "2026-01-01 or so", "12:00"])
def test_what_only_looks_like_an_instant_stays_text(tmp_path, text):
    path = tmp_path / "t.json"
    path.write_text(f'{{"ts":"2026-01-01T12:00:00.5Z"}}\n{{"ts":"{text}"}}\n')
    assert read_table(path)["ts"].to_pylist() == ["2026-01-01T12:00:00.5Z", text]


def test_csv_null_is_a_word_without_quotes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('key,x\nNULL,1\n"NULL",null\nNA,\n')
    assert read_table(path).to_pydict() == {"key": [None, "NULL", "NA"], "x": [1, None, None]}


def test_csv_types_are_found_beyond_the_first_block(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,note\n" + "1,\n" * 400_000 + "1.5,late\n")
    table = read_table(path)
    assert table.schema.types == [pa.float64(), pa.string()]
    assert table.slice(400_000).to_pylist() == [{"x": 1.5, "note": "late"}]


def test_a_folder_is_one_table_in_order_of_file_name(tmp_path):
    for name, text in {
        "part-1.csv": "x,ts\n1,\n",
        "part-2.csv": "x,ts\n2.5,2026-01-01T12:00:00Z\n",
        "_SUCCESS": "",
        ".part-1.csv.crc": "noise",
    }.items():
        (tmp_path / name).write_text(text)
    assert read_table(tmp_path).to_pydict() == {"x": [1.0, 2.5], "ts": [None, NOON]}


def test_an_empty_json_part_adds_no_row(tmp_path):
    (tmp_path / "part-1.json").write_text('{"x":1}\n')
    (tmp_path / "part-2.json").write_text("")
    assert read_table(tmp_path).to_pydict() == {"x": [1]}


def test_a_csv_without_rows_keeps_its_columns(tmp_path):
    path = write_table(MIXED.slice(0, 0), tmp_path / "t.csv")
    assert read_table(path).column_names == MIXED.column_names


def test_dictionary_columns_are_written_as_their_values(tmp_path):
    table = pa.table({"k": pa.array(["a", "b", "a"]).dictionary_encode()})
    for extension in (".csv", ".json"):
        found = read_table(write_table(table, tmp_path / f"t{extension}"))
        assert found.to_pydict() == {"k": ["a", "b", "a"]}


def test_an_existing_file_is_kept_unless_overwrite(tmp_path):
    path = write_table(MIXED, tmp_path / "deep" / "down" / "t.parquet")
    with pytest.raises(WeftError, match=r"the file exists\nhint: .*--overwrite"):
        write_table(MIXED.slice(1), path)
    assert read_table(path).num_rows == 3
    write_table(MIXED.slice(1), path, overwrite=True)
    assert read_table(path).num_rows == 2
    assert [entry.name for entry in path.parent.iterdir()] == ["t.parquet"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = write_table(MIXED, tmp_path / "t.csv")
    with pytest.raises(DataError, match="hint: write parquet, which has every type"):
        write_table(pa.table({"x": [[1]]}), path, overwrite=True)
    assert read_table(path).equals(MIXED)
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.csv"]


def test_extensions_are_read_in_any_case():
    assert format_of("EXPORT.CSV") == "csv"


def refused(call) -> str:
    with pytest.raises(WeftError) as refusal:
        call()
    return str(refusal.value)


def test_what_cannot_be_read_is_refused_with_a_hint(tmp_path):
    pq.write_table(MIXED, tmp_path / "good.parquet")
    cases = {
        "no.csv": "there is no such file or folder\nhint: check the path",
        "goood.parquet": f"there is no such file or folder\nhint: did you mean {tmp_path}/good.par",
        "no/t.csv": f"there is no such file or folder\nhint: the folder {tmp_path}/no does not",
    }
    for name, want in cases.items():
        assert want in refused(lambda name=name: read_table(tmp_path / name))
    bad = {
        "t.xlsx": ("x", "unknown extension '.xlsx'\nhint: name the file with one of .parquet"),
        "t": ("x", "it has no extension\nhint: name the file with one of .parquet"),
        "empty.csv": ("", "the file is empty\nhint: parquet and csv name their columns"),
        "bad.parquet": ("PAR", "as parquet: "),
        "bad.csv": ("a,b\n1\n", "as csv: "),
        "list.json": ('[{"a":1}]', "hint: write one JSON object a line, without a list around"),
        "mixed.json": ('{"a":"NaN"}\n{"a":"b"}\n{"a":1}\n', "as json: "),
    }
    for name, (content, want) in bad.items():
        (tmp_path / name).write_text(content)
        message = refused(lambda name=name: read_table(tmp_path / name))
        assert want in message
        assert name in message


@pytest.mark.parametrize(
    ("files", "want"),
    [
        ({}, "the folder holds no file of a table\nhint: a table is a file, or a folder"),
        ({"_SUCCESS": ""}, "the folder holds no file of a table"),
        ({"a.csv": "x\n1\n", "b.json": '{"x":1}\n'}, "a.csv and b.json are of different formats"),
        ({"a.csv": "x\n1\n", "b.txt": "?"}, "unknown extension '.txt'"),
        ({"a.csv": "x\n1\n", "b.csv": "x\nword\n"}, "its files do not have the same columns"),
    ],
)
def test_a_folder_that_is_no_table_is_refused(tmp_path, files, want):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert want in refused(lambda: read_table(tmp_path))


def test_a_folder_is_no_place_for_a_file(tmp_path):
    (tmp_path / "t.csv").mkdir()
    assert "it is a folder" in refused(lambda: write_table(MIXED, tmp_path / "t.csv"))
    assert "unknown extension" in refused(lambda: write_table(MIXED, tmp_path / "t.xml"))


def test_reading_and_writing_load_no_pandas(tmp_path):
    script = f"""
import sys
from weft.tables import read_table, write_table
import json
(path := __import__("pathlib").Path({str(tmp_path)!r}, "t.json")).write_text(
    '{{"ts":"2026-01-01T12:00:00.5Z","k":"a"}}\\n')
table = read_table(path)
for extension in ("parquet", "csv", "jsonl"):
    table = read_table(write_table(table, path.with_suffix("." + extension)))
sys.exit(sorted(sys.modules.keys() & {{"pandas", "numba", "pyspark"}}).__repr__()
         if sys.modules.keys() & {{"pandas", "numba", "pyspark"}} else 0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
