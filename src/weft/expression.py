"""SQL expressions over the columns of a source: read once, kept as canonical text.

Text is the form that travels: it is hashable, prints well, and is what Spark itself reads.
The parser is loaded only when an expression is more than the name of a column.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from weft.errors import QueryError

if TYPE_CHECKING:
    from sqlglot import exp

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

# What SQL may call inside keys, filters and arguments: the functions every engine computes alike.
# Operators, CASE, LIKE, IN, BETWEEN and IS NULL are always there.
SCALAR_FUNCTIONS = (
    "abs",
    "cast",
    "ceil",
    "ceiling",
    "coalesce",
    "concat",
    "day",
    "exp",
    "floor",
    "greatest",
    "hour",
    "if",
    "ifnull",
    "least",
    "length",
    "ln",
    "lower",
    "minute",
    "mod",
    "month",
    "nullif",
    "nvl",
    "power",
    "quarter",
    "round",
    "second",
    "sign",
    "sqrt",
    "substr",
    "substring",
    "trim",
    "upper",
    "year",
)


@lru_cache(maxsize=65536)
def canonical(text: str) -> str:
    """Return the expression in its canonical spelling, or say why it cannot be read.

    >>> canonical("price"), canonical("price*quantity"), canonical("`unit price` + 1")
    ('price', 'price * quantity', '`unit price` + 1')
    >>> canonical("temp >")
    Traceback (most recent call last):
    weft.errors.QueryError: cannot read 'temp >' as an expression
    hint: write SQL over the columns of the source; quote odd column names as `my column`
    """
    if _PLAIN.match(text):
        return text
    return tree(text).sql(dialect="spark", comments=False)


@lru_cache(maxsize=4096)
def tree(text: str) -> exp.Expr:
    """Parse an expression; treat the result as read-only, it is shared."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse_one(text, read="spark")
    except SqlglotError:
        parsed = None
    if parsed is None or isinstance(parsed, sqlglot.exp.Query | sqlglot.exp.Command):
        raise QueryError(
            f"cannot read {text!r} as an expression",
            hint="write SQL over the columns of the source; quote odd column names as `my column`",
        )
    return parsed


def column(name: str) -> str:
    """Spell a column's name as an expression, quoted where it must be.

    >>> column("temp"), column("unit price")
    ('temp', '`unit price`')
    """
    return name if _PLAIN.match(name) else "`" + name.replace("`", "``") + "`"


@lru_cache(maxsize=65536)
def columns_of(text: str) -> tuple[str, ...]:
    """List the columns an expression reads, each once, sorted.

    >>> columns_of("CASE WHEN a > 0 THEN b + a END")
    ('a', 'b')
    """
    if _PLAIN.match(text):
        return (text,)
    from sqlglot import exp

    return tuple(sorted({c.name for c in tree(text).find_all(exp.Column)}))
