"""Rows on the screen: every type readable, nothing cut, brackets kept; progress only when due."""

from __future__ import annotations

import datetime as dt
import io
import re
import time

import pyarrow as pa
import pytest

from weft.cli.screen import say, show_rows, working


class Terminal(io.StringIO):
    """A terminal that remembers what was printed."""

    def isatty(self) -> bool:
        return True


MIDNIGHT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
EVERY_TYPE = pa.table(
    {
        "key": ["[bold]a[/bold]", None],
        "at": pa.array(
            [MIDNIGHT, MIDNIGHT + dt.timedelta(microseconds=500)],
            pa.timestamp("ns", tz="Europe/Berlin"),
        ),
        "x": [0.1 + 0.2, None],
        "nan": [float("nan"), float("-inf")],
        "n": [2**62, None],
        "ok": [True, None],
        "day": pa.array([dt.date(2026, 1, 1), None]),
    }
)


def test_rows_are_shown_with_types_and_count(capsys):
    show_rows(EVERY_TYPE, limit=10, title="all")
    header, types, _, first, second, count = capsys.readouterr().out.splitlines()
    assert header.split() == ["key", "at", "x", "nan", "n", "ok", "day"]
    assert types.split() == [
        "string",
        "timestamp",
        "double",
        "double",
        "int64",
        "bool",
        "date32[day]",
    ]
    assert first.split("  ")[0] == "[bold]a[/bold]"
    assert " 2026-01-01 00:00:00   0.3 " in " ".join(first.split(" ")).replace("      ", "   ")
    assert second.split() == [
        "NULL",
        "2026-01-01",
        "00:00:00.000500",
        "NULL",
        "-inf",
        "NULL",
        "NULL",
        "NULL",
    ]
    assert count == "all: 2 rows"


def test_one_row_is_one_row(capsys):
    show_rows(EVERY_TYPE.slice(1), limit=0)
    assert capsys.readouterr().out == "1 row\n"


def test_a_pipe_gets_whole_lines(capsys):
    show_rows(pa.table({f"column_{i}": ["x" * 50] for i in range(20)}), limit=1)
    assert capsys.readouterr().out.splitlines()[3].split() == ["x" * 50] * 20


def test_a_terminal_gets_folded_cells_and_no_lost_text(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    show_rows(pa.table({"a": ["x" * 50], "b": ["y" * 50]}), limit=1)
    shown = terminal.getvalue()
    assert (shown.count("x"), shown.count("y")) == (50, 50)


def test_text_is_printed_as_it_is(capsys):
    say("[red]" + "x" * 200)
    assert capsys.readouterr().out == "[red]" + "x" * 200 + "\n"


@pytest.mark.parametrize(("seconds", "shown"), [(0.0, False), (0.6, True)])
def test_progress_appears_on_a_terminal_when_work_takes_long(monkeypatch, seconds, shown):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("weft.cli.screen.PATIENCE_S", 0.1)
    monkeypatch.setenv("TERM", "xterm")
    with working("weaving"):
        time.sleep(seconds)
    assert ("weaving" in terminal.getvalue()) is shown


def test_a_bar_shows_how_much_is_done(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("weft.cli.screen.PATIENCE_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with working("weaving", lambda: "[row] 3 of 4", lambda: 0.75):
        time.sleep(0.4)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    assert re.search(r"weaving: \[row\] 3 of 4 ━{17,18}[╸╺]?━{5,6} 0:00:0\d", shown)


def test_no_progress_goes_into_a_file(monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr("sys.stderr", file)
    monkeypatch.setattr("weft.cli.screen.PATIENCE_S", 0.0)
    with working("weaving"):
        time.sleep(0.1)
    assert file.getvalue() == ""
