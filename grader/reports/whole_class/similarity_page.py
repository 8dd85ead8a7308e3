"""Pairs of similar submissions, for a person to judge: a page with both sides, and a table as CSV.

It shows what the pairs have in common, as passages, pictures and figures, and one row for each pair. It
never compares submissions (`grader.similarity` does), and it never says that somebody copied.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from grader.domain.assignment import Assignment
from grader.reports.student.code_lines import CodeLine
from grader.reports.typesetting import environment, picture_uri
from grader.reports.whole_class.similarity_record import LISTED, in_common, pair_anchor
from grader.similarity.compared_pairs import Comparison, Line, Pair, Passage, shown_id
from grader.similarity.compared_work import Work

MOST_SHOWN = 60  # pairs side by side
MOST_LINES = 120  # of a passage
MOST_PICTURES = 8  # of a pair
CONTEXT_LINES = 1  # lines before and after
LONGEST_LINE = 140  # characters of a line
FEWEST_PAIRS = 100  # for the usual scores: with fewer pairs, none are stated


@dataclass(frozen=True)
class Column:
    """One student's side of a passage: excerpts in order, each with its place."""

    excerpts: tuple[tuple[str, tuple[CodeLine, ...]], ...]


@dataclass(frozen=True)
class Sides:
    """A passage, side by side."""

    one: Column
    other: Column


@dataclass(frozen=True)
class Picture:
    """A picture that both submissions have, as a data URI, and its place in each."""

    uri: str
    size: str
    one: str
    other: str


@dataclass(frozen=True)
class ShownPair:
    """A pair as it is shown.

    Attributes:
        anchor: The id of the part that opens, or of the row where there is nothing to open.
        says: What they have in common, as a clause.
        checkpoint: What the weights have in common; empty where nothing.
    """

    anchor: str
    one: str
    other: str
    pair: Pair
    says: str
    checkpoint: str
    passages: tuple[Sides, ...] = ()
    pictures: tuple[Picture, ...] = ()


def similarity_page(
    assignment: Assignment, comparison: Comparison, *, notes: Sequence[str], generated_at: datetime
) -> str:
    """What submissions have in common, as a self-contained HTML page.

    Args:
        assignment: What was asked for.
        comparison: What was found.
        notes: Sentences about the upload.
        generated_at: When the page is made.

    Returns:
        HTML text; the same arguments give the same text.
    """
    return (
        environment()
        .get_template("similarity.html.j2")
        .render(
            assignment=assignment,
            count=sum(1 for work in comparison.works if not work.before),
            before=sum(1 for work in comparison.works if work.before),
            pairs=[_shown_pair(pair, index) for index, pair in enumerate(comparison.pairs[:LISTED])],
            total=len(comparison.pairs),
            shown=MOST_SHOWN,
            groups=comparison.groups(),
            threshold=comparison.threshold,
            usual=_usual_scores(comparison.scores),
            compared=len(comparison.scores),
            left_out=[(shown_id(work), sentence) for work, sentence in comparison.left_out],
            notes=notes,
            generated_at=generated_at,
        )
    )


def _usual_scores(scores: Sequence[float]) -> tuple[float, float] | None:
    """The median and the 95th percentile of the pairs' scores; None for too few pairs.

    Args:
        scores: The scores of all pairs, sorted.
    """
    if len(scores) < FEWEST_PAIRS:
        return None
    return scores[len(scores) // 2], scores[int(0.95 * (len(scores) - 1))]


def _shown_pair(pair: Pair, index: int) -> ShownPair:
    detailed = index < MOST_SHOWN
    return ShownPair(
        pair_anchor(index),
        shown_id(pair.one),
        shown_id(pair.other),
        pair,
        in_common(pair),
        _checkpoint_words(pair),
        tuple(_sides(pair, passage) for passage in pair.passages) if detailed else (),
        tuple(_pictures(pair)) if detailed else (),
    )


def _checkpoint_words(pair: Pair) -> str:
    if pair.weights is None or not pair.weights.near:
        return ""
    if pair.weights.identical:
        return "identical"
    return f"nearly identical (relative distance {pair.weights.distance:.3f})"


def _sides(pair: Pair, passage: Passage) -> Sides:
    return Sides(_column(pair.one, passage.one), _column(pair.other, passage.other))


def _column(work: Work, lines: Sequence[Line]) -> Column:
    """The lines with their neighbors, divided where there is a gap or another cell begins."""
    text = work.code.text if work.code else {}
    excerpts = []
    for file, run in _runs(lines[:MOST_LINES]):
        source = text.get(file, "").split("\n")
        first, last = max(run[0] - CONTEXT_LINES, 1), min(run[-1] + CONTEXT_LINES, len(source))
        shown = tuple(
            CodeLine(number, _cut(line), number in run)
            for number, line in _numbered(source, first, last)
            if line or first < number < last
        )
        if shown:
            excerpts.append((file, shown))
    return Column(tuple(excerpts))


def _numbered(source: Sequence[str], first: int, last: int) -> Iterator[tuple[int, str]]:
    return ((number, source[number - 1].expandtabs(4).rstrip()) for number in range(first, last + 1))


def _runs(lines: Sequence[Line]) -> Iterator[tuple[str, list[int]]]:
    """Lines of one file that are close to each other."""
    by_file: dict[str, set[int]] = {}
    for file, line in lines:
        by_file.setdefault(file, set()).add(line)
    for file, numbers in by_file.items():
        run: list[int] = []
        for number in sorted(numbers):
            if run and number - run[-1] > 2 * CONTEXT_LINES + 2:
                yield file, run
                run = []
            run.append(number)
        yield file, run


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + " …"


def _pictures(pair: Pair) -> Iterator[Picture]:
    for shared in pair.figures[:MOST_PICTURES]:
        first = shared.one
        yield Picture(
            _uri(first.preview), f"{first.width} × {first.height} pixels", first.where, shared.other.where
        )


def _uri(pixels: NDArray[np.uint8]) -> str:
    """A PNG made here from pixels, so that no byte of a student's file gets into the page."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return picture_uri("png", file.getvalue())


# --- similarity table ------------------------------------------------------------------------------------


COLUMNS = (
    "one",
    "other",
    "other_is_of",
    "score",
    "code_of_one_in_other",
    "code_of_other_in_one",
    "checkpoint",
    "checkpoint_distance",
    "identical_figures",
)


def similarity_table(comparison: Comparison) -> str:
    """The listed pairs as CSV, the strongest first; shares are 0 to 1."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for pair in comparison.pairs:
        state, distance = "", ""
        if pair.weights is not None:
            state = "identical" if pair.weights.identical else "near" if pair.weights.near else "different"
            distance = "" if pair.weights.distance is None else f"{pair.weights.distance:.4f}"
        writer.writerow(
            [
                pair.one.student_id,
                pair.other.student_id,
                "an earlier class" if pair.other.before else "this class",
                f"{pair.score:.3f}",
                f"{pair.code.one:.3f}",
                f"{pair.code.other:.3f}",
                state,
                distance,
                len(pair.figures),
            ]
        )
    return file.getvalue()
