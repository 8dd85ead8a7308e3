"""Claimed results: the test accuracy and the number of epochs in a student's outputs or report.

A heuristic over words: numbers near `accuracy` or `epoch`, in English and Persian. It errs both ways, since
outputs are written for people; the line it went by is shown beside the number. No text adds or removes
points: `grader.scoring.measured` may leave the points to a person because of a claim, and decides nothing by
it. Where nothing is found there is no claim.

Tests: tests/analysis/test_claims.py
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from grader.domain.program import Claim

SHOWN = 160
MOST_TEXT = 400_000  # characters of one cell or page, from its end

# the word before `accuracy` says of what it is; Persian reports write دقت
_WORD = r"(?:accuracy|acc\b|acc\.|دقت)"
_NUMBER = r"(?P<number>\d{1,3}(?:\.\d+)?)\s*(?P<percent>%|٪|percent|درصد)?"
_AFTER = re.compile(
    rf"(?P<label>[^\W\d_]*)[\s_-]*{_WORD}(?P<between>[^\d%]{{0,40}})(?:\d+\s*/\s*\d+\s*\(\s*)?{_NUMBER}",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    rf"{_NUMBER}\s*(?:\w+\s+){{0,2}}?(?P<label>[^\W\d_]*)[\s_-]*{_WORD}(?P<between>)", re.IGNORECASE
)
_OTHERS = re.compile(
    r"at least|thresh|requir|must|minimum|target|goal|should|need|chance|random|baseline|\bcnn|resnet|"
    r"≥|>=|حداقل",
    re.IGNORECASE,
)
_TRAIN = re.compile(r"\btrain", re.IGNORECASE)
_FINAL = re.compile(r"\bfinal|\boverall|نهایی", re.IGNORECASE)
_TEST = re.compile(r"\btest|\beval|تست|آزمون", re.IGNORECASE)
_EPOCH = re.compile(r"\bepochs?\b\W{0,3}(?P<number>\d{1,4})\b(?!\s*s\b)", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?؟])\s+(?=\D)|\n\s*\n")


@dataclass(frozen=True)
class _Found:
    rank: int
    accuracy: float
    text: str


def claim_in_outputs(outputs: Iterable[tuple[str, str]]) -> Claim | None:
    """The accuracy that a notebook's outputs end with.

    Args:
        outputs: (cell, what it printed), in order.
    """
    best = _best((place, line) for place, text in outputs for line in _clean(text).splitlines())
    return None if best is None else replace(best, cell=best.source)


def claim_in_report(name: str, pages: Iterable[str]) -> Claim | None:
    """The accuracy that a report names as its result.

    Args:
        name: The report's file name.
        pages: The text of each page.
    """
    return _best(
        (f"{name}, page {number}", " ".join(sentence.split()))
        for number, page in enumerate(pages, start=1)
        for sentence in _SENTENCE.split(_clean(page))
    )


def epochs_in_outputs(outputs: Iterable[tuple[str, str]]) -> int | None:
    """The highest number of an epoch that a notebook's outputs show; None if they show none."""
    numbers = [int(found["number"]) for _, text in outputs for found in _EPOCH.finditer(_clean(text))]
    return max(numbers, default=None)


def _best(lines: Iterable[tuple[str, str]]) -> Claim | None:
    """Of all that is said, the last of what is most clearly the result on the test images."""
    best: tuple[int, Claim] | None = None
    for place, line in lines:
        for found in _accuracies(line):
            if best is None or found.rank >= best[0]:
                best = found.rank, Claim(found.accuracy, place, found.text)
    return best[1] if best else None


def _accuracies(line: str) -> Iterator[_Found]:
    """The accuracies of other than training images that a line or sentence names."""
    if _OTHERS.search(line):
        return
    for pattern in (_AFTER, _BEFORE):
        matches = list(pattern.finditer(line))
        for match in matches:
            accuracy = _share(match["number"], match["percent"])
            label = match["label"]
            if accuracy is None or _TRAIN.match(label) or _TRAIN.search(match["between"]):
                continue
            rank = 2 * bool(_TEST.search(label) or _TEST.search(line)) + bool(_FINAL.search(line))
            yield _Found(rank, accuracy, _excerpt(line, match.start()))
        if matches:
            return


def _share(number: str, percent: str | None) -> float | None:
    """A number as a share of one: `83.5 %` and `0.835`; a bare `83.52` is meant as percent."""
    value = float(number)
    if percent or (value > 1 and "." in number):
        value /= 100
    elif value > 1 or ("." not in number and value == 0):
        return None
    return value if 0 < value <= 1 else None


def _clean(text: str) -> str:
    """The end of a text, with plain digits, and of progress bars only what they show in the end."""
    text = unicodedata.normalize("NFKC", text[-MOST_TEXT:]).replace(
        "\u066b", "."
    )  # the decimal sign in Persian
    digits = "".join(str(unicodedata.digit(c, c)) if c.isdigit() else c for c in text)
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in digits.split("\n"))


def _excerpt(line: str, start: int) -> str:
    begin = max(start - SHOWN // 3, 0)
    return ("..." if begin else "") + line[begin : begin + SHOWN].strip()
