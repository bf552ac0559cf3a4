"""The pages, put together as an application of Starlette's."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from weft.errors import InputError, UnsupportedError, WeftError, require
from weft.plan.render.style import STYLE
from weft.ui import plan_page, runs_page
from weft.ui.frame import error_text, no_stream, page
from weft.ui.guard import Guard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from typing import Any

    from starlette.requests import Request

    from weft.ui.attached import Attached, Seen
    from weft.ui.settings import Settings

_MOST_BYTES = 1 << 20  # of a form
_LOOK_S = 1.0
_ALIVE_S = 15.0  # a stream that says nothing is a connection that proxies close
_CHANGES = ("add", "suspend", "resume")


def application(settings: Settings) -> Starlette:
    """Make the application; it opens no port by itself."""
    pages = Pages(settings, _attached(settings.checkpoints))
    routes = [
        Route("/", pages.plan, methods=["GET", "POST"]),
        Route("/streams", pages.streams),
        Route("/streams/{number:int}/events", pages.events),
        Route("/streams/{number:int}/{action}", pages.change, methods=["POST"]),
        Route("/results", pages.results),
        Route("/runs", pages.runs),
        Route("/style.css", partial(_file, "style.css", "text/css")),
        Route("/weft.js", partial(_file, "weft.js", "text/javascript")),
        Route("/icon.svg", partial(_file, "icon.svg", "image/svg+xml")),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, settings=settings)])


def _attached(checkpoints: Sequence[str]) -> tuple[Attached, ...]:
    if not checkpoints:
        return ()
    require("pyspark", "spark", "looking at a stream")
    from weft.ui.attached import Attached

    return tuple(Attached(number, name) for number, name in enumerate(checkpoints))


async def _file(name: str, kind: str, request: Request) -> Response:
    text = (files("weft.ui") / "static" / name).read_text(encoding="utf-8")
    return Response(STYLE + text if name == "style.css" else text, media_type=kind)


async def _form(request: Request) -> dict[str, str]:
    """Read a form, but no more of it than anybody types."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            raise InputError("that is too much for a page", hint="use weft explain FILE.sql")
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=50))
    except ValueError as error:
        raise InputError("that form cannot be read", hint="use the forms of the page") from error


class Pages:
    """What answers to each address."""

    def __init__(self, settings: Settings, attached: tuple[Attached, ...]) -> None:
        self._settings, self._attached = settings, attached
        self._planning = anyio.CapacityLimiter(1)  # a large plan takes a core for a while

    async def plan(self, request: Request) -> Response:
        """Show the plan of a statement that was typed, or of a file under the roots."""
        settings = self._settings
        fragment = "x-fragment" in request.headers
        try:
            form = await _form(request) if request.method == "POST" else {}
            file = request.query_params.get("file", "")
            if request.method == "GET":
                form = {"sql": settings.read(file) if file else settings.statements}
            asked = plan_page.Asked.of(form)
        except WeftError as error:
            return self._whole("Plan", error_text(error), 400)
        if fragment:
            return HTMLResponse(await self._thread(plan_page.answer, asked))
        return self._whole(
            "Plan", await self._thread(plan_page.content, settings, asked, chosen_file=file)
        )

    async def streams(self, request: Request) -> Response:
        """Show what the streams do."""
        if not self._attached:
            return self._whole("Streams", no_stream("Streams"))
        from weft.ui import streams_page

        changes = self._settings.allow_changes
        shown = await anyio.to_thread.run_sync(streams_page.content, self._attached, changes)
        return self._whole("Streams", shown)

    async def results(self, request: Request) -> Response:
        """Show the last rows of a query."""
        if not self._attached:
            return self._whole("Results", no_stream("Results"))
        from weft.ui import results_page

        asked: Mapping[str, str] = dict(request.query_params)
        shown = await anyio.to_thread.run_sync(
            results_page.content, self._attached, self._settings, asked
        )
        return self._whole("Results", shown)

    async def runs(self, request: Request) -> Response:
        """Show runs that were measured."""
        return self._whole("Runs", await anyio.to_thread.run_sync(runs_page.content))

    async def events(self, request: Request) -> Response:
        """Send what changes on the page of a stream, as it changes."""
        one = self._stream_of(request)
        if one is None:
            return PlainTextResponse("there is no such stream\n", 404)
        return StreamingResponse(self._changes(one, request), media_type="text/event-stream")

    async def change(self, request: Request) -> Response:
        """Add, suspend or resume a query; say what the stream answered."""
        one, action = self._stream_of(request), request.path_params["action"]
        if one is None or action not in _CHANGES:
            return PlainTextResponse("there is no such stream\n", 404)
        try:
            if not self._settings.allow_changes:
                raise UnsupportedError(
                    "this page only looks", hint="start weft ui with --allow-changes"
                )
            form = await _form(request)
            query = form.get("query", "").strip()
            sink = self._settings.sink(form.get("sink", "").strip())
            said = await anyio.to_thread.run_sync(one.ask, action, query, sink)
        except WeftError as error:
            shown, status = error_text(error), 400
        else:
            shown, status = f'<p class="good" role="status">{said}</p>', 200
        if "x-fragment" in request.headers:
            return HTMLResponse(shown, status)
        return self._whole("Streams", shown, status)

    def _stream_of(self, request: Request) -> Attached | None:
        number: int = request.path_params["number"]
        return self._attached[number] if number < len(self._attached) else None

    async def _changes(self, one: Attached, request: Request) -> AsyncIterator[str]:
        from weft.ui import streams_page

        sent: dict[str, str] = {}
        drawn: Seen | None = None
        quiet_s = 0.0
        while not await request.is_disconnected():
            parts: dict[str, str] = {}
            with suppress(WeftError):
                seen = await anyio.to_thread.run_sync(one.look)
                if seen is not drawn:
                    at, changes = one.number, self._settings.allow_changes
                    parts[f"curves-{at}"] = streams_page.curves(seen)
                    parts[f"queries-{at}"] = streams_page.queries(at, seen, changes)
                    if drawn is None or seen.record is not drawn.record:
                        parts[f"graph-{at}"] = plan_page.graph_of(seen.record.plan)
                    drawn = seen
            new = {name: text for name, text in parts.items() if sent.get(name) != text}
            for name, text in new.items():
                lines = "".join(f"data: {line}\n" for line in (name, *text.splitlines()))
                yield f"event: part\n{lines}\n"
            sent |= new
            quiet_s = 0.0 if new else quiet_s + _LOOK_S
            if quiet_s >= _ALIVE_S:
                yield ": still here\n\n"
                quiet_s = 0.0
            await anyio.sleep(_LOOK_S)

    async def _thread(self, function: Any, *given: Any, **named: Any) -> str:
        ready = partial(function, *given, **named)
        text: str = await anyio.to_thread.run_sync(ready, limiter=self._planning)
        return text

    def _whole(self, title: str, body: str, status: int = 200) -> HTMLResponse:
        return HTMLResponse(page(title, body), status)
