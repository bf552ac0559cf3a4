"""Windows in brackets after a source, as CQL writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.parsing.literals import Amount, bounded, whole
from weft.time import duration_us
from weft.window import CountingWindow, LandmarkWindow, PeriodicWindow

if TYPE_CHECKING:
    from sqlglot import exp

    from weft.parsing.dialect import StreamWindow
    from weft.parsing.script import Script


def stream_window(
    script: Script, node: StreamWindow
) -> PeriodicWindow | CountingWindow | LandmarkWindow:
    """Read a bracket.

    SLIDE is never left out: in CQL a window without it moves on with every event, and to take it
    for a tumbling window would give other answers than the user expects.
    """
    kind: str = node.args["kind"]
    if kind == "UNTIL":
        return LandmarkWindow()
    written_range, slide = node.args["range"], node.args.get("slide")
    if slide is None:
        written = script.text[_begin(written_range) : _end(written_range)]
        raise script.error(
            f"[{kind} {written}] does not say how far the window moves on",
            hint=f"add SLIDE, such as [{kind} {written} SLIDE {written}] for one after another",
            at=node,
        )
    rows = kind == "ROWS"
    amounts = [_rows(script, s) if rows else _duration(script, s) for s in (written_range, slide)]
    wrong = next((amount.node for amount in amounts if amount.value <= 0), node)
    with script.located(wrong):
        values = (amounts[0].value, amounts[1].value)
        return CountingWindow(*values) if rows else PeriodicWindow(*values)


def bracket_duration(script: Script, node: StreamWindow) -> int:
    """Read the range of a bracket, in microseconds."""
    amount = _duration(script, node.args["range"])
    if amount.value <= 0:
        raise script.error(
            "a window of no time holds nothing", hint="give a range greater than zero", at=node
        )
    return amount.value


def _rows(script: Script, written_range: exp.Tuple) -> Amount:
    return whole(script, written_range.expressions[0])


def _duration(script: Script, written_range: exp.Tuple) -> Amount:
    total = 0
    for term in written_range.expressions:
        # A term is a number and a unit, or a whole duration as text.
        parts = term.expressions or [term]
        with script.located(parts[-1]):
            total += duration_us(" ".join(part.name for part in parts))
    return bounded(script, Amount(total, written_range))


def _begin(written_range: exp.Tuple) -> int:
    return min(int(inner.meta["start"]) for inner in written_range.walk() if "start" in inner.meta)


def _end(written_range: exp.Tuple) -> int:
    return 1 + max(int(inner.meta["end"]) for inner in written_range.walk() if "end" in inner.meta)
