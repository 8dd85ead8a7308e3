"""Pairs of similar submissions as CSV."""

import csv
import io

from grader.similarity.pairs import Comparison

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
