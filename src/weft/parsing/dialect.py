"""The SQL that weft reads: sqlglot's Spark dialect, with windows and event time after a source.

Added to Spark's grammar, after any source of FROM or JOIN and around its alias:

    readings TIMESTAMP BY ts                      the event-time column
    clink AS c [RANGE 1 HOUR SLIDE 1 MINUTE]      a window of CQL
    trades [ROWS 100 SLIDE 10]                    a window over rows
    auctions AS a [UNTIL NOW]                     everything since the beginning

Only the scalar functions of `weft.expression` become typed nodes. Every other call, whether an
aggregate, a window or a misspelling, stays an `exp.Anonymous` that the binder reads by its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NoReturn

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.parser import SENTINEL_NONE
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from weft.aggregate_text import SCALAR_NAMES, CallParser
from weft.aggregates.names import aggregate_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

BRACKET_FORMS = "[RANGE 1 HOUR SLIDE 5 MINUTES], [ROWS 100 SLIDE 10] or [UNTIL NOW]"
# Marks the calls of scalar functions, apart from what operators and keywords parse to.
SCALAR_CALL = "weft_scalar"


class SyntaxFault(ParseError):
    """sqlglot cannot go on at `token`, or at the end of the statement when it is None."""

    def __init__(self, description: str, token: Token | None, before: Token | None) -> None:
        super().__init__(description)
        self.description = description
        self.token = token
        self.before = before


class ClauseFault(Exception):
    """A clause of our own is malformed.

    It is no `ParseError` on purpose: sqlglot swallows those where it tries alternatives, and the
    user would read about a comma instead of the bracket after it.
    """

    def __init__(self, message: str, hint: str, token: Token) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.token = token


class StreamWindow(exp.Expression):
    """The bracket after a source: `kind` is RANGE, ROWS or UNTIL; spans are tuples of terms."""

    arg_types: ClassVar[dict[str, bool]] = {"kind": True, "range": False, "slide": False}


class WeftParser(CallParser):
    """Spark's parser, with positions on every call and the clauses of this module."""

    # Keeps `FROM a, b` apart from an explicit CROSS JOIN, which is refused.
    JOINS_HAVE_EQUAL_PRECEDENCE = False

    def raise_error(self, message: str, token: Token = SENTINEL_NONE) -> NoReturn:
        """Keep the token at which reading failed."""
        raise SyntaxFault(message, token or self._curr or None, self._prev or None)

    def _parse_function_call(
        self,
        functions: dict[str, Callable[..., exp.Expr]] | None = None,
        anonymous: bool = False,
        optional_parens: bool = True,
        any_token: bool = False,
    ) -> exp.Expr | None:
        token = self._curr
        name = token.text.upper()
        if self._next.token_type == TokenType.L_PAREN and name in SparkParser.FUNCTION_PARSERS:
            self._refuse_foreign(token)
        call = super()._parse_function_call(functions, anonymous, optional_parens, any_token)
        if call is not None and "start" not in call.meta:
            call.update_positions(token)
        if isinstance(call, exp.Func) and name in SCALAR_NAMES:
            call.meta[SCALAR_CALL] = True
        return call

    def _refuse_foreign(self, token: Token) -> None:
        """Refuse EXTRACT(x FROM y) and the like, whose arguments only Spark's parser reads."""
        if token.text.upper() not in SCALAR_NAMES and aggregate_name(token.text) is None:
            hint = "docs/sql.md lists the functions"
            raise ClauseFault(f"unknown function {token.text!r}", hint, token)

    def _parse_table_alias(
        self, alias_tokens: Collection[TokenType] | None = None
    ) -> exp.TableAlias | None:
        if self._match_text_seq("TIMESTAMP", "BY", advance=False):
            return None
        return super()._parse_table_alias(alias_tokens)

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        # A bracket after a source is a window, never an index into an array.
        return this if isinstance(this, exp.Table) else super()._parse_bracket(this)

    def _parse_table(
        self,
        schema: bool = False,
        joins: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
        parse_bracket: bool = False,
        is_db_reference: bool = False,
        parse_partition: bool = False,
        consume_pipe: bool = False,
    ) -> exp.Expr | None:
        table = super()._parse_table(
            schema, joins, alias_tokens, parse_bracket, is_db_reference, parse_partition,
            consume_pipe,
        )  # fmt: skip
        if isinstance(table, exp.Table) and self._parse_stream_clauses(table):
            alias = None if table.args.get("alias") else self._parse_table_alias(alias_tokens)
            if alias is not None:
                table.set("alias", alias)
                self._parse_stream_clauses(table)
        return table

    def _parse_stream_clauses(self, table: exp.Table) -> bool:
        """Read TIMESTAMP BY and a bracket, in either order; tell whether there was one."""
        start = self._index
        while True:
            token = self._curr
            if self._match_text_seq("TIMESTAMP", "BY"):
                self._once(table, "timestamp_by", token, "TIMESTAMP BY")
                table.set("timestamp_by", self._parse_timestamp_by(token))
            elif self._match(TokenType.L_BRACKET):
                self._once(table, "stream_window", token, "window in brackets")
                table.set("stream_window", self._parse_stream_window(token))
            else:
                return self._index != start

    def _once(self, table: exp.Table, clause: str, token: Token, words: str) -> None:
        if table.args.get(clause) is not None:
            raise ClauseFault(
                f"{table.name} has a second {words}", "keep one of them for each source", token
            )

    def _parse_timestamp_by(self, keyword: Token) -> exp.Column:
        at = self._curr or keyword
        # Not a general column: a bracket after it would be taken for an index into an array.
        parts = [self._parse_id_var(any_token=False)]
        while parts[-1] is not None and self._match(TokenType.DOT):
            parts.append(self._parse_id_var(any_token=False))
        if None in parts or len(parts) > 2:
            raise ClauseFault(
                "TIMESTAMP BY needs the name of a column",
                "name the column with the event time; compute it in the table first if need be",
                at,
            )
        if self._match_text_seq("OVER"):
            raise ClauseFault(
                "TIMESTAMP BY ... OVER is not supported: all events share one watermark",
                "remove OVER and what follows it",
                self._prev,
            )
        return exp.Column(this=parts[-1], table=parts[0] if len(parts) == 2 else None)

    def _parse_stream_window(self, opening: Token) -> StreamWindow:
        token = self._curr
        window = StreamWindow().update_positions(token or opening)
        if self._match_text_seq("RANGE"):
            window.set("kind", "RANGE")
            window.set("range", self._parse_span(token))
        elif self._match_text_seq("ROWS"):
            window.set("kind", "ROWS")
            window.set("range", self._parse_rows(token))
        elif self._match_text_seq("UNTIL", "NOW"):
            window.set("kind", "UNTIL")
        else:
            raise ClauseFault(
                "this bracket is not a window", f"write {BRACKET_FORMS}", token or opening
            )
        slide = self._curr
        if window.args["kind"] != "UNTIL" and self._match_text_seq("SLIDE"):
            by_rows = window.args["kind"] == "ROWS"
            window.set("slide", self._parse_rows(slide) if by_rows else self._parse_span(slide))
        if not self._match(TokenType.R_BRACKET):
            self._refuse_rest(opening)
        return window

    def _refuse_rest(self, opening: Token) -> NoReturn:
        rest = self._curr
        if any(token.token_type == TokenType.R_BRACKET for token in self._tokens[self._index :]):
            raise ClauseFault(
                f"unexpected {rest.text!r} in a window", f"write {BRACKET_FORMS}", rest
            )
        raise ClauseFault("this bracket is not closed", f"write {BRACKET_FORMS}", opening)

    def _parse_span(self, keyword: Token) -> exp.Tuple:
        """Read `1 HOUR 30 MINUTES`, or `'1 hour'`, as terms that carry their positions."""
        terms: list[exp.Expr] = []
        starts = {TokenType.STRING, TokenType.DASH, TokenType.NUMBER}
        while self._curr.token_type in starts:
            if self._match(TokenType.STRING):
                terms.append(exp.Literal.string(self._prev.text).update_positions(self._prev))
                continue
            number = self._parse_signed_number(keyword)
            at_end = not self._curr or self._match_texts(("SLIDE", "]"), advance=False)
            if at_end or not self._curr.text:
                raise ClauseFault(
                    f"{keyword.text} {number.name} has no unit of time",
                    f"write a unit, such as {keyword.text} {number.name} MINUTES",
                    self._prev,
                )
            self._advance()
            unit = exp.var(self._prev.text).update_positions(self._prev)
            terms.append(exp.Tuple(expressions=[number, unit]))
        if not terms:
            self._refuse_number(keyword)
        return exp.Tuple(expressions=terms).update_positions(terms[0])

    def _parse_rows(self, keyword: Token) -> exp.Tuple:
        number = self._parse_signed_number(keyword)
        return exp.Tuple(expressions=[number]).update_positions(number)

    def _parse_signed_number(self, keyword: Token) -> exp.Literal:
        first = self._curr
        sign = "-" if self._match(TokenType.DASH) else ""
        if not self._match(TokenType.NUMBER):
            self._refuse_number(keyword)
        number = exp.Literal(this=sign + self._prev.text, is_string=False)
        return number.update_positions(first)

    def _refuse_number(self, keyword: Token) -> NoReturn:
        raise ClauseFault(
            f"{keyword.text} needs a number", f"write {BRACKET_FORMS}", self._curr or keyword
        )


class Weft(Spark):
    """Spark SQL as weft reads it."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokens; two quotes in a string are one, as in Spark 4 and in the standard."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'"]
        # As a keyword, WINDOW begins a clause, and GROUP BY could not begin with window(ts, ...).
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: kind for word, kind in Spark.Tokenizer.KEYWORDS.items() if word != "WINDOW"
        }

    Parser = WeftParser
