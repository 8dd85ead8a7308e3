"""Pages of a class without the parts that are about some persons.

A row, an entry or a foldable part that mentions such a person and nobody else is cut out. Where others are
mentioned beside the person, only the mention becomes a word. A pair of similar submissions is cut as a
whole, as it shows the person's work. It writes no page: the grader makes them again where it can.
Tests: `tests/privacy/test_page_records.py`.
"""

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser

from grader.domain.mentions import Mentions

RECORDS = frozenset({"tr", "li", "details"})
_PAIR = re.compile(r'<\w+ class="pair"')
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL | re.IGNORECASE)
_ANCHOR = re.compile(r"\bpair-(\d+)\b")


def is_about(page: str, mentions: Mentions) -> bool:
    """Whether a page is about such a person as a whole: its title says so."""
    title = _TITLE.search(page)
    return title is not None and mentions.are_in(html.unescape(title[1]))


def page_without(page: str, mentions: Mentions) -> str:
    """A page that is not about such a person as a whole, without what it says about them."""
    if not mentions.are_in(page):
        return page
    cuts = [span for span in _records(page) if _goes(page[slice(*span)], mentions)]
    pieces, end = [], 0
    for begin, finish in _outermost(cuts):
        pieces.append(page[end:begin])
        end = finish
    remaining = "".join(pieces) + page[end:]
    return mentions.replaced(_renumbered(page, remaining))


def _goes(record: str, mentions: Mentions) -> bool:
    if not mentions.are_in(record):
        return False
    return _PAIR.match(record) is not None or not mentions.names_others(record)


def _outermost(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans that lie in no other one, in order."""
    last = 0
    for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end > last:
            yield begin, end
            last = end


def _renumbered(before: str, page: str) -> str:
    """The page with its pairs numbered from 1 again, as those of the record are counted."""
    if before == page or _PAIR.search(before) is None:
        return page
    left = dict.fromkeys(int(match[1]) for match in re.finditer(r'\bid="pair-(\d+)"', page))
    numbers = {old: new for new, old in enumerate(left, start=1)}
    return _ANCHOR.sub(lambda match: f"pair-{numbers.get(int(match[1]), int(match[1]))}", page)


def _records(page: str) -> Iterator[tuple[int, int]]:
    """(begin, end) of each row, entry and foldable part."""
    finder = _RecordFinder(page)
    finder.feed(page)
    finder.close()
    return iter(finder.spans)


class _RecordFinder(HTMLParser):
    """Finds where elements begin and end; the grader's own pages close all of them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=False)
        self._starts = [0]
        for line in page.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._open: list[tuple[str, int]] = []
        self.spans: list[tuple[int, int]] = []

    def _place(self) -> int:
        line, column = self.getpos()
        return self._starts[line - 1] + column

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where a record begins."""
        is_record = tag in RECORDS or ("class", "pair") in attrs
        if is_record or any(tag == open_tag for open_tag, _ in self._open):
            self._open.append((tag, self._place() if is_record else -1))

    def handle_endtag(self, tag: str) -> None:
        """Note where it ends."""
        while any(open_tag == tag for open_tag, _ in self._open):
            open_tag, begin = self._open.pop()
            if open_tag == tag:
                if begin >= 0:
                    self.spans.append((begin, self._place() + len(tag) + 3))
                return
