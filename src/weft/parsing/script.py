"""A SQL text: its statements, their names, and errors that point at a place in it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from weft.errors import QueryError
from weft.expression import canonical, is_number
from weft.parsing.dialect import ClauseFault, SyntaxFault, Weft

if TYPE_CHECKING:
    from collections.abc import Iterator

Place = exp.Expr | Token | int

EXAMPLE = "SELECT device, MIN(temp) AS lo FROM readings GROUP BY device, window(ts, '20 minutes')"
_KEYWORDS = ("SELECT", "FROM", "WHERE", "GROUP", "TIMESTAMP", "JOIN", "AND", "SLIDE")
_NAME_COMMENT = re.compile(r"--[ \t]*name[ \t]*:[ \t]*(.*)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_UNCLOSED = re.compile(r"Missing (\S+) from \d+:(\d+)")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of the text: its tokens, its tree, its name, and where the name stands."""

    tree: exp.Expr
    tokens: tuple[Token, ...]
    name: str
    named_at: int

    def token(self, *kinds: TokenType) -> Token:
        """Return the first token of one of these kinds outside parentheses, or the first token."""
        depth = 0
        for token in self.tokens:
            depth += (token.token_type == TokenType.L_PAREN) - (
                token.token_type == TokenType.R_PAREN
            )
            if depth == 0 and token.token_type in kinds:
                return token
        return self.tokens[0]


@dataclass(frozen=True, slots=True)
class Script:
    """The whole text as the user wrote it.

    >>> print(Script("SELECT x\\nFROM t").error("no such table", hint="name another one", at=14))
    line 2, column 6: no such table
      FROM t
           ^
    hint: name another one
    """

    text: str

    def error(self, message: str, *, hint: str, at: Place) -> QueryError:
        """Build the error that shows the line of `at` with a caret under it."""
        line, column = self._line_and_column(at if isinstance(at, int) else _offset(at))
        return QueryError(message, hint=hint, sql=self.text, line=line, column=column)

    def _line_and_column(self, offset: int) -> tuple[int, int]:
        # Lines end where str.splitlines ends them, because that is how the error shows them.
        begin, number = 0, 0
        for number, line in enumerate(self.text.splitlines(keepends=True), start=1):
            visible = len(line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"))
            if offset < begin + len(line) or begin + len(line) == len(self.text):
                return number, min(offset - begin, visible) + 1
            begin += len(line)
        return 1, 1

    @contextmanager
    def located(self, at: Place) -> Iterator[None]:
        """Give a place to any `QueryError` raised inside that does not have one."""
        try:
            yield
        except QueryError as error:
            if error.line is not None:
                raise
            hint = error.hint or "see docs/sql.md"
            raise self.error(error.message, hint=hint, at=at) from None

    def embedded(self, literal: exp.Expr) -> exp.Expr:
        """Read the SQL expression inside a string; its nodes stand where the string stands."""
        with self.located(literal):
            text = canonical(literal.name)
        try:
            (expression,) = Weft().parser().parse(Weft().tokenize(text), text)
        except (SqlglotError, ClauseFault):
            expression = None
        if expression is None:
            hint = "write the expression without quotes around it"
            raise self.error("cannot read the SQL in this string", hint=hint, at=literal)
        for node in expression.walk():
            node.update_positions(literal)
        return expression

    def statements(self) -> tuple[Statement, ...]:
        """Split the text at semicolons, name each statement, and read it.

        >>> [s.name for s in Script("SELECT 1; -- name: two\\n SELECT 2; SELECT 3").statements()]
        ['q1', 'two', 'q3']
        """
        found: list[Statement] = []
        for gap, tokens in self._chunks():
            name, named_at = self._name(gap, tokens[0].start, len(found) + 1)
            found.append(Statement(self._read(tokens), tokens, name, named_at))
        if not found:
            raise self.error(
                "there is no statement in this text", hint=f"write one, such as {EXAMPLE}", at=0
            )
        return tuple(found)

    def _chunks(self) -> Iterator[tuple[int, tuple[Token, ...]]]:
        """Yield the tokens of each statement, and where the text before it begins."""
        gap = 0
        chunk: list[Token] = []
        for token in self._tokens():
            if token.token_type != TokenType.SEMICOLON:
                chunk.append(token)
                continue
            if chunk:
                yield gap, tuple(chunk)
            gap, chunk = token.end + 1, []
        if chunk:
            yield gap, tuple(chunk)

    def _tokens(self) -> list[Token]:
        try:
            return Weft().tokenize(self.text)
        except TokenError as error:
            raise self._token_error(error) from None

    def _token_error(self, error: TokenError) -> QueryError:
        unclosed = _UNCLOSED.match(str(error.__cause__))
        if unclosed is not None:
            quote, start = unclosed.groups()
            what = "name" if quote == "`" else "string"
            return self.error(f"this {what} is not closed", hint=f"add {quote}", at=int(start))
        comment = self.text.rfind("/*")
        if comment >= 0 and "*/" not in self.text[comment:]:
            return self.error("this comment is not closed", hint="add */", at=comment)
        hint = "look for odd characters near here"
        return self.error("cannot read this text as SQL", hint=hint, at=error.start or 0)

    def _name(self, begin: int, end: int, number: int) -> tuple[str, int]:
        """Read the last `-- name: x` before a statement; without one, count statements."""
        comments = list(_NAME_COMMENT.finditer(self.text, begin, end))
        if not comments:
            taken = {c.group(1).strip() for c in _NAME_COMMENT.finditer(self.text)}
            while f"q{number}" in taken:
                number += 1
            return f"q{number}", end
        name = comments[-1].group(1).strip()
        if not _NAME.match(name):
            raise self.error(
                f"{name!r} cannot name a query",
                hint="use letters, digits, '_', '-' and '.', such as -- name: hourly_lows",
                at=comments[-1].start(1),
            )
        return name, comments[-1].start(1)

    def _read(self, tokens: tuple[Token, ...]) -> exp.Expr:
        first = tokens[0]
        if first.token_type == TokenType.WITH:
            raise self.error(
                "common table expressions are not supported",
                hint="give each query a statement of its own, and name it with -- name: x",
                at=first,
            )
        if first.token_type not in (TokenType.SELECT, TokenType.L_PAREN):
            close = get_close_matches(first.text.upper(), ["SELECT"])
            raise self.error(
                f"{first.text!r} does not begin a query",
                hint="did you mean SELECT?" if close else "only SELECT statements are read",
                at=first,
            )
        try:
            (tree,) = Weft().parser().parse(list(tokens), self.text)
        except SyntaxFault as fault:
            raise self._syntax_error(fault, tokens) from None
        except ClauseFault as fault:
            raise self.error(fault.message, hint=fault.hint, at=fault.token) from None
        except RecursionError:
            hint = "split it into simpler expressions"
            raise self.error("this statement is nested too deeply", hint=hint, at=first) from None
        except (AttributeError, TypeError):  # the parser half knows some syntax, such as pipes
            hint = "write it as SELECT ... FROM ... GROUP BY"
            raise self.error("this statement cannot be read", hint=hint, at=first) from None
        if tree is None:
            return exp.Null()
        for literal in tree.find_all(exp.Literal):
            if not (literal.is_string or is_number(literal)):
                hint = "write one, such as 20 or 0.5"
                raise self.error(f"{literal.name} is not a number", hint=hint, at=literal)
        return tree

    def _syntax_error(self, fault: SyntaxFault, tokens: tuple[Token, ...]) -> QueryError:
        for suspect in (fault.before, fault.token):
            if suspect is None or suspect.token_type != TokenType.VAR:
                continue
            close = get_close_matches(suspect.text.upper(), _KEYWORDS, n=1, cutoff=0.75)
            if close and close[0] != suspect.text.upper():
                message = f"cannot make sense of {suspect.text!r} here"
                return self.error(message, hint=f"did you mean {close[0]}?", at=suspect)
        token = fault.token
        found = "the end of the statement" if token is None else repr(token.text)
        wanted = re.fullmatch(r"Expect(?:ing|ed) (\S+)", fault.description)
        surplus = re.search(r"arguments \((\d+)\) is greater .* \((\d+)\)", fault.description)
        if fault.description.startswith("Expected TYPE"):
            message = f"{found} is not a type"
        elif wanted is not None:
            message = f"expected {wanted.group(1)} before {found}"
        elif surplus is not None:
            message = f"this function takes {surplus.group(2)} argument(s), not {surplus.group(1)}"
        elif fault.description.startswith("Required argument") or token is None:
            message = f"something is missing before {found}"
        else:
            message = f"cannot make sense of {found} here"
        place: Place = tokens[-1].end + 1 if token is None else token
        return self.error(message, hint=f"compare the statement with {EXAMPLE}", at=place)


def _offset(place: exp.Expr | Token) -> int:
    """Find where a token or a node begins; a node without a place of its own asks its kin."""
    if isinstance(place, Token):
        return place.start
    node: exp.Expr | None = place
    while node is not None:
        starts = [inner.meta["start"] for inner in node.walk() if "start" in inner.meta]
        if starts:
            return int(min(starts))
        node = node.parent
    return 0
