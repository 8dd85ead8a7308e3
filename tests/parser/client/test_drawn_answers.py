"""Students' PDFs drawn in a locked-down parser: what is wrong with one costs its pages and nothing else."""

import hashlib
import io
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from grader.domain.errors import SubmissionError
from grader.domain.submission import ANSWERS_FILE, ANSWERS_TEXT_FILE, DrawnPage, Undrawn
from grader.grading.comparison import read_works
from grader.intake import submissions
from grader.parser.client import drawn_answers
from grader.parser.client.drawn_answers import kept_answers
from grader.parser.client.parsed_files import ParserOpener
from grader.parser.messages import (
    MODULE,
    MOST_PAGE_TEXT,
    MOST_PAGES,
    PAGE_LIMITS,
    SOURCE_LIMITS,
    VIEWS,
    FileRequest,
)
from grader.parser.service.pdf_pages import CPU_SECONDS, MEMORY_MB
from grader.protocol.frames import Frame
from grader.sandbox.host_client import Host
from tests.warm_hosts import WarmHosts


@pytest.fixture(scope="module")
def opened(warm_hosts: WarmHosts) -> Iterator[ParserOpener]:
    """Parsers that are warm for drawing."""
    with warm_hosts.shared(), Host.start(MODULE, [VIEWS], wrapped=True) as host:
        yield ParserOpener(host)


@pytest.fixture
def kept(opened, tmp_path: Path):
    """Keep a PDF of these bytes."""

    def of(data: bytes, name: str = "400101204_Lab8_Homework.pdf"):
        (tmp_path / name).write_bytes(data)
        return kept_answers(opened, tmp_path / name)

    return of


def test_a_pdf_and_its_pages_are_kept(kept, pdfs):
    data = pdfs.pdf(pdfs.text("one"), pdfs.text("two"), b"1 0 0 rg 0 0 600 800 re f")
    answers, files = kept(data)
    assert (answers.file, answers.size) == ("400101204_Lab8_Homework.pdf", len(data))
    assert answers.digest == hashlib.sha256(data).hexdigest()
    assert answers.drawn == tuple(DrawnPage(number, 900, 1200) for number in (1, 2, 3))
    assert (answers.pages, answers.tried, answers.undrawn, answers.missing) == (3, 3, None, ())
    assert answers.kept and files[ANSWERS_FILE] == data
    pictures = ["answers-01.webp", "answers-02.webp", "answers-03.webp"]
    assert list(files) == [ANSWERS_FILE, *pictures, ANSWERS_TEXT_FILE]
    assert json.loads(files[ANSWERS_TEXT_FILE]) == {"1": "one", "2": "two", "3": ""}
    with Image.open(io.BytesIO(files["answers-03.webp"])) as picture:
        assert picture.format == "WEBP" and picture.size == (900, 1200)
        red, green, blue = picture.convert("RGB").getpixel((450, 600))
    assert red > 240 and green < 15 and blue < 15


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "pages", "drawn", "undrawn"),
    [
        ("script", 1, 1, None),
        ("launch", 1, 1, None),
        ("embedded_file", 1, 1, None),
        ("huge_page", 1, 1, None),
        ("endless_page", 1, 1, None),
        ("picture_bomb", 1, 1, None),
        ("deep_arrays", 1, 1, None),
        ("lying_count", 1, 1, None),
        ("many_pages", 100_000, MOST_PAGES, None),
        ("tree_loop", 30, 0, None),
        ("truncated", None, 0, Undrawn.DAMAGED),
        ("bomb", 1, 0, None),
    ],
)
def test_hostile_pdfs_cost_their_pages_at_most(kept, pdfs, name, pages, drawn, undrawn):
    began = time.monotonic()
    data = getattr(pdfs, name)() if name != "truncated" else pdfs.truncated(pdfs.embedded_file())
    answers, files = kept(data)
    assert (answers.pages, len(answers.drawn), answers.undrawn) == (pages, drawn, undrawn)
    assert len(answers.missing) == min(pages or 0, MOST_PAGES) - drawn
    assert files.keys() - {ANSWERS_TEXT_FILE} == {ANSWERS_FILE, *(page.image for page in answers.drawn)}
    assert all(b"alert" not in content for name, content in files.items() if name != ANSWERS_FILE)
    assert len(files.get(ANSWERS_TEXT_FILE, b"")) < 4 * MOST_PAGES * MOST_PAGE_TEXT
    assert time.monotonic() - began < 60


@pytest.mark.slow
def test_a_page_that_ends_its_parser_costs_that_page_alone(kept, pdfs):
    answers, _ = kept(pdfs.laughs())
    assert [page.number for page in answers.drawn] == [1, 3]
    assert (answers.pages, answers.missing, answers.undrawn) == (3, (2,), None)


def test_a_password_is_told(kept, pdfs):
    answers, files = kept(pdfs.protected(pdfs.pdf(b""), "secret"))
    assert (answers.undrawn, answers.pages, answers.drawn) == (Undrawn.PROTECTED, None, ())
    assert answers.kept and list(files) == [ANSWERS_FILE]


def test_one_that_is_too_large_is_drawn_and_not_kept(kept, pdfs, monkeypatch):
    data = pdfs.pdf(pdfs.text("one"))
    monkeypatch.setattr(drawn_answers, "LARGEST_KEPT", len(data) - 1)
    answers, files = kept(data)
    assert not answers.kept and list(files) == ["answers-01.webp", ANSWERS_TEXT_FILE]
    monkeypatch.setattr(drawn_answers, "LARGEST_KEPT", len(data))
    assert kept(data)[0].kept


def test_pages_that_take_too_much_room_are_left_out(kept, pdfs, monkeypatch):
    monkeypatch.setattr(drawn_answers, "MOST_BYTES", 9_000)
    answers, files = kept(pdfs.pdf(*[pdfs.text("a line of text " * 3)] * 9))
    assert answers.undrawn is Undrawn.FULL and 0 < len(answers.drawn) < 9 == answers.pages
    assert answers.tried == len(answers.drawn)
    assert sum(map(len, files.values())) - len(files[ANSWERS_FILE]) <= 9_000


def test_noise_is_made_smaller_than_text_would_be():
    noise = np.random.default_rng(0).integers(0, 256, (1200, 1200, 3), dtype=np.uint8)
    large = io.BytesIO()
    Image.fromarray(noise).save(large, "WEBP", quality=75, method=2)
    assert len(drawn_answers._compressed(noise)) < 0.8 * len(large.getvalue())


def test_it_has_less_time_and_memory_than_other_parsers(kept, pdfs, opened, monkeypatch, tmp_path):
    """A page that wants a gigabyte ends before it has one, although its process might."""
    assert PAGE_LIMITS == SOURCE_LIMITS, "one spare is ready for both"
    assert SOURCE_LIMITS.cpu_seconds > CPU_SECONDS and SOURCE_LIMITS.memory_mb > MEMORY_MB
    (tmp_path / "bomb.pdf").write_bytes(pdfs.bomb())
    with pytest.raises(SubmissionError) as caught:
        drawn_answers._draw(opened, tmp_path / "bomb.pdf", drawn_answers._Pages(), 60)
    assert "1500 MB" not in str(caught.value)


def test_the_time_for_all_pages_is_bounded(kept, pdfs, monkeypatch):
    monkeypatch.setattr(drawn_answers, "SECONDS", 0)
    assert kept(pdfs.pdf(b""))[0].undrawn is Undrawn.ENDED


def test_many_are_drawn_at_once_by_forks_of_one_host(opened, pdfs, tmp_path):
    """PDFium is loaded in the host, and forked while nothing of it runs."""
    path = tmp_path / "a.pdf"
    path.write_bytes(pdfs.pdf(*[pdfs.text("hello")] * 4))
    found: list = []
    threads = [threading.Thread(target=lambda: found.append(kept_answers(opened, path))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 6 and all(one == found[0] for one in found)
    assert len(found[0][0].drawn) == 4


class Told:
    """A parser that a PDF has taken over: it says what its PDF wants."""

    def __init__(self, *frames: Frame) -> None:
        self.frames = frames
        self.conversations = 0

    def answers(self, path, request, seconds, limit, *, limits):
        self.conversations += 1
        yield from self.frames
        raise SubmissionError("it ended")


PAGE = Frame({"page": 1}, {"pixels": np.zeros((2, 3, 3), dtype=np.uint8)})


@pytest.mark.parametrize(
    "frame",
    [
        Frame({"page": 1}, {"pixels": np.zeros((2, 3, 4), dtype=np.uint8)}),
        Frame({"page": 1}, {"pixels": np.zeros((2, 3), dtype=np.uint8)}),
        Frame({"page": 1}, {"pixels": np.zeros((0, 3, 3), dtype=np.uint8)}),
        Frame({"page": 1}, {"pixels": np.zeros((1201, 3, 3), dtype=np.uint8)}),
        Frame({"page": 1}, {"pixels": np.zeros((3, 1201, 3), dtype=np.uint8)}),
        Frame({"page": 1}, {"pixels": np.zeros((2, 3, 3), dtype=np.float32)}),
        replace(PAGE, document={"page": 3}),
        replace(PAGE, document={"page": -1}),
        replace(PAGE, document={"page": "1"}),
        Frame({"pages": 10**9}),
        Frame({"pages": 3}),
        Frame({"undrawn": "<script>"}),
        Frame({"undrawn": "protected"}),  # it said before how many pages there are
        Frame({"read": 1}),
        Frame({}),
        Frame({"text": "x", "of": 1}),  # the page has not come yet
        Frame({"text": 1, "of": 0}),
        Frame({"text": "x", "of": 2}),
    ],
)
def test_nothing_that_a_parser_says_is_believed(frame, tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-")
    told = Told(Frame({"pages": 2}), frame, PAGE)
    answers, files = kept_answers(told, tmp_path / "a.pdf")
    assert answers.drawn == () and list(files) == [ANSWERS_FILE]
    assert told.conversations <= drawn_answers.MOST_PARSERS


def test_a_parser_that_never_ends_is_left_after_the_last_page(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-")
    pages = [replace(PAGE, document={"page": number}) for number in range(1, 1000)]
    answers, files = kept_answers(Told(Frame({"pages": 5000}), *pages), tmp_path / "a.pdf")
    assert len(answers.drawn) == len(files) - 1 == MOST_PAGES and answers.pages == 5000


def test_the_text_of_a_page_is_bounded_and_comes_once(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-")
    text = Frame({"text": "x" * 2 * MOST_PAGE_TEXT, "of": 1})
    answers, files = kept_answers(Told(Frame({"pages": 2}), PAGE, text, text), tmp_path / "a.pdf")
    assert len(json.loads(files[ANSWERS_TEXT_FILE])["1"]) == MOST_PAGE_TEXT
    assert answers.drawn[0].number == 1


@pytest.mark.parametrize("count", [0, -1, True, 1.5, None, "3"])
def test_a_number_of_pages_that_is_none_is_not_taken(tmp_path, count):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-")
    answers, _ = kept_answers(Told(Frame({"pages": count}), PAGE), tmp_path / "a.pdf")
    assert answers.pages is None and answers.undrawn is Undrawn.ENDED and answers.drawn == ()


def test_comparing_submissions_draws_no_page(opened, pdfs, assignment, tmp_path, monkeypatch):
    folder = tmp_path / "class" / "400101204"
    folder.mkdir(parents=True)
    (folder / "400101204_Lab8_Homework.py").write_text("x = 1\n", encoding="utf-8")
    (folder / "400101204_Lab8_Homework.pdf").write_bytes(pdfs.pdf(pdfs.text("hello")))
    asked: list[str] = []
    answers = ParserOpener.answers

    def noted(self, path, request, *args, **more):
        asked.append(request["open"])
        return answers(self, path, request, *args, **more)

    monkeypatch.setattr(ParserOpener, "answers", noted)
    found = submissions(folder.parent, assignment, tmp_path / "scratch", opened).submissions
    [work] = read_works(opened._parsers, assignment, [(found[0], False)], jobs=1)
    assert work.code is not None and asked == ["code", "figures"] and FileRequest.PAGES not in asked
