"""Why students are asked about their work: what was found in it, whatever it is worth.

A flag is a question of authorship: much in common with another submission (code, weights or pictures), a
claim, outputs or weights that are not those of the code, code that does something unusual. What is late,
lacks a file, uses a forbidden part, fails a check or lies near a boundary is no flag: that says something
about points, and nothing about who wrote it. No flag looks at points, and none is proof of anything.
"""

from collections.abc import Iterator, Mapping, Sequence

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.oral_check import OralFlag, OralReason
from grader.domain.submission_result import Result
from grader.reports.whole_class.review_cases import CLAIM, DISTURBED, NOTES, WEIGHTS, Cause, cases
from grader.reports.whole_class.similarity_record import PairRecord, SimilarityRecord

_REASONS: Mapping[Cause, OralReason] = {
    CLAIM: OralReason.CLAIM,
    NOTES: OralReason.CODE,
    DISTURBED: OralReason.WATCH,
    WEIGHTS: OralReason.WEIGHTS,
}
"""The sections of the queue of what needs a person that are flags."""


def oral_flags(
    assignment: Assignment, results: Sequence[Result], similarity: SimilarityRecord | None
) -> Mapping[str, tuple[OralFlag, ...]]:
    """Student -> what was found in the work, one flag for each reason; students without any are left out.

    Args:
        similarity: What was found when the submissions were compared; None: they were not.
    """
    flags: dict[str, dict[OralReason, OralFlag]] = {}
    for result in results:
        for flag in _own_flags(assignment, result):
            flags.setdefault(result.evidence.student_id, {}).setdefault(flag.reason, flag)
    for pair in similarity.pairs if similarity is not None else ():
        for student_id, flag in _pair_flags(pair):
            flags.setdefault(student_id, {}).setdefault(flag.reason, flag)
    return {student_id: tuple(by_reason.values()) for student_id, by_reason in flags.items()}


def _own_flags(assignment: Assignment, result: Result) -> Iterator[OralFlag]:
    """What was found in one submission by itself."""
    for case in cases(assignment, result.evidence, result.score):
        if case.cause in _REASONS:
            yield OralFlag(_REASONS[case.cause], case.text)
    yield from _training_flags(result.evidence)


def _training_flags(evidence: Evidence) -> Iterator[OralFlag]:
    for training in evidence.trainings:
        for objection in training.objections:
            yield OralFlag(OralReason.MODEL, objection)
    if evidence.study is not None and evidence.study.agrees is False:
        yield OralFlag(
            OralReason.STUDY, "Rows that were trained again do not differ from the base as claimed."
        )


def _pair_flags(pair: PairRecord) -> Iterator[tuple[str, OralFlag]]:
    """What a pair says about each of its students; one of an earlier class is not asked."""
    if pair.before:
        text = f"{pair.says}, with {pair.other} from an earlier class."
        yield pair.one, OralFlag(OralReason.SIMILAR, text)
        return
    yield pair.one, OralFlag(OralReason.SIMILAR, f"{pair.says}, with {pair.other}.")
    yield pair.other, OralFlag(OralReason.SIMILAR, f"{pair.says}, with {pair.one}.")
