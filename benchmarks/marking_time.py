"""How long 100 marks take in the console and by spreadsheet: scripted runs, with stated times of a person.

What the machine takes is measured: pages in Chromium, worked by keyboard alone, and the two commands of the
spreadsheet. What a person takes beside reading is counted in actions, each with a time of the keystroke-level
model (Card, Moran and Newell, Communications of the ACM 23, 1980): a key 0.28 s (average typist), pointing
1.1 s, moving the hand to the mouse or back 0.4 s, thinking before an action 1.35 s. Reading an answer takes
the same either way, and is left out.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from openpyxl import load_workbook

from benchmarks.console_load import make_class
from benchmarks.generated_class import ROOT
from benchmarks.section import Section, verdict
from grader.course.assignment_file import read_assignment

SUBMISSIONS, ASSISTANTS, MARKED = 120, 5, 25
KEY, POINTING, HAND, THOUGHT = 0.28, 1.1, 0.4, 1.35  # seconds
POINTS, COMMENT = "4.5", "Name an example."  # what is typed for each mark
COMMAND = 60  # keys of a command, or of a mail that says where a sheet lies
_LINK = re.compile(r"http://\S+/enter/\S+")


def console_seconds() -> float:
    """What a person takes for a mark in the console, without reading and without waiting."""
    keys = len("p") + len(POINTS) + len(["Esc", "c"]) + len(COMMENT) + 2  # Ctrl+Enter
    return THOUGHT + keys * KEY


def sheet_seconds() -> float:
    """The same in a spreadsheet: the row's link opens the PDF's page, and one goes back to type."""
    to_the_work = HAND + POINTING + KEY  # a click on the row's link
    back = 2 * KEY + HAND + POINTING + KEY  # the other window, and the cell
    keys = len(POINTS) + 1 + len(COMMENT) + 1  # a cell is left by Tab or Enter
    return to_the_work + 2 * THOUGHT + back + keys * KEY


def measured() -> Section:
    """A class of 120 marked by five, either way."""
    assignment = read_assignment(ROOT / "reference" / "vit_defects")
    with tempfile.TemporaryDirectory(prefix="grader-benchmark-") as scratch:
        out = Path(scratch) / "results"
        make_class(assignment, out, SUBMISSIONS)
        by_sheet, marks = _by_sheet(Path(scratch), out)
        by_console = _by_console(out)
    waiting = statistics.median(by_console)
    console = 100 * (console_seconds() + waiting) / 60
    once = (2 + ASSISTANTS) * COMMAND * KEY + by_sheet  # export, five mails and one import of five sheets
    sheet = 100 * (sheet_seconds() + once / marks) / 60
    return Section(
        "Minutes per 100 marks",
        f"{SUBMISSIONS} submissions, {ASSISTANTS} assistants, without the time of reading. In the console, "
        f"{len(by_console)} marks were given in Chromium by keyboard alone; by spreadsheet, all {marks} were "
        f"exported, filled in and imported. A person is assumed to take {KEY:g} s for a key, {POINTING:g} s "
        f"to point, {HAND:g} s to move the hand and {THOUGHT:g} s to think before an action (keystroke-level "
        f"model), and to type {len(POINTS)} characters of points and {len(COMMENT)} of a comment for each.",
        ("", "a person, s per mark", "the machine", "minutes per 100 marks"),
        (
            ("console", f"{console_seconds():.1f}", f"{1000 * waiting:.0f} ms per mark", f"{console:.1f}"),
            ("spreadsheet", f"{sheet_seconds():.1f}", f"{by_sheet:.1f} s for all", f"{sheet:.1f}"),
        ),
        (verdict("Minutes per 100 marks in the console", console, round(sheet, 1), at_most=True),),
    )


def _by_sheet(scratch: Path, out: Path) -> tuple[float, int]:
    """(Seconds of export and import, how many marks were given) for all assistants together."""
    sheet = scratch / "marks.xlsx"
    begun = time.perf_counter()
    _run("marks", "export", str(out), str(sheet), "--split", str(ASSISTANTS))
    seconds = time.perf_counter() - begun
    sheets = sorted(scratch.glob("marks*.xlsx"))
    marks = 0
    for path in sheets:
        book = load_workbook(path)
        for table in book.worksheets:
            heading = [cell.value for cell in table[1]]
            if "points" not in heading:
                continue
            points, comment = heading.index("points"), heading.index("comment")
            for row in table.iter_rows(min_row=2):
                if row[0].value is not None and row[points].value is None:
                    row[points].value, row[comment].value = 1, COMMENT
                    marks += 1
        book.save(path)
    copy = scratch / "copy"
    shutil.copytree(out, copy)  # the console marks the class itself
    begun = time.perf_counter()
    for path in sheets:
        _run("marks", "import", str(copy), str(path), "--by", "ta1")
    return seconds + time.perf_counter() - begun, marks


def _by_console(out: Path) -> list[float]:
    """Seconds from the last key of a mark until the next task stands there."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "grader", "serve", str(out), "--port", "0", "--by", "head"]
    process = subprocess.Popen([*command, "--course", str(ROOT)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    link = next(found[0] for line in process.stdout if (found := _LINK.search(line)))
    waited = []
    try:
        with sync_playwright() as playwright:
            chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or "chromium"
            page = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]).new_page()
            page.goto(link)
            page.goto(f"{link.partition('/enter/')[0]}/questions/q6/next")
            for _ in range(MARKED):
                page.keyboard.press("p")
                page.keyboard.type(POINTS)
                page.keyboard.press("Escape")
                page.keyboard.press("c")
                page.keyboard.type(COMMENT)
                begun = time.perf_counter()
                with page.expect_navigation():
                    page.keyboard.press("Control+Enter")
                page.locator("#mark").wait_for()
                waited.append(time.perf_counter() - begun)
    finally:
        process.terminate()
        process.wait()
    return waited


def _run(*words: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "grader", *words, "--course", str(ROOT)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
