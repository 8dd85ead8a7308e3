"""A section of RESULTS.md: what was measured, on which machine, when."""

import datetime
import importlib.metadata
import os
import platform
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")
HEAD = """# Results

Written by `make bench`, never by hand. Each section says when and where it was measured. Where it says
nothing else, a figure is a median with the least and the greatest value, and a ratio is taken of pairs that
were measured in turn.
"""


@dataclass(frozen=True)
class Section:
    """One benchmark's figures.

    Attributes:
        title: The section's heading, which is also its key in the file.
        text: What was measured, and how.
        columns: The table's heading.
        rows: The table.
        verdicts: Sentences: what was asked for, and whether it holds.
        where: When and on what it was measured; empty: here and now.
        measured: False where it only says that nothing could be: it takes no earlier figures' place.
    """

    title: str
    text: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    verdicts: tuple[str, ...] = ()
    where: str = ""
    measured: bool = True

    def markdown(self, where: str) -> str:
        """The section; `where` says when and on what it was measured."""
        table = [self.columns, ("---",) * len(self.columns), *self.rows]
        lines = ["| " + " | ".join(row) + " |" for row in table]
        verdicts = [f"* {sentence}" for sentence in self.verdicts]
        return "\n".join([f"## {self.title}", "", self.text, "", *lines, "", *verdicts, "", where, ""])


def spread(values: Sequence[float], unit: str = "", digits: int = 1) -> str:
    """`12.3 (11.0 to 15.2) ms`: median, least, greatest."""
    middle, least, most = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({least:.{digits}f} to {most:.{digits}f}){f' {unit}' if unit else ''}"


def verdict(claim: str, value: float, limit: float, *, at_most: bool, unit: str = "") -> str:
    """Whether a median is within what is asked for, as a sentence."""
    holds = value <= limit if at_most else value >= limit
    bound = "at most" if at_most else "at least"
    unit = f" {unit}" if unit else ""
    outcome = "holds" if holds else "falls short"
    return f"{claim}: {value:.3g}{unit}; {bound} {limit:g}{unit} is asked for: {outcome}."


def here(packages: Sequence[str] = ("torch",), device: str = "") -> str:
    """When and on what something was measured.

    Args:
        packages: Whose versions matter.
        device: The name of the GPU, when one was used.
    """
    versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    parts = [
        f"Measured on {datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}",
        f"{processor()}, {os.cpu_count()} cores",
        *([device] if device else []),
        f"{platform.system()} {platform.release()}",
        f"Python {platform.python_version()}",
        *versions,
    ]
    return "; ".join(parts) + "."


def processor() -> str:
    """The processor's name."""
    try:
        rows = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (row.partition(":")[2].strip() for row in rows if row.startswith("model name")), platform.machine()
    )


def write(section: Section, where: str, results: Path = RESULTS) -> None:
    """Put a section into RESULTS.md, in place of what it said before."""
    text = results.read_text(encoding="utf-8") if results.exists() else HEAD
    _, *others = re.split(r"(?m)^(?=## )", text)
    kept = {each.splitlines()[0]: each for each in others}
    if section.measured or f"## {section.title}" not in kept:
        kept[f"## {section.title}"] = section.markdown(where)
    results.write_text(
        HEAD + "\n" + "\n".join(part.strip() + "\n" for part in kept.values()), encoding="utf-8"
    )
