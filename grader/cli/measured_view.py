"""How the measuring of versions is shown: a line for each, and the table afterwards."""

import statistics
import time
from collections.abc import Sequence

from rich.box import SIMPLE
from rich.table import Table

from grader.cli.terminal_page import Page, console
from grader.domain.formatting import counted, duration, points
from grader.validation.measured_versions import MeasuredVersion

STARTING = "Starting (PyTorch and the solution are loaded once) ..."


class MeasuredView:
    """Trainings of versions on the terminal."""

    def __init__(self) -> None:
        self._page = Page()
        self._screen = console(stderr=True, markup=False, highlight=False)
        self._started = time.monotonic()
        self._screen.print(STARTING)

    def line(self, trained: MeasuredVersion) -> None:
        """Print a version that was measured."""
        measured = ", ".join(map(trained.measure.scale.shown, trained.values)) or trained.training.reason
        self._screen.print(f"{trained.title}: {trained.measure.id} {measured}", soft_wrap=True)

    def show(self, trained: Sequence[MeasuredVersion]) -> bool:
        """Show the table; returns whether nothing is wrong with the assignment."""
        table = Table(box=SIMPLE)
        for name in ("version", "measure", "mean", "deviation", "points", "full points from"):
            table.add_column(name, justify="left" if name in ("version", "measure") else "right")
        for result in trained:
            table.add_row(*_cells(result))
        if self._page.live:
            console(markup=False, highlight=False).print(table)
        else:
            console(file=self._page.console.file, markup=False, highlight=False).print(table, soft_wrap=False)
        faults = [fault for result in trained for fault in result.faults]
        for fault in faults:
            self._page.verdict(False, fault)
        seconds = duration(time.monotonic() - self._started)
        if not faults:
            self._page.verdict(True, f"{counted(len(trained), 'measurement')} in {seconds}.")
        return not faults


def _cells(trained: MeasuredVersion) -> tuple[str, ...]:
    scale, values = trained.measure.scale, trained.values
    worth = (
        f"{points(trained.points)} of {points(trained.item.points)}"
        if trained.item and trained.points is not None
        else ""
    )
    return (
        trained.title,
        trained.measure.id,
        scale.shown(statistics.mean(values)) if values else trained.training.outcome.value,
        scale.shown(trained.deviation) if trained.deviation is not None else "",
        worth,
        scale.shown(trained.full_from) if trained.full_from is not None else "",
    )
