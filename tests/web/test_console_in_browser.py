"""The console in Chromium: by keyboard alone, two at once, a killed server, and no request elsewhere."""

import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from grader.domain.edit import Marked
from grader.gradebook import Gradebook
from grader.marking.desk import handle_of
from grader.web.access import Access

pytestmark = pytest.mark.browser
STUDENT = "400101201"


def marks(book, target="q6"):
    return [edit for edit in book.edits() if isinstance(edit, Marked) and edit.target == target]


def test_ten_students_are_marked_by_keyboard_alone(visit, served, desk):
    page = visit("ta1")
    page.goto(f"{served.address}/questions/q6")
    page.get_by_role("link", name="Mark the next one").focus()
    with page.expect_navigation():
        page.keyboard.press("Enter")
    seen = []
    for number in range(10):
        page.wait_for_load_state("load")  # before, no key does anything
        assert page.locator("#mark").count() == 1
        seen.append(page.url)
        if number % 2:
            page.keyboard.press("1")
            page.keyboard.press("2")
            assert page.locator("#total").inner_text() == "2.5 of 5 points"
            page.keyboard.press("2")
            assert page.locator("#total").inner_text() == "3.5 of 5 points"
        else:
            page.keyboard.press("p")
            page.keyboard.type("4.5")
        page.keyboard.press("Escape")
        page.keyboard.press("c")
        page.keyboard.type(f"Number {number}.")
        with page.expect_navigation():
            page.keyboard.press("Control+Enter")
    assert len(set(seen)) == 10
    given = marks(desk.book)
    assert len(given) == 10 and {edit.who for edit in given} == {"ta1"}
    assert sorted({edit.points for edit in given}) == [3.5, 4.5]


def test_two_save_the_same_mark_and_the_second_chooses(visit, served, desk):
    address = f"{served.address}/questions/q6/{handle_of(desk, STUDENT)}"
    one, other = visit("ta1"), visit("ta2")
    one.goto(address)
    other.goto(address)
    assert "ta1 (first) has it open too" in other.locator(".here").inner_text()
    one.fill("#points", "4")
    with one.expect_navigation():
        one.keyboard.press("Control+Enter")
    other.fill("#points", "2")
    with other.expect_navigation():
        other.keyboard.press("Control+Enter")
    conflict = other.locator("#conflict")
    assert "ta1 saved a mark meanwhile" in conflict.inner_text() and other.input_value("#points") == "2"
    assert [edit.points for edit in marks(desk.book)] == [4.0]
    with other.expect_navigation():
        other.keyboard.press("Control+Enter")
    assert [(edit.who, edit.points) for edit in marks(desk.book)] == [("ta1", 4.0), ("ta2", 2.0)]


def test_keys_are_shown_and_can_be_turned_off(visit, served, desk):
    page = visit("ta1")
    page.goto(f"{served.address}/questions/q6/{handle_of(desk, STUDENT)}")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible() and "save and go on" in page.locator("#keys").inner_text()
    page.keyboard.press("1")
    assert page.locator("input[name=item]:checked").count() == 0
    page.locator("#single-keys").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    assert page.locator("input[name=item]:checked").count() == 0
    page.reload()
    page.keyboard.press("1")
    assert page.locator("input[name=item]:checked").count() == 0
    page.fill("#points", "3")
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    assert [edit.points for edit in marks(desk.book)] == [3.0]


def test_digits_in_a_field_are_text(visit, served, desk):
    page = visit("ta1")
    page.goto(f"{served.address}/questions/q6/{handle_of(desk, STUDENT)}")
    page.keyboard.press("c")
    page.keyboard.type("1 and 2, f, s?")
    assert page.input_value("#comment") == "1 and 2, f, s?"
    assert page.locator("input[name=item]:checked").count() == 0


def test_the_points_beside_the_form_are_those_that_are_saved(visit, served, desk):
    page = visit("ta1")
    page.goto(f"{served.address}/questions/q6/{handle_of(desk, STUDENT)}")
    page.check("input[value=no_order]")
    page.fill("input[name=adjustment]", "-۰٫۵")
    page.fill("input[name=reason]", "Half of it.")
    assert page.inner_text("#total") == "3 of 5 points"
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    assert [edit.points for edit in marks(desk.book)] == [3.0]


def test_comments_are_searched_and_added(visit, served, desk):
    page = visit("ta1")
    address = f"{served.address}/questions/q8/{handle_of(desk, STUDENT)}"
    page.goto(address)
    page.fill("#points", "4")
    page.fill("#comment", "The inductive bias is missing.")
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    page.keyboard.press("b")
    page.keyboard.type("inductive")
    found = page.get_by_role("button", name="The inductive bias is missing.")
    found.wait_for()
    page.locator("#bank li").nth(1).wait_for(state="detached")
    found.focus()
    page.keyboard.press("Enter")
    assert page.input_value("#comment") == "The inductive bias is missing."


def test_whose_it_is_appears_where_it_was_asked(visit, served, desk):
    page = visit("ta1")
    page.goto(f"{served.address}/questions/q6/{handle_of(desk, STUDENT)}")
    assert STUDENT not in page.content()
    page.get_by_text("Whose is it?").click()
    page.get_by_label("Why you need to know").fill("She asked.")
    page.get_by_role("button", name="Show it, and record that").click()
    page.locator("#owner").get_by_text(STUDENT).wait_for()


def test_what_students_write_runs_nowhere(visit, served, desk):
    page = visit("ta1")
    page.goto(f"{served.address}/questions/q6/{handle_of(desk, STUDENT)}")
    page.wait_for_timeout(300)
    assert page.title() != "run" and page.locator("img[src=x]").count() == 0


def test_a_page_is_printed_without_the_tools(visit, served, desk):
    page = visit("ta1")
    page.goto(f"{served.address}/questions/q6/{handle_of(desk, STUDENT)}")
    page.emulate_media(media="print")
    assert not page.locator(".bar").is_visible() and not page.locator(".bank").is_visible()
    assert page.locator(".pages img").is_visible()


def started(out, url, port):
    """The command, as somebody runs it; its process and the link that it prints."""
    words = ["serve", str(out), "--port", str(port), "--by", "head", *(["--gradebook", url] if url else [])]
    process = subprocess.Popen(
        [sys.executable, "-m", "grader", *words],
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if link := re.search(r"http://\S+/enter/\S+", line):
            process.stdout.close()  # it prints nothing more
            return process, link[0]
    raise AssertionError("The console did not start.")


def test_a_draft_survives_a_killed_server(browser, marked_class, clock):
    out, url = marked_class
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process, link = started(out, url, port)
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(link)
        page.goto(f"http://127.0.0.1:{port}/questions/q6/next")
        page.fill("#points", "3")
        page.fill("#comment", "Typed before the server was killed.")
        page.locator("#kept", has_text="Draft kept").wait_for()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        page.fill("#comment", "Typed while it was away.")
        page.locator("#kept", has_text="Not kept yet").wait_for()
        process, _ = started(out, url, port)
        page.locator("#kept", has_text="Draft kept").wait_for(timeout=60_000)
        page.reload()  # the cookie opens the new server as well
        assert (
            page.input_value("#comment") == "Typed while it was away." and page.input_value("#points") == "3"
        )
        with page.expect_navigation():
            page.keyboard.press("Control+Enter")
    finally:
        context.close()
        process.terminate()
        process.wait(30)
    with Gradebook(out, url) as book:
        assert [edit.points for edit in marks(book)] == [3.0]
    assert [one.person for one in Access(out, clock).people()] in ([], ["head"])


def test_formulas_and_markdown_are_shown(visit, served, desk):
    page, handle = visit("ta1"), handle_of(desk, STUDENT)
    page.goto(f"{served.address}/questions/q8/{handle}")
    page.fill("#points", "4")
    page.fill(
        "#comment", r"Divide by $\sqrt{d_k}$, **always**. $\text{<script>document.title='run'</script>}$"
    )
    with page.expect_navigation():
        page.get_by_role("button", name="Save", exact=True).click()
    shown = page.locator(".stands .comment")
    assert shown.locator("math msqrt").is_visible() and shown.locator("strong").inner_text() == "always"
    assert page.locator("script:not([src])").count() == 0 and page.title() != "run"
