"""The report on the papers: what each published, beside what the same question gives here."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from weft.bench.frame import Spread
from weft.bench.papers import PAPERS
from weft.bench.report import machine, verdict_lines, versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from weft.bench.frame import Outcome
    from weft.bench.papers import Figure

_MOST_ROWS = 16  # a longer table is folded
_KEPT = re.compile(
    r"^<!-- (?!end of )(\S+) -->\n(.*?)^<!-- end of \1 -->$", re.DOTALL | re.MULTILINE
)


def names() -> tuple[str, ...]:
    """Return the entries that reproduce a table or a figure, in the order of the papers.

    >>> names()[0]
    'planners/factor_reduction'
    """
    return tuple(figure.entry for paper in PAPERS for figure in paper.figures)


def markdown(
    outcomes: Mapping[str, Outcome],
    pictures: Mapping[str, str],
    *,
    quick: bool,
    before: str = "",
) -> str:
    """Write the report; of entries that did not run it has what an earlier report had of them."""
    kept = {name: text.strip("\n") for name, text in _KEPT.findall(before)}
    return "\n".join(_lines(outcomes, pictures, kept, quick=quick)) + "\n"


def _lines(
    outcomes: Mapping[str, Outcome],
    pictures: Mapping[str, str],
    kept: Mapping[str, str],
    *,
    quick: bool,
) -> Iterator[str]:
    yield "# The papers, reproduced"
    yield ""
    yield (
        "Tables and figures of the five papers that weft implements, through its engines. Columns "
        "in italics are published figures; all others were measured or computed here. Errors that "
        "were found in the papers are listed with [the algorithms](algorithms.md)."
    )
    yield ""
    yield "```"
    yield "weft bench --report docs/reproduction.md"
    yield "```"
    yield ""
    yield from _provenance()
    for paper in PAPERS:
        yield ""
        yield f"## {paper.title}"
        for figure in paper.figures:
            yield from _published(figure)
            yield f"<!-- {figure.entry} -->"
            name = figure.entry
            if name in outcomes or name not in kept:
                yield from _ours(figure, outcomes.get(name), pictures.get(name), quick=quick)
            else:
                yield kept[name]
            yield f"<!-- end of {name} -->"
        if paper.left_out:
            yield ""
            yield f"Left out: {paper.left_out}"


def _provenance() -> Iterator[str]:
    told, libraries = machine(), versions()
    listed = ", ".join(f"{name} {number}" for name, number in libraries.items())
    yield f"{told['processor']}, {told['cores']} cores; {listed}."


def _published(figure: Figure) -> Iterator[str]:
    yield ""
    yield f"### {figure.what}"
    yield ""
    yield f"Published: {figure.published}"
    yield ""
    yield f"Why ours differ: {figure.differs}"
    yield ""


def _ours(
    figure: Figure, outcome: Outcome | None, picture: str | None, *, quick: bool
) -> Iterator[str]:
    if outcome is None or not outcome.rows:
        why = "; ".join(outcome.notes) if outcome else "this run left it out"
        yield f"No figures: {why}. `weft bench {figure.entry}` makes them."
        return
    size = "; small inputs and few rounds, a check, no figures" if quick else ""
    load = f"load {os.getloadavg()[0]:.1f}"  # what else ran is part of a time
    told = f"{datetime.now(UTC):%Y-%m-%d}, {load}{size}: {outcome.question}"
    yield f"Ours, `weft bench {figure.entry}`, {told}"
    yield ""
    if picture:
        yield f"![{outcome.question}]({picture})"
        yield ""
    folded = len(outcome.rows) > _MOST_ROWS
    if folded:
        yield f"<details><summary>all {len(outcome.rows)} rows</summary>"
        yield ""
    yield from _table(outcome)
    if folded:
        yield ""
        yield "</details>"
    for line, _ in verdict_lines(outcome.verdicts):
        yield ""
        yield " ".join(line.split())
    for note in outcome.notes:
        yield ""
        yield f"Note: {note}."


def _table(outcome: Outcome) -> Iterator[str]:
    columns = outcome.columns
    heads = [f"*{c.name}*" if c.published else c.name for c in columns]
    cells = [row.get(column.name) for column in columns for row in outcome.rows[:1]]
    aligned = ["--:" if isinstance(c, int | float | Spread) else "---" for c in cells]
    yield f"| {' | '.join(map(_cell, heads))} |"
    yield f"| {' | '.join(aligned)} |"
    for row in outcome.rows:
        yield f"| {' | '.join(_cell(column.text(row.get(column.name))) for column in columns)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
