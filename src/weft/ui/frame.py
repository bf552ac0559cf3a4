"""What all pages have around them, and the small parts they are put together from."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from weft.errors import WeftError

PAGES = (("/", "Plan"), ("/streams", "Streams"), ("/results", "Results"), ("/runs", "Runs"))


def page(title: str, body: str) -> str:
    """Write a whole page; the scripts and the style are files of this server."""
    links = "".join(
        f'<a href="{path}"{" aria-current=page" if name == title else ""}>{name}</a>'
        for path, name in PAGES
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>weft: {escape(title)}</title>\n"
        '<link rel="icon" href="/icon.svg"><link rel="stylesheet" href="/style.css">\n'
        '<script src="/weft.js" defer></script>\n</head>\n<body>\n'
        '<a class="skip" href="#content">to the content</a>'
        f'<nav aria-label="pages"><b>weft</b>{links}</nav>\n'
        f'<main id="content">{body}</main>\n</body>\n</html>\n'
    )


def error_text(error: WeftError) -> str:
    """Show an error where it was made: its words, the place in the statement, and the hint."""
    hint = f"<p>hint: {escape(error.hint)}</p>" if error.hint else ""
    return f'<div class="error" role="alert"><pre>{escape(error.message)}</pre>{hint}</div>'


def card(title: str, body: str, note: str = "") -> str:
    """Frame a part of a page."""
    said = f'<p class="soft">{escape(note)}</p>' if note else ""
    return f'<section class="card"><h2>{escape(title)}</h2>{said}{body}</section>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Write rows of texts as a table; the columns in `numbers` go to the right."""

    def side(at: int) -> str:
        return ' class="number"' if at in numbers else ""

    head = "".join(f"<th{side(at)}>{escape(name)}</th>" for at, name in enumerate(heads))
    body = "".join(
        "<tr>"
        + "".join(f"<td{side(i)}>{escape(cell)}</td>" for i, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll rows"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def choice(name: str, label: str, options: Mapping[str, str], chosen: str) -> str:
    """Write a list to choose one of: values and what they are called."""
    items = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>'
        f"{escape(text)}</option>"
        for value, text in options.items()
    )
    return f'<label>{escape(label)} <select name="{name}">{items}</select></label>'


def field(name: str, label: str, value: str, example: str) -> str:
    """Write a line to type into."""
    return (
        f'<label>{escape(label)} <input name="{name}" value="{escape(value)}" '
        f'placeholder="{escape(example)}" autocomplete="off"></label>'
    )


def no_stream(title: str) -> str:
    """Say how a stream is attached, where none is."""
    return (
        f'<section class="card"><h1>{title}</h1><p>No stream is attached. Start the page with the '
        "checkpoint of one: <code>weft ui --checkpoint state</code></p></section>"
    )
