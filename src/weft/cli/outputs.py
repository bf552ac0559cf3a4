"""Where results go: one file for one query, several files for several."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def targets_of(output: Path, queries: Sequence[str]) -> dict[str, Path]:
    """Name a file for each query.

    A path with an extension is the file of a single query; the names of several are put before
    the extension. Any other path is a folder of parquet files.

    >>> from pathlib import Path
    >>> [path.as_posix() for path in targets_of(Path("out.csv"), ["lows", "highs"]).values()]
    ['out-lows.csv', 'out-highs.csv']
    >>> [path.as_posix() for path in targets_of(Path("results"), ["lows"]).values()]
    ['results/lows.parquet']
    """
    from weft.tables import format_of

    if output.is_dir() or not output.suffix:
        return {query: output / f"{query}.parquet" for query in queries}
    format_of(output)  # refuses an unknown extension before anything runs
    if len(queries) == 1:
        return {queries[0]: output}
    return {query: output.with_name(f"{output.stem}-{query}{output.suffix}") for query in queries}
