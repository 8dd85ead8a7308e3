"""What the results say when a run was not completed: valid files in each grader's format, without points.

It imports nothing slow, because the parent of a run writes such a file before anything else happens. It never
says that the student is at fault, and it never gives or takes points.
"""

import json
from typing import Any

NOT_FINISHED = (
    "The grader did not finish, so nothing was decided. This is not your fault; please tell the staff."
)
NOTHING_TO_GRADE = "There is nothing to grade among the files that were handed in."
SEVERAL_STUDENTS = "The files carry the ids of several students. Hand in the files of one."


def whose_values(name: str) -> str:
    """What a student reads whose files do not say which values were drawn for whoever wrote them.

    Args:
        name: How files are to be named, without their suffix.
    """
    return (
        "The values of this homework are drawn for each student, and no name of a file says whose it is, so "
        f"nothing was decided. Name your files like `{name}`, with your id, and hand them in again."
    )


def out_of_time(minutes: float) -> str:
    """What a student reads of a run that took too long."""
    return (
        f"The run took longer than the {minutes:g} minutes that this assignment allows, so nothing was "
        "decided. Does your code return? If so, please tell the staff."
    )


def out_of_memory(megabytes: int) -> str:
    """What a student reads of a run that took too much memory."""
    return (
        f"The run used more than the {megabytes} MB of memory that this assignment allows, so nothing was "
        "decided. Does your code keep large tensors? If not, please tell the staff."
    )


def failed_document(kind: str, sentence: str) -> dict[str, Any]:
    """A valid results file that says why nothing was decided.

    Args:
        kind: `gradescope`, `container` or `prairielearn`.
        sentence: For the student.
    """
    if kind == "prairielearn":
        # what is not gradable takes no points, and uses up no attempt
        return {"gradable": False, "score": 0.0, "message": sentence, "format_errors": [sentence]}
    # 0 of 0 points, and hidden: Gradescope needs a score, and shows no total to the student
    test = {"name": "Not graded", "score": 0, "max_score": 0, "output": sentence, "visibility": "hidden"}
    return {
        "output": sentence,
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [test],
        "extra_data": {"status": "not_graded"},
    }


def is_result(kind: str, document: object) -> bool:
    """Whether the other grader would accept a document: an object with a score, or tests that have one."""
    if not isinstance(document, dict):
        return False
    score = document.get("score")
    if kind == "prairielearn":
        return isinstance(score, int | float) and 0 <= score <= 1
    tests = document.get("tests")
    scored = isinstance(tests, list) and any(isinstance(test, dict) and "score" in test for test in tests)
    return isinstance(score, int | float) or scored


def packed(document: dict[str, Any]) -> bytes:
    """A document as a file."""
    return (json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n").encode(
        "utf-8", errors="replace"
    )
