"""Spark SQL as a tree that is written out as it was read, and the proof that it was.

sqlglot translates between dialects, and so it rewrites what it knows. Here every call stays a call
of the name that the user wrote, and a text is trusted only if writing its tree gives its tokens
back; any other text is left to Spark as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.generator import Generator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from weft.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class TypedLiteral(exp.Expression):
    """`TIMESTAMP '2024-01-01'`: a literal after the name of its type."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}


class PlainInterval(exp.Expression):
    """`INTERVAL '1' DAY`, `INTERVAL 1 DAY 2 HOURS`: the parts after the word, as they are."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class ShortCast(exp.Expression):
    """`x::INT`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "to": True}


class TableArgument(exp.Expression):
    """`TABLE t PARTITION BY k`: a table as an argument of a table function."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "partition_by": False}


_TYPED = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"})
# Calls whose arguments are no plain list.
_OWN_GRAMMAR = ("CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "SUBSTR", "TRIM", "TRY_CAST")
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_SMALL_UNITS = ("MILLISECOND", "MICROSECOND", "NANOSECOND")
_INTERVAL_WORDS = {"TO", *_UNITS, *_SMALL_UNITS, *(f"{u}S" for u in (*_UNITS, *_SMALL_UNITS))}
_STRINGS = (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING)
_NAME = re.compile(r"--[ \t]*name[ \t]*:[ \t]*(\S+)", re.IGNORECASE)
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_LONGEST = 1000  # a double written out in full has fewer digits
_SOURCE = "source"  # how the text of a type was written
# What sqlglot raises where it half knows a syntax, such as pipes.
STUMBLES = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def _as_written(parser: _Parser, token: Token) -> exp.Literal:
    """Keep a literal as its source: escapes mean what Spark takes them for."""
    return exp.Literal(this=parser.source_of(token), is_string=False)


class _Parser(SparkParser):
    STRICT_CAST = True
    JOINS_HAVE_EQUAL_PRECEDENCE = False
    NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, type[exp.Expr]]] = {}
    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        name: SparkParser.FUNCTION_PARSERS[name] for name in _OWN_GRAMMAR
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }
    PRIMARY_PARSERS: ClassVar[dict[TokenType, Callable[..., exp.Expr]]] = {
        **SparkParser.PRIMARY_PARSERS,
        **dict.fromkeys((*_STRINGS, TokenType.NUMBER), _as_written),
    }
    COLUMN_OPERATORS: ClassVar[dict[TokenType, Any]] = {
        **SparkParser.COLUMN_OPERATORS,
        TokenType.DCOLON: lambda self, this, to: self.expression(ShortCast(this=this, to=to)),
    }

    def _warn_unsupported(self) -> None:
        """Say nothing: what is no query is left to Spark, which knows it."""

    def source_of(self, first: Token, last: Token | None = None) -> str:
        """Return the text that was read as some tokens."""
        return self.sql[first.start : (last or first).end + 1]

    def _parse_type(
        self, parse_interval: bool = True, fallback_to_identifier: bool = False
    ) -> exp.Expr | None:
        kind = self._curr
        if kind and kind.token_type == TokenType.TABLE and self._next.token_type in _NAMES:
            self._advance()
            table = self._parse_table_parts()
            return self.expression(TableArgument(this=table, partition_by=self._parse_parts()))
        if kind and kind.text.upper() in _TYPED and self._next.token_type == TokenType.STRING:
            self._advance()
            return self.expression(TypedLiteral(this=self._parse_primary(), kind=kind.text))
        return super()._parse_type(parse_interval, fallback_to_identifier)

    def _parse_parts(self) -> list[exp.Expr | None]:
        """Read `PARTITION BY k` or `PARTITION BY (k, l)`; a comma ends the argument."""
        if not self._match(TokenType.PARTITION_BY):
            return []
        if self._curr and self._curr.token_type == TokenType.L_PAREN:
            return list(self._parse_wrapped_csv(self._parse_column))
        return [self._parse_column()]

    def _parse_types(
        self,
        check_func: bool = False,
        schema: bool = False,
        allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> exp.Expr | None:
        first = self._curr
        found = super()._parse_types(check_func, schema, allow_identifiers, with_collation)
        if isinstance(found, exp.DataType) and first:
            found.meta[_SOURCE] = self.source_of(first, self._prev)
        return found

    def _parse_interval(  # type: ignore[override]
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Expr | None:
        index = self._index
        if not self._match(TokenType.INTERVAL):
            return None
        parts: list[exp.Expr] = []
        while self._match_set((TokenType.STRING, TokenType.NUMBER)):
            parts.append(_as_written(self, self._prev))
            while self._curr and self._curr.text.upper() in _INTERVAL_WORDS:
                parts.append(exp.var(self._curr.text))
                self._advance()
        if not parts:
            self._retreat(index)
            return None
        return self.expression(PlainInterval(expressions=parts))

    def _parse_ordered(
        self, parse_method: Callable[[], exp.Expr | None] | None = None
    ) -> exp.Ordered | None:
        found = super()._parse_ordered(parse_method)
        said = self._index > 1 and self._tokens[self._index - 2].text.upper() == "NULLS"
        if found is not None and said:
            found.meta[_SOURCE] = f" NULLS {self._prev.text}"
        return found

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
        if with_prefix or not self._match_set((TokenType.CUBE, TokenType.ROLLUP)):
            return super()._parse_cube_or_rollup(with_prefix)
        kind = exp.Cube if self._prev.token_type == TokenType.CUBE else exp.Rollup
        return self.expression(kind(expressions=self._parse_wrapped_csv(self._parse_disjunction)))

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        found = super()._parse_is(this)
        if isinstance(found, exp.NullSafeEQ):
            found.meta[_SOURCE] = "IS NOT DISTINCT FROM"
        return found


def _partition(generator: Generator, node: exp.Expr) -> str:
    listed = generator.expressions(node, key="partition_by", flat=True)
    if len(node.args.get("partition_by") or ()) > 1:
        listed = f"({listed})"
    return f" PARTITION BY {listed}" if listed else ""


class _Generator(Generator):
    """The plain generator: that of Spark's dialect replaces what older versions do not have."""

    WRAP_DERIVED_VALUES = False
    TABLESAMPLE_SEED_KEYWORD = "REPEATABLE"
    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        **Generator.TRANSFORMS,
        exp.RegexpLike: lambda self, e: self.binary(e, "RLIKE"),
        exp.IntDiv: lambda self, e: self.binary(e, "DIV"),
        TypedLiteral: lambda self, e: f"{e.args['kind']} {self.sql(e, 'this')}",
        PlainInterval: lambda self, e: f"INTERVAL {self.expressions(e, sep=' ', flat=True)}",
        TableArgument: lambda self, e: f"TABLE {self.sql(e, 'this')}{_partition(self, e)}",
        ShortCast: lambda self, e: f"{self.sql(e, 'this')}::{self.sql(e, 'to')}",
        exp.NullSafeEQ: lambda self, e: self.binary(e, e.meta.get(_SOURCE, "<=>")),
    }

    def ordered_sql(self, expression: exp.Ordered) -> str:
        direction = " DESC" if expression.args.get("desc") else ""
        return f"{self.sql(expression, 'this')}{direction}{expression.meta.get(_SOURCE, '')}"

    def windowspec_sql(self, expression: exp.WindowSpec) -> str:
        if expression.args.get("end"):
            return super().windowspec_sql(expression)
        parts = (self.sql(expression, part) for part in ("kind", "start", "start_side"))
        return " ".join(filter(None, parts))

    def datatype_sql(self, expression: exp.DataType) -> str:
        return expression.meta.get(_SOURCE) or super().datatype_sql(expression)


class Verbatim(Spark):
    """Spark SQL in which a call is the name and the arguments that stand in the text."""

    NORMALIZE_NOT_NULL = False

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokens; two quotes in a string are one, as in Spark 4 and in the standard."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'"]

    Parser = _Parser
    Generator = _Generator  # type: ignore[assignment]


def tokens_of(text: str) -> list[Token] | None:
    """Return the tokens of a text, or None where they are not Spark's."""
    try:
        found = list(_joined(Verbatim().tokenize(text), text))
    except SqlglotError:
        return None
    return None if any(map(_is_odd, found)) else found


def _is_odd(token: Token) -> bool:
    """Tell whether a number is none that Spark reads: of digits such as `²`, or endless."""
    text = token.text
    return token.token_type == TokenType.NUMBER and not (text.isascii() and len(text) <= _LONGEST)


def _joined(tokens: list[Token], text: str) -> Iterator[Token]:
    """Yield tokens with `1.5D` in one piece, and `window(` as a call and no clause."""
    place = 0
    while place < len(tokens):
        token, place = tokens[place], place + 1
        following = tokens[place : place + 2]
        if token.token_type == TokenType.NUMBER and len(following) == 2:
            suffix = following[0]
            if (
                suffix.token_type == TokenType.DCOLON
                and text[suffix.start : suffix.end + 1] != "::"
            ):
                token, place = _replaced(token, end=following[1].end), place + 2
        elif token.token_type == TokenType.WINDOW:
            words = [f.text.upper() for f in following]
            if len(words) < 2 or words[1] != "AS" or words[0] in ("(", "."):
                token = _replaced(token, kind=TokenType.VAR)
        elif token.text.upper() == "SESSION" and following and following[0].text == "(":
            token = _replaced(token, kind=TokenType.VAR)
        yield token


def _replaced(token: Token, kind: TokenType | None = None, end: int | None = None) -> Token:
    kind = token.token_type if kind is None else kind
    end = token.end if end is None else end
    return Token(kind, token.text, token.line, token.col, token.start, end, token.comments)


def statements_of(text: str) -> dict[str, str] | None:
    """Split a text at semicolons into statements by name; a comment `-- name: x` names the next.

    >>> statements_of("SELECT ';'; -- name: two\\n SELECT 2;")
    {'q1': "SELECT ';'", 'two': '-- name: two\\n SELECT 2'}
    """
    tokens = tokens_of(text)
    if tokens is None:
        return None
    ends = [t.start for t in tokens if t.token_type == TokenType.SEMICOLON]
    pieces, begin = [], 0
    for end in (*ends, len(text)):
        if any(begin <= t.start < end for t in tokens):
            pieces.append(text[begin:end].strip())
        begin = end + 1
    found: dict[str, str] = {}
    for number, piece in enumerate(pieces, 1):
        named = _NAME.findall(piece[: _first_word(piece)])
        name = named[-1] if named else f"q{number}"
        if name in found:
            raise QueryError(
                f"two statements are named {name!r}", hint="name each with a comment -- name: x"
            )
        found[name] = piece
    return found


def _first_word(text: str) -> int:
    return next((t.start for t in tokens_of(text) or ()), len(text))


def query_of(text: str) -> exp.Query | None:
    """Read one query; None where it is none, or would not be written out as it was read.

    >>> query_of("select Count( * ) from t -- all") is None
    False
    >>> query_of("CREATE TABLE t (a INT)") is None
    True
    """
    tokens = tokens_of(text)
    if tokens is None:
        return None
    try:
        found = [tree for tree in Verbatim().parser().parse(tokens, text) if tree is not None]
    except (SqlglotError, RecursionError, *STUMBLES):
        return None
    if len(found) != 1 or not isinstance(found[0], exp.Query):
        return None
    again = written_of(found[0])
    written = tokens_of(again)
    same = written is not None and essence(written, again) == essence(tokens, text)
    return found[0] if same else None


def is_call(node: exp.Expr | None, *names: str) -> bool:
    """Tell whether a node calls one of these functions."""
    return isinstance(node, exp.Anonymous) and str(node.this).casefold() in names


def written_of(tree: exp.Expr) -> str:
    """Write a tree as Spark SQL."""
    return tree.sql(dialect=Verbatim, comments=False, normalize_functions=False)


_SAME = {"!=": "<>", "==": "=", "MINUS": "EXCEPT"}
# Words that say nothing after these.
_LEFT_OUT = {
    "OUTER": ("LEFT", "RIGHT", "FULL"),
    "DISTINCT": ("UNION", "EXCEPT", "INTERSECT"),
}


def essence(tokens: list[Token], text: str) -> tuple[list[str], int]:
    """Return what makes a text: its tokens without words that may be left out.

    NOT is counted apart: `a NOT IN b` and `NOT a IN b` are one tree.

    >>> one, two = "SELECT a x FROM t WHERE x NOT IN (1)", "select a AS x from t where not x in (1)"
    >>> essence(tokens_of(one), one) == essence(tokens_of(two), two)
    True
    """
    words: list[str] = []
    negations = 0
    for token in tokens:
        source = text[token.start : token.end + 1]
        word = source if token.token_type in _STRINGS else token.text.upper()
        if token.token_type == TokenType.NUMBER:
            word = source.upper()
        if token.token_type == TokenType.NOT:
            negations += 1
        elif words and words[-1] in _LEFT_OUT.get(word, ()):
            continue
        elif word not in ("AS", "ASC", "INNER", ";"):
            words.append(_SAME.get(word, word))
    return words, negations
