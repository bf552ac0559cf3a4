"""Every way a command can end, with its exit status, and never with a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
import typer
from pyspark.errors import PySparkException
from typer.testing import CliRunner

from weft.cli.status import Commands
from weft.errors import InternalError, QueryError

WEFT = [sys.executable, "-m", "weft"]
SQL = "SELECT COUNT(*) AS n FROM readings GROUP BY window(ts, '20 minutes')"

ENDS = {
    "refused": QueryError("no such thing", hint="try another"),
    "placed": QueryError("bad word", sql="SELECT wrod", line=1, column=8),
    "broken": InternalError("two and two make five"),
    "unforeseen": KeyError("x"),
    "missing": FileNotFoundError(2, "No such file or directory", "no.csv"),
    "full": OSError(28, "No space left on device"),
    "negative": typer.Exit(1),
    "interrupted": KeyboardInterrupt(),
    "aborted": typer.Abort(),
    "two stages": PySparkException(
        "[STAGE_MATERIALIZATION_MULTIPLE_FAILURES] Multiple failures (2) in stage "
        "materialization: \n"
        "  1. SparkException: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n"
        "  2. SparkException: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012 SQLSTATE: XX000"
    ),
}
app = typer.Typer(cls=Commands, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def end(how: str) -> None:
    if how in ENDS:
        raise ENDS[how]
    typer.echo("done")


@app.callback()
def group() -> None:
    """A group, so that `end` is a command of it."""


BUG_HINT = (
    "hint: this is a bug in weft; please report it with the output of `weft explain`\n"
    "      (WEFT_DEBUG=1 in the environment shows where it happened)\n"
)


@pytest.mark.parametrize(
    ("how", "status", "message"),
    [
        ("well", 0, ""),
        ("negative", 1, ""),
        ("refused", 2, "error: no such thing\nhint: try another\n"),
        ("placed", 2, "error: line 1, column 8: bad word\n  SELECT wrod\n         ^\n"),
        (
            "missing",
            2,
            "error: cannot open no.csv: no such file or directory\n"
            "hint: check the path and permissions\n",
        ),
        ("full", 2, "error: no space left on device\n"),
        (
            "two stages",
            2,
            "error: spark: division by zero\nhint: check the table and its values; "
            "WEFT_DEBUG=1 in the environment shows all Spark said\n",
        ),
        ("broken", 3, "internal error: two and two make five\n" + BUG_HINT),
        ("unforeseen", 3, "internal error: KeyError: 'x'\n" + BUG_HINT),
        ("interrupted", 130, "interrupted\n"),
        ("aborted", 130, "interrupted\n"),
    ],
)
def test_each_end_has_its_status_and_one_message(how, status, message):
    result = CliRunner().invoke(app, ["end", how])
    assert (result.exit_code, result.stderr) == (status, message)
    assert result.stdout == ("done\n" if status == 0 else "")


@pytest.mark.parametrize("how", ["refused", "unforeseen"])
def test_weft_debug_shows_where_it_happened(how):
    shown = CliRunner().invoke(app, ["end", how], env={"WEFT_DEBUG": "1"}).stderr
    assert shown.startswith("Traceback (most recent call last):")
    assert "raise ENDS[how]" in shown


def run(*words: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*WEFT, *words], capture_output=True, text=True, **options)


def test_results_go_to_stdout_and_errors_to_stderr():
    done = run("explain", "-e", SQL)
    assert (done.returncode, done.stderr) == (0, "")
    assert "TUMBLE 20m" in done.stdout
    refused = run("explain", "-e", SQL.replace("minutes", "minuts"))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: line 1, column ")
    assert refused.stderr.endswith("^\nhint: did you mean 'minutes'?\n")


def test_statements_come_from_standard_input():
    assert "TUMBLE 20m" in run("explain", "-", input=SQL).stdout
    refused = run("explain", "-", input="SELECT")
    assert (refused.returncode, refused.stderr[:14]) == (2, "error: line 1,")


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["explain", "-e", SQL]])
def test_a_reader_that_leaves_is_no_error(words):
    with subprocess.Popen(
        [*WEFT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_a_full_disk_is_one_message():
    with open("/dev/full", "w") as full:
        done = subprocess.run([*WEFT, "explain", "-e", SQL], stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, b"error: no space left on device\n")


def test_ctrl_c_ends_with_130(tmp_path):
    statements = tmp_path / "statements.sql"
    os.mkfifo(statements)
    command = [*WEFT, "explain", str(statements)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        with statements.open("w"):  # opens only when the command has begun to read
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 130
        assert process.stderr.read() == b"interrupted\n"
