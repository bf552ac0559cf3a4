"""`weft generate` writes what the library makes, options and all."""

from __future__ import annotations

import datetime as dt

import pytest
from typer.testing import CliRunner

from weft.cli.app import app
from weft.generate import generate
from weft.tables import read_table


def write(*words: object) -> str:
    result = CliRunner().invoke(app, ["generate", *map(str, words)])
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize(
    ("name", "words", "options"),
    [
        (
            "sensors",
            "--devices 3 --rate 1/2 --disorder 5s --late-share 0.1 --skew 1.5",
            {"devices": 3, "rate": 0.5, "disorder": "5s", "late_share": 0.1, "skew": 1.5},
        ),
        (
            "trace",
            "--hosts 5 --start 2020-02-29T12:00:00+02:00",
            {"hosts": 5, "start": dt.datetime(2020, 2, 29, 10, tzinfo=dt.UTC)},
        ),
        (
            "nexmark",
            "--disorder-group 9 --hot-auction-ratio 3 --hot-bidder-ratio 5 --hot-seller-ratio 2 "
            "--no-padding",
            {
                "disorder_group": 9,
                "hot_auction_ratio": 3,
                "hot_bidder_ratio": 5,
                "hot_seller_ratio": 2,
                "padding": False,
            },
        ),
    ],
)
def test_the_files_hold_what_the_library_makes(tmp_path, name, words, options):
    shown = write(name, "--rows", 200, "--seed", 5, "-o", tmp_path / "out", *words.split())
    for table, wanted in generate(name, 200, 5, **options).items():
        path = tmp_path / "out" / f"{table}.parquet"
        assert read_table(path).equals(wanted)
        assert f"{table}: {wanted.num_rows:,} rows, " in shown
        assert f"in {path}\n" in shown


@pytest.mark.parametrize("extension", ["csv", "json"])
def test_parts_are_counted_and_read_back_as_one_table(tmp_path, extension):
    words = ("--rows", 100, "--format", extension, "--files", 4)
    shown = write("nexmark", "-o", tmp_path / "out", *words)
    assert f"in {tmp_path}/out/bid (4 files)\n" in shown
    wanted = generate("nexmark", 100, 7)["bid"]
    assert read_table(tmp_path / "out" / "bid").equals(wanted)
