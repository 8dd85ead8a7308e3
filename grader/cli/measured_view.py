"""What a person sees while variants are trained and measured, and the table afterwards."""

import statistics
import time
from collections.abc import Sequence

from rich.box import SIMPLE
from rich.table import Table

from grader.cli.terminal_page import Page, console
from grader.domain.formatting import counted, duration, points
from grader.validation.measured_variants import MeasuredVariant

STARTING = "Starting (PyTorch and the solution are loaded once) ..."


class MeasuredView:
    """Trainings of variants on the terminal."""

    def __init__(self) -> None:
        self._page = Page()
        self._screen = console(stderr=True, markup=False, highlight=False)
        self._started = time.monotonic()
        self._screen.print(STARTING)

    def line(self, found: MeasuredVariant) -> None:
        """Tell of a variant that was measured."""
        measured = ", ".join(map(found.measure.scale.shown, found.values)) or found.training.reason
        self._screen.print(f"{found.variant.name}: {found.measure.id} {measured}", soft_wrap=True)

    def show(self, found: Sequence[MeasuredVariant]) -> bool:
        """Show the table; whether nothing is wrong with the assignment."""
        table = Table(box=SIMPLE)
        for name in ("variant", "measure", "mean", "deviation", "points", "full points from"):
            table.add_column(name, justify="left" if name in ("variant", "measure") else "right")
        for each in found:
            table.add_row(*_cells(each))
        if self._page.live:
            console(markup=False, highlight=False).print(table)
        else:
            console(file=self._page.console.file, markup=False, highlight=False).print(table, soft_wrap=False)
        faults = [fault for each in found for fault in each.faults]
        for fault in faults:
            self._page.verdict(False, fault)
        seconds = duration(time.monotonic() - self._started)
        if not faults:
            self._page.verdict(True, f"{counted(len(found), 'measurement')} in {seconds}.")
        return not faults


def _cells(found: MeasuredVariant) -> tuple[str, ...]:
    scale, values = found.measure.scale, found.values
    given = (
        f"{points(found.points)} of {points(found.item.points)}"
        if found.item and found.points is not None
        else ""
    )
    return (
        found.variant.name,
        found.measure.id,
        scale.shown(statistics.mean(values)) if values else found.training.outcome.value,
        scale.shown(found.deviation) if found.deviation is not None else "",
        given,
        scale.shown(found.full_from) if found.full_from is not None else "",
    )
