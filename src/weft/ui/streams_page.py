"""Running streams: curves of what they do, their queries, and forms to change these."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from weft.cost.sizes import bytes_text
from weft.engines.spark.streaming.checkpoint.control import described
from weft.errors import WeftError
from weft.ui.attached import lag_s
from weft.ui.curves import Curve, count_text, seconds_text
from weft.ui.frame import card, error_text
from weft.ui.plan_page import graph_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.engines.spark.streaming.progress import Progress
    from weft.ui.attached import Attached, Seen

_MOST_WINDOWS = 9  # that have a curve of their own


def content(attached: Sequence[Attached], allow_changes: bool) -> str:
    """Write the page of all streams."""
    return "".join(_stream(one, allow_changes) for one in attached)


def _stream(one: Attached, allow_changes: bool) -> str:
    at = one.number
    try:
        seen = one.look()
    except WeftError as error:
        return card(one.name, error_text(error))
    changes = _add_form(at) if allow_changes and seen.is_live else _why_not(seen, allow_changes)
    return (
        f'<section class="card" data-live="/streams/{at}/events"><h1>{escape(one.name)}</h1>'
        f'<div id="curves-{at}">{curves(seen)}</div>'
        f'<h2>Queries</h2><div id="queries-{at}">{queries(at, seen, allow_changes)}</div>'
        f'{changes}<details><summary>plan</summary><div id="graph-{at}">'
        f"{graph_of(seen.record.plan)}</div></details></section>"
    )


def curves(seen: Seen) -> str:
    """Draw what the last micro-batches did."""
    told, windows = seen.history, seen.windows
    if not told:
        return '<p class="soft">no micro-batch has ended yet</p>'
    ends = (f"batch {told[0].batch}", f"batch {told[-1].batch}")
    waiting = [p.open_slices if p.open_windows is None else p.open_windows for p in told]
    noun = "open slices" if told[-1].open_windows is None else "open windows"
    drawn = (
        Curve("rows/s", [p.rows_per_second for p in told], count_text, ends),
        Curve(
            "lag of the watermark",
            [lag_s(p) for p in told],
            seconds_text,
            ends,
            "how far the watermark is behind the clock of the machine",
        ),
        Curve("micro-batch", [p.seconds for p in told], seconds_text, ends),
        Curve("late rows", [float(p.late) for p in told], count_text, ends),
        Curve(
            noun,
            [float(n) for n in waiting],
            count_text,
            ends,
            "(key, instance) pairs that wait, or the (key, slice) pairs that they wait for",
        ),
        *(_window_curves(told, ends) or [_mean_curve(told, windows, ends)]),
    )
    state = bytes_text(float(told[-1].state_bytes))
    last = f"{told[-1].line()}; {seen.record.strategy} strategy, {state} for {windows} windows"
    return f'<div class="curves">{"".join(c.svg() for c in drawn)}</div><p>{escape(last)}</p>'


def _window_curves(told: Sequence[Progress], ends: tuple[str, str]) -> list[Curve]:
    """Draw what of the state each window reads, of the largest ones; nothing if nobody knows."""
    known = [{(query, label): n for query, label, n in p.window_bytes} for p in told]
    largest = sorted(known[-1].items(), key=lambda own: -own[1])[:_MOST_WINDOWS]
    return [
        Curve(
            f"state of {query} {label}",
            [None if (n := shares.get((query, label))) is None else float(n) for shares in known],
            bytes_text,
            ends,
            "what its open instances read; windows share the state, so these add up to more",
        )
        for (query, label), _ in largest
    ]


def _mean_curve(told: Sequence[Progress], windows: int, ends: tuple[str, str]) -> Curve:
    return Curve(
        "state per window",
        [p.state_bytes / max(windows, 1) for p in told],
        bytes_text,
        ends,
        f"all windows share one state; this is its size over {windows} windows",
    )


def queries(at: int, seen: Seen, allow_changes: bool) -> str:
    """List the queries with their windows, and from when these are complete."""
    rows = []
    for query, active in seen.queries:
        windows = "<br>".join(escape(line) for line in described(query, seen.limits))
        state = "active" if active else "suspended"
        button = ""
        if allow_changes and seen.is_live:
            action = "suspend" if active else "resume"
            name = escape(query.name)
            button = (
                f'<form method="post" action="/streams/{at}/{action}" data-into="said-{at}">'
                f'<input type="hidden" name="query" value="{name}">'
                f'<button id="{action}-{at}-{name}">{action}<span class="only-read"> {name}</span>'
                "</button></form>"
            )
        rows.append(
            f"<tr><td>{escape(query.name)}</td><td>{state}</td><td>{windows}</td>"
            f"<td>{button}</td></tr>"
        )
    heads = "<th>query</th><th>state</th><th>windows</th><th></th>"
    return (
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _add_form(at: int) -> str:
    return (
        f'<div id="said-{at}" aria-live="polite"></div>'
        f'<form method="post" action="/streams/{at}/add" data-into="added-{at}">'
        '<label class="wide">add a query<textarea name="query" rows="3" spellcheck="false" '
        'placeholder="-- name: more&#10;SELECT ..."></textarea></label>'
        '<div class="line"><label>sink <input name="sink" placeholder="as the others" '
        'autocomplete="off"></label><button>add</button></div></form>'
        f'<div id="added-{at}" aria-live="polite"></div>'
    )


def _why_not(seen: Seen, allow_changes: bool) -> str:
    if not allow_changes:
        why = "This page only looks: start it with --allow-changes to add and suspend queries."
    else:
        strategy = escape(seen.record.strategy)
        why = f"The states of the {strategy} strategy cannot change while it runs."
    return f'<p class="soft">{why}</p>'
