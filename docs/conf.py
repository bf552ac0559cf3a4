"""The documentation site: `make docs` builds it, and fails on a link or an anchor to nowhere.

Why Sphinx, of all generators: it has been maintained since 2008, by a team and not by one person or
company; links, anchors and names that are checked, a search that needs no service, and names taken
from docstrings are in its core; and pages stay Markdown that other generators and GitHub read as
well. MkDocs has had no release since 2024, the theme most used with it ends in 2027, and what is to
follow that has no first version yet. Whoever wants to leave takes the pages along: only this file
and the lists of pages in index.md are Sphinx's.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "scripts")]

import error_list  # noqa: E402

project = "weft"
copyright = "the authors of weft, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "weft"
html_favicon = "../src/weft/ui/static/icon.svg"
html_show_sphinx = False
html_copy_source = False
exclude_patterns = ["data"]
nitpicky = True
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
default_role = "literal"  # in docstrings, backticks are code
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
suppress_warnings = ["misc.highlighting_failure"]  # blocks that show what was refused
EVERY_ERROR = "<!-- every error -->"


def _fill_in(app: object, page: str, source: list[str]) -> None:
    if page == "errors":
        source[0] = source[0].replace(EVERY_ERROR, error_list.markdown())


def setup(app: object) -> None:
    """Put the list of errors into its page."""
    app.connect("source-read", _fill_in)  # type: ignore[attr-defined]
