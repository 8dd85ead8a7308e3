"""A study of a student's choices as a picture and as a table."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from grader.domain.evidence import Training

COLUMNS = ("value", "setting", "own", "accuracy", "low", "high", "epochs", "seconds", "outcome", "reason")
_BLUE, _GRAY = "#1f5fa8", "#6e7681"
_DPI = 150

Rows = Sequence[tuple[str, str, bool, Training]]
"""(field, value, whether it is the student's own, what came of it)."""


def study_table(rows: Rows) -> str:
    """The study as CSV; shares are 0 to 1."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for field, value, own, training in rows:
        low, high = training.interval or (None, None)
        shares = ["" if share is None else f"{share:.4f}" for share in (training.accuracy, low, high)]
        done = len(training.epochs), f"{training.seconds:.1f}", training.outcome.value, training.reason
        writer.writerow([field, value, "yes" if own else "no", *shares, *done])
    return file.getvalue()


def write_study_plot(rows: Rows, path: Path) -> Path:
    """One panel for each field: accuracy with its interval against the field's values."""
    fields = list(dict.fromkeys(row[0] for row in rows))
    figure = Figure(figsize=(1.2 + 2.6 * len(fields), 3.4), layout="constrained")
    panels = figure.subplots(1, len(fields), sharey=True, squeeze=False)[0]
    for panel, field in zip(panels, fields, strict=True):
        own_rows = sorted((row for row in rows if row[0] == field), key=lambda row: float(row[1]))
        for index, (_, _, own, training) in enumerate(own_rows):
            if training.accuracy is None:
                place = {"xycoords": ("data", "axes fraction"), "ha": "center", "fontsize": 7}
                panel.annotate("failed", (index, 0.02), **place)
                continue
            low, high = training.interval or (training.accuracy, training.accuracy)
            reach = [[100 * (training.accuracy - low)], [100 * (high - training.accuracy)]]
            color = _BLUE if own else _GRAY
            panel.errorbar(index, 100 * training.accuracy, yerr=reach, fmt="o", color=color, capsize=3)
        panel.set_xticks(range(len(own_rows)), [row[1] for row in own_rows])
        panel.set_xlim(-0.6, len(own_rows) - 0.4)
        panel.set_title(field.replace("_", " "), fontsize=10)
        panel.grid(axis="y", alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("correct test images, %")
    # without the software's version in it, the same numbers give the same file
    figure.savefig(path, dpi=_DPI, metadata={"Software": None})
    return path
