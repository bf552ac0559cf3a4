"""Durations, numbers and words written out in a window, each with its place in the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from weft.expression import spelled
from weft.time import duration_us, unit_us

if TYPE_CHECKING:
    from weft.parsing.script import Script

_LONGEST_US = 2**63 - 1
# Abbreviations of Azure Stream Analytics that mean nothing elsewhere.
_UNITS = {"dd": "day", "hh": "hour", "mi": "minute", "n": "minute", "ss": "second", "mcs": "us"}


class Amount(NamedTuple):
    """How far a window reaches or moves on, and where that is written."""

    value: int
    node: exp.Expr


def text_duration(script: Script, node: exp.Expr) -> Amount:
    """Read `'20 minutes'` or `INTERVAL 20 MINUTES` into microseconds."""
    if not node.is_string and not isinstance(node, exp.Interval):
        raise script.error(
            "this is not a duration",
            hint="write it as text, such as '20 minutes', or as a unit and a number",
            at=node,
        )
    if isinstance(node, exp.Interval):
        number, unit = node.this, node.args.get("unit")
        written = number.name if number.is_string else spelled(number)
        text = written if unit is None else f"{written} {spelled(unit)}"
    else:
        text = node.name
    with script.located(node):
        return bounded(script, Amount(duration_us(text), node))


def unit_duration(script: Script, unit: exp.Expr, number: exp.Expr) -> Amount:
    """Read a unit and a number, such as `minute, 20`, into microseconds."""
    word = _UNITS.get(unit.name.casefold(), unit.name)
    with script.located(unit):
        unit_us(word)
    literal = numericspelled(script, number)
    with script.located(number):
        return bounded(script, Amount(duration_us(f"{literal} {word}"), number))


def bounded(script: Script, amount: Amount) -> Amount:
    """Refuse a duration that does not fit into 64 bits."""
    if abs(amount.value) > _LONGEST_US:
        raise script.error(
            "this is longer than any time weft can hold",
            hint="give a duration below 290,000 years",
            at=amount.node,
        )
    return amount


def numericspelled(script: Script, node: exp.Expr) -> str:
    """Return a number as it is written, with its sign."""
    literal = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(literal, exp.Literal) or literal.is_string:
        raise script.error("this is not a number", hint="write a number, such as 20", at=node)
    return f"-{literal.name}" if isinstance(node, exp.Neg) else literal.name


def whole(script: Script, node: exp.Expr) -> Amount:
    """Read a whole number."""
    try:
        return Amount(int(numericspelled(script, node)), node)
    except ValueError:
        hint = "write one, such as 100"
        raise script.error("this is not a whole number", hint=hint, at=node) from None


def number(script: Script, node: exp.Expr) -> int | float:
    """Read a number; one without a point stays an int."""
    text = numericspelled(script, node)
    return int(text) if text.lstrip("-").isdigit() else float(text)


def word(script: Script, node: exp.Expr) -> str:
    """Read a name, quoted or bare."""
    if node.is_string or (isinstance(node, exp.Column) and not node.table):
        return node.name
    raise script.error("this is not a name", hint="write it as text, such as 'month'", at=node)
