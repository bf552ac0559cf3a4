"""Tables on disk: every format reads back equal, parts keep the order of arrival."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from itertools import pairwise

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest

from weft.errors import QueryError, UnsupportedError, WeftError
from weft.generate import FORMATS, SETS, generate, sensors, write
from weft.generate.json_lines import write_json_lines


def read_back(path, schema: pa.Schema) -> pa.Table:
    match path.suffix:
        case ".parquet":
            return pq.read_table(path)
        case ".csv":
            types = pa.csv.ConvertOptions(
                column_types=schema, strings_can_be_null=True, quoted_strings_can_be_null=False
            )
            return pa.csv.read_csv(path, convert_options=types)
        case _:
            types = pa.json.ParseOptions(explicit_schema=schema)
            return pa.json.read_json(path, parse_options=types)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", SETS)
def test_reads_back_equal(tmp_path, name, format):
    tables = generate(name, 3000, 7)
    paths = write(tables, tmp_path / "out", format=format)
    assert paths == [tmp_path / "out" / f"{table}.{format}" for table in tables]
    for path, table in zip(paths, tables.values(), strict=True):
        assert read_back(path, table.schema).equals(table)


@pytest.mark.parametrize("format", FORMATS)
def test_readers_that_guess_types_find_the_right_ones(tmp_path, format):
    table = sensors(200, 7)
    (path,) = write({"readings": table}, tmp_path, format=format)
    guessed = {"parquet": pq.read_table, "csv": pa.csv.read_csv, "json": pa.json.read_json}[format](
        path
    )
    assert [str(kind) for kind in guessed.schema.types[1:]] == [
        "string",
        "double",
        "double",
        "int64",
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_parts_follow_the_order_of_arrival(tmp_path, format):
    table = sensors(1003, 7, rate=10.0, disorder="5 seconds")
    paths = write({"readings": table}, tmp_path, format=format, files=4)
    assert [path.name for path in paths] == [f"part-0000{part}.{format}" for part in range(4)]
    assert sorted((tmp_path / "readings").iterdir()) == paths
    parts = [read_back(path, table.schema) for path in paths]
    assert [part.num_rows for part in parts] == [250, 251, 251, 251]
    assert pa.concat_tables(parts).equals(table)


def test_parts_have_increasing_modification_times_in_milliseconds(tmp_path):
    paths = write(generate("sensors", 500, 7), tmp_path, files=50)
    times_ms = [path.stat().st_mtime_ns // 1_000_000 for path in paths]
    assert all(early < late for early, late in pairwise(times_ms))


def test_no_part_is_empty_unless_the_table_is(tmp_path):
    tables = generate("nexmark", 100, 7)
    paths = write(tables, tmp_path / "few", files=5)
    parts = [len([p for p in paths if p.parent.name == name]) for name in tables]
    assert parts == [2, 5, 5]
    (path,) = write({"readings": sensors(0, 7)}, tmp_path / "none", files=5)
    assert pq.read_table(path).equals(sensors(0, 7))


def test_row_groups_are_of_middle_size(tmp_path):
    (path,) = write({"readings": sensors(300_000, 7)}, tmp_path)
    metadata = pq.read_metadata(path)
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [
        131_072,
        131_072,
        37_856,
    ]


def test_a_folder_that_is_not_empty_is_refused_and_left_alone(tmp_path):
    (tmp_path / "precious.txt").write_text("keep")
    with pytest.raises(WeftError, match="the folder is not empty\nhint: name a new folder"):
        write(generate("sensors", 10, 7), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_a_file_as_target_is_refused(tmp_path):
    (tmp_path / "file").write_text("keep")
    with pytest.raises(WeftError, match="it is a file\nhint: name a folder"):
        write(generate("sensors", 10, 7), tmp_path / "file")


def test_unknown_format_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(QueryError, match="unknown format 'parqet'\nhint: did you mean 'parquet'"):
        write(generate("sensors", 10, 7), tmp_path / "out", format="parqet")
    assert not (tmp_path / "out").exists()


def test_files_below_one_is_refused(tmp_path):
    with pytest.raises(QueryError, match="files cannot be 0"):
        write(generate("sensors", 10, 7), tmp_path, files=0)


def lines_of(table: pa.Table) -> list[dict[str, object]]:
    sink = io.BytesIO()
    write_json_lines(table, sink)
    return [json.loads(line) for line in sink.getvalue().decode().splitlines()]


def test_json_escapes_every_character_that_needs_it():
    hard = [chr(code) for code in range(128)] + ['a"b\\c\n"', "ünï 🙂", "", None]
    names = {'quo"te': hard}
    assert [line['quo"te'] for line in lines_of(pa.table(names))] == hard


def test_json_keeps_numbers_booleans_and_nulls():
    table = pa.table(
        {
            "float": [0.1, -0.0, 1e300, 5e-324, None],
            "int": [2**63 - 1, -(2**63), 0, 1, None],
            "bool": [True, False, None, True, True],
            "not_finite": [float("nan"), float("inf"), float("-inf"), 1.0, None],
        }
    )
    want = table.to_pydict() | {"not_finite": ["NaN", "Infinity", "-Infinity", 1.0, None]}
    got = lines_of(table)
    assert {name: [line[name] for line in got] for name in want} == want


def test_json_instants_are_iso_8601_in_utc():
    kinds = {
        "utc": pa.timestamp("us", tz="UTC"),
        "zoned": pa.timestamp("ms", tz="Asia/Tokyo"),
        "naive": pa.timestamp("s"),
    }
    table = pa.table({name: pa.array([0, None], kind) for name, kind in kinds.items()})
    assert lines_of(table) == [
        dict.fromkeys(kinds, "1970-01-01T00:00:00.000000Z"),
        dict.fromkeys(kinds),
    ]


def test_json_refuses_a_nested_column():
    with pytest.raises(UnsupportedError, match="column 'xs' of type list"):
        lines_of(pa.table({"xs": [[1]]}))


def test_generating_and_writing_parquet_loads_no_pandas(tmp_path):
    program = (
        "import sys; from weft.generate import SETS, generate, write\n"
        "for name in SETS: write(generate(name, 100, 7), sys.argv[1] + '/' + name)\n"
        "assert not {'pandas', 'pyspark', 'numba'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=120)
