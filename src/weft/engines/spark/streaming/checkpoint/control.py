"""Requests to a running stream, and its answers: small files beside the checkpoint."""

from __future__ import annotations

import json
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from weft.engines.failpoints import may_stop
from weft.errors import DataError, QueryError, WeftError
from weft.query import Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from weft.engines.spark.streaming.checkpoint.places import Place

Action = Literal["add", "suspend", "resume"]
Limits = dict[str, dict[str, int | None]]  # microseconds, by query and window
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asks of a running stream."""

    id: str
    action: Action
    query: str  # its name; of a query to add, its SQL
    sink: str | None = None

    @staticmethod
    def read(id: str, text: str) -> Request:
        """Read a request that somebody left; what is none asks for nothing that there is."""
        try:
            told = json.loads(text)
            action, query, sink = told["action"], told["query"], told["sink"]
        except (ValueError, TypeError, LookupError):
            action, query, sink = "nothing that can be read", "", None
        if not isinstance(query, str) or not isinstance(sink, str | None):
            action = "nothing that can be read"
        return Request(id, action, query, sink)

    def parsed(self) -> Query:
        """Read the SQL of a query to add."""
        from weft.parsing import parse

        queries = parse(self.query).queries
        if len(queries) != 1 or not isinstance(queries[0], Query):
            raise QueryError(
                "one query over one source is added at a time", hint="give one SELECT statement"
            )
        return queries[0]


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request."""

    ok: bool
    from_batch: int | None = None  # the first micro-batch that knows of it
    error: str | None = None
    hint: str | None = None

    @staticmethod
    def refusal(error: WeftError) -> Answer:
        """Say no, and why."""
        return Answer(False, error=error.message, hint=error.hint)


@dataclass(frozen=True)
class Control:
    """The control directory of a checkpoint."""

    own: Place  # the checkpoint's directory of what is not Spark's

    @property
    def _requests(self) -> Place:
        return self.own / "control"

    @property
    def _answers(self) -> Place:
        return self.own / "answers"

    def ask(self, action: Action, query: str, sink: str | None = None) -> Request:
        """Leave a request for the running stream."""
        # Requests are taken in the order in which they were left, whatever the clock does.
        left = [name.partition("-")[0] for name in self._requests.names()]
        last = max((int(number) for number in left if number.isdecimal()), default=0)
        number = max(time.time_ns(), last + 1)
        request = Request(f"{number}-{uuid.uuid4().hex[:8]}", action, query, sink)
        (self._requests / f"{request.id}.json").write(json.dumps(asdict(request)))
        return request

    def answered(self, request: Request, patience_s: float) -> Answer | None:
        """Wait for an answer; None if there is none in time."""
        latest = time.monotonic() + patience_s
        while True:
            place = self._answers / f"{request.id}.json"
            told = place.read_json()
            if told is not None:
                try:
                    return Answer(**told)
                except TypeError:
                    raise place.damaged("it is no answer") from None
            if time.monotonic() >= latest:
                return None
            time.sleep(_POLL_S)

    def requests(self) -> Iterator[Request]:
        """Return what is asked and not yet answered, oldest first."""
        for name in self._requests.names():
            if name[0] == "." or not name.endswith(".json"):
                continue
            try:
                text = (self._requests / name).read()
            except UnicodeDecodeError:
                text = ""
            if text is not None:
                # The file's own name, not one in it: it says where the answer is written.
                yield Request.read(name.removesuffix(".json"), text)

    def answer(self, request: Request, answer: Answer) -> None:
        """Answer a request, which is done with that."""
        (self._answers / f"{request.id}.json").write(json.dumps(asdict(answer)))
        may_stop("request.answered")
        (self._requests / f"{request.id}.json").delete()

    def heard(self, limits: Iterable[tuple[str, str, int | None]]) -> None:
        """Keep from when windows are complete; the last of all operators decides."""
        known = self.complete_from()
        before = json.dumps(known)
        for query, label, us in limits:
            own = known.setdefault(query, {})
            told = [one for one in (us, own.get(label)) if one is not None]
            own[label] = max(told, default=None)
        if json.dumps(known) != before:
            (self.own / "complete_from.json").write(json.dumps(known))

    def complete_from(self) -> Limits:
        """Return from when windows are complete, of queries that came while events did.

        None stands for no limit: the slices that were there serve every window that is open.
        """
        with suppress(DataError):  # operators know better; what is damaged is told anew
            told: Limits = (self.own / "complete_from.json").read_json() or {}
            if all(isinstance(own, dict) for own in told.values()):
                return told
        return {}

    def completed(self, query: Query, patience_s: float) -> Limits:
        """Wait until operators have told it of all windows of a query, or patience ends."""
        latest = time.monotonic() + patience_s
        labels = {label for label, _ in query.windows}
        while True:
            limits = self.complete_from()
            if labels <= limits.get(query.name, {}).keys() or time.monotonic() >= latest:
                return limits
            time.sleep(_POLL_S)


def described(query: Query, limits: Limits) -> list[str]:
    """Describe the windows of a query, and from when each is complete.

    >>> from weft import agg, tumbling
    >>> asked = Query("q", source="r", windows={"a": tumbling(5), "b": tumbling(7)},
    ...               aggs={"n": agg.count()})
    >>> described(asked, {"q": {"a": 0}})
    ['a: TUMBLE 5us, complete from 1970-01-01 00:00:00', 'b: TUMBLE 7us']
    """
    from weft.time import instant

    lines = []
    for label, window in query.windows:
        since = limits.get(query.name, {}).get(label)
        told = "" if since is None else f", complete from {instant(since):%Y-%m-%d %H:%M:%S}"
        lines.append(f"{label}: {window}{told}")
    return lines
