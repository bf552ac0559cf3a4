"""Draw the panels of an outcome, side by side, as one PNG file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from weft.bench.frame import Outcome, Panel

NEEDS = ("matplotlib",)
_PANEL_INCHES = (5.6, 4.2)
_MARKERS = "osD^vPX*<>hp"
_MARKED_POINTS = 40  # more markers than this on a line hide it


def draw(outcome: Outcome, directory: Path) -> Path:
    """Write `group-name.png` into the directory, which is made if need be; return its path."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    width, height = _PANEL_INCHES
    figure = Figure(figsize=(width * len(outcome.panels), height), layout="constrained")
    for axes, panel in zip(
        figure.subplots(1, len(outcome.panels), squeeze=False)[0], outcome.panels, strict=True
    ):
        _draw_panel(axes, panel)
    figure.suptitle(outcome.question, fontsize=10)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{outcome.name.replace('/', '-')}.png"
    figure.savefig(path, dpi=130)
    return path


def _draw_panel(axes: Any, panel: Panel) -> None:
    for number, (label, (xs, ys)) in enumerate(panel.lines.items()):
        marker = _MARKERS[number % len(_MARKERS)] if len(xs) <= _MARKED_POINTS else None
        axes.plot(xs, ys, marker=marker, markersize=4, linewidth=1.2, label=label)
    if panel.boxes:
        names = ("whislo", "q1", "med", "q3", "whishi")
        axes.bxp(
            [
                {"label": label, **dict(zip(names, numbers, strict=True))}
                for label, numbers in panel.boxes.items()
            ],
            showfliers=False,
        )
        axes.tick_params(axis="x", rotation=35)
    if panel.log_x:
        axes.set_xscale("log")
    if panel.log_y:
        axes.set_yscale("log")
    axes.set_title(panel.title, fontsize=10)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.grid(visible=True, which="major", alpha=0.3)
    if panel.lines:
        axes.legend(fontsize=8)
