"""SQL expressions over the columns of a source: read once, kept as canonical text.

Text is the form that travels: it is hashable, prints well, and is what Spark itself reads.
The parser is loaded only when an expression is more than the name of a column.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, ClassVar

from weft.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlglot import exp
    from sqlglot.dialects.dialect import Dialect

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NUMBER = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)

# Plain words that SQL reads as something else: a column of this name is quoted.
_RESERVED_WORDS = """
    alter analyze and any as begin between cache call case comment commit connect_by_root copy
    create cross current_date current_timestamp current_user declare delete desc describe distinct
    drop else except execute explain false fetch for from glob grant having if ilike inner insert
    intersect into join kill lateral like load merge minus not notnull null on optimize or outer
    partitioned_by pivot pragma prepare qualify refresh regexp rename returning revoke rlike
    rollback select serdeproperties session_user set show tablesample then true truncate uncache
    union unpivot update use using vacuum values when where with xor
"""
RESERVED = frozenset(_RESERVED_WORDS.split())

# What SQL may call inside keys, filters and arguments: the functions every engine computes alike.
# Operators, CASE, LIKE, IN, BETWEEN and IS NULL are always there.
SCALAR_FUNCTIONS = (
    "abs", "cast", "ceil", "ceiling", "coalesce", "concat", "day", "exp", "floor", "greatest",
    "hour", "if", "ifnull", "least", "length", "ln", "lower", "minute", "mod", "month",
    "nullif", "nvl", "power", "quarter", "round", "second", "sign", "sqrt", "substr",
    "substring", "trim", "upper", "year",
)  # fmt: skip
# Names of aggregates beside those that are registered.
_SYNONYMS = ("mean", "every", "some", "std", "stdev", "stdevp", "varp", "string_agg", "listagg")


@lru_cache(maxsize=65536)
def canonical(text: str) -> str:
    """Return the expression in its canonical spelling, or say why it cannot be one.

    A plain word is always the name of a column, even one that SQL has another use for.

    >>> canonical("price"), canonical("price*quantity"), canonical("`unit price` + 1")
    ('price', 'price * quantity', '`unit price` + 1')
    >>> canonical("null"), canonical("`price`")
    ('`null`', 'price')
    >>> canonical("temp >")
    Traceback (most recent call last):
    weft.errors.QueryError: cannot read 'temp >' as an expression
    hint: write SQL over the columns of the source; quote odd column names as `my column`
    """
    if _PLAIN.match(text):
        return column(text)
    from sqlglot import exp

    parsed = tree(text)
    if isinstance(parsed, exp.Column) and len(parsed.parts) == 1:
        return column(parsed.name)
    return parsed.sql(dialect="spark", comments=False)


@lru_cache(maxsize=4096)
def tree(text: str) -> exp.Expr:
    """Parse an expression; treat the result as read-only, it is shared."""
    from sqlglot.errors import SqlglotError

    if _PLAIN.match(text):
        text = column(text)
    try:
        found = dialect().parse(text)
        parsed = found[0] if len(found) == 1 else None
    except SqlglotError:
        parsed = None
    if parsed is None:
        raise _unreadable(text)
    _refuse_what_is_no_scalar(text, parsed)
    return parsed


@cache
def dialect() -> Dialect:
    """Return the SQL that expressions are written in."""
    from sqlglot.dialects.spark import Spark

    class Quoting(Spark):
        """Spark SQL, where two quotes in a string are one, as in Spark 4 and in the standard."""

        class Tokenizer(Spark.Tokenizer):
            STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'"]

    return Quoting()


def _refuse_what_is_no_scalar(text: str, parsed: exp.Expr) -> None:
    from sqlglot import exp

    from weft.aggregates.base import function_names

    if isinstance(parsed, exp.Select | exp.Command | exp.Block | exp.Alias | exp.Tuple | exp.DDL):
        raise _unreadable(text)
    aggregates = {*_SYNONYMS, *(name.casefold() for name in function_names())}
    for node in parsed.walk():
        if isinstance(node, exp.Query | exp.Exists):
            raise QueryError(
                f"{text!r} holds a subquery, and an expression reads one event",
                hint="make the subquery a table of its own",
            )
        if isinstance(node, exp.Literal) and not (node.is_string or is_number(node)):
            raise QueryError(
                f"{node.name} in {text!r} is not a number", hint="write one, such as 20 or 0.5"
            )
        if isinstance(node, exp.Star):
            raise QueryError(f"* in {text!r} is no column", hint="name the columns")
        called = isinstance(node, exp.Anonymous) and node.name.casefold() in aggregates
        if isinstance(node, exp.AggFunc | exp.Window) or called:
            raise QueryError(
                f"{text!r} holds an aggregate, and an expression reads one event",
                hint="write the aggregate by itself: agg.max('x'), not agg.sum('max(x)')",
            )


def _unreadable(text: str) -> QueryError:
    return QueryError(
        f"cannot read {text!r} as an expression",
        hint="write SQL over the columns of the source; quote odd column names as `my column`",
    )


def is_number(literal: exp.Literal) -> bool:
    """Tell whether a literal is a number; parsers take `1e9.5` for one.

    >>> [is_number(tree(text)) for text in ("20", ".5", "1.E-3", "'20'")]
    [True, True, True, False]
    """
    return not literal.is_string and _NUMBER.fullmatch(literal.name) is not None


def stripped(node: exp.Expr) -> exp.Expr:
    """Take the parentheses off an expression."""
    from sqlglot import exp

    while isinstance(node, exp.Paren):
        node = node.this
    return node


def spelled(node: exp.Expr) -> str:
    """Print a node as Spark writes it, without the comments around it."""
    return node.sql(dialect="spark", comments=False)


def column(name: str) -> str:
    """Spell a column's name as an expression, quoted where it must be.

    >>> column("temp"), column("unit price"), column("null")
    ('temp', '`unit price`', '`null`')
    """
    if _PLAIN.match(name) and name.casefold() not in RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Spell a text as an expression, which Spark reads alike whatever its parser is set to.

    >>> literal("1 hour"), literal("it's")
    ("'1 hour'", "decode(unhex('69742773'), 'utf-8')")
    """
    if "'" in text or "\\" in text:
        return f"decode(unhex('{text.encode().hex()}'), 'utf-8')"
    return f"'{text}'"


@lru_cache(maxsize=65536)
def columns_of(text: str) -> tuple[str, ...]:
    """List the columns an expression reads, each once, sorted.

    >>> columns_of("CASE WHEN a > 0 THEN b + a END"), columns_of("null")
    (('a', 'b'), ('null',))
    """
    if _PLAIN.match(text):
        return (text,)
    from sqlglot import exp

    return tuple(sorted({c.name for c in tree(text).find_all(exp.Column)}))


@lru_cache(maxsize=4096)
def qualified_columns(text: str) -> tuple[tuple[str, str], ...]:
    """List the (input, column) pairs that an expression over a join reads, each once.

    >>> qualified_columns("a.x * b.y + a.x")
    (('a', 'x'), ('b', 'y'))
    """
    from sqlglot import exp

    return tuple(dict.fromkeys((c.table, c.name) for c in tree(text).find_all(exp.Column)))


def inputs_of(texts: Iterable[str]) -> tuple[str, ...]:
    """List the inputs of a join that some expressions read together, each once.

    >>> inputs_of(["a.x * b.y", "a.z"])
    ('a', 'b')
    """
    return tuple(dict.fromkeys(alias for text in texts for alias, _ in qualified_columns(text)))
