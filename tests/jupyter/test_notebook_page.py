"""What a notebook shows has the terminal's words, and nothing of a student's becomes HTML."""

import re
from collections.abc import Callable
from html import unescape
from io import StringIO

import pytest

from grader.cli.terminal_page import Page
from grader.jupyter.notebook_page import NotebookPage
from grader.reports.student.code_lines import CodeLine

HOSTILE = "<img src=x onerror=alert(1)>&\"'"


def everything(page: Page, words: str) -> None:
    """Have a page show words in every way that it has."""
    page.heading(words)
    page.item("failed", words)
    page.item("passed", f"`{words}`")
    page.detail(words, style="dim", indent=8)
    page.printed(words)
    page.code(words, words)
    page.excerpt(words, (CodeLine(1, words, False), CodeLine(7, words, True)))
    page.pairs([(words, words)])
    page.verdict(False, f"“{words}”")
    page.blank()


def shown(html: str) -> list[str]:
    """The words of each line."""
    lines = [unescape(re.sub("<[^>]*>", "", block)) for block in re.split("</?div[^>]*>", html)]
    return ["".join(line.split()) for line in lines if line.strip()]


def test_it_has_the_words_of_the_terminal_line_by_line() -> None:
    page, terminal = NotebookPage(), StringIO()
    everything(page, "Begin with it.")
    everything(Page(terminal), "Begin with it.")
    assert page.bundle()["text/plain"] == terminal.getvalue().strip("\n")
    lines = ["".join(line.split()) for line in terminal.getvalue().replace("`", "").splitlines()]
    assert shown(page.bundle()["text/html"]) == [line for line in lines if line]


def test_all_is_escaped() -> None:
    page = NotebookPage()
    page.title(HOSTILE)
    everything(page, HOSTILE)
    html = page.bundle(HOSTILE)["text/html"]
    assert "<img" not in html and html.count("&lt;img src=x") >= 10
    assert set(re.findall(r"<(\w+)", html)) <= {"div", "span", "strong", "code", "q"}


def test_progress_stands_below_and_is_gone_in_the_end() -> None:
    page = NotebookPage()
    page.heading("Attention")
    assert page.bundle("1 of 2 checks done")["text/plain"] == "Attention\n\n1 of 2 checks done"
    assert page.bundle("1 of 2 checks done")["text/html"].endswith("1 of 2 checks done</div></div>")
    assert "checks done" not in str(page.bundle())


def test_there_is_no_command_line_in_a_notebook() -> None:
    page = NotebookPage()
    page.command("Line by line", "grader check --details")
    assert "grader check" not in str(page.bundle())


def test_no_colors_of_a_terminal_in_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel says to everybody that they write to a terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    page = NotebookPage()
    page.verdict(True, "All pass.")
    page.console.print("bold", style="bold")
    assert page.bundle()["text/plain"] == "✓ All pass.\nbold"


@pytest.mark.parametrize(
    "show", [lambda page: page.printed("a  b"), lambda page: page._print(page.mark("note"), 2)]
)
def test_what_it_does_not_know_stands_as_on_a_terminal(show: Callable[[NotebookPage], None]) -> None:
    page = NotebookPage()
    show(page)
    assert "white-space:pre;" in page.bundle()["text/html"]
