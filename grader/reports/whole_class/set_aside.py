"""How many files were set aside: what the terminal, the class page and its queue call by the same words."""

from collections.abc import Sequence
from dataclasses import dataclass

from grader.domain.evidence import Evidence
from grader.domain.score import Score
from grader.domain.teams import team_mates
from grader.reports.results_json.results_contract import DownloadRecord


@dataclass(frozen=True)
class SetAside:
    """Files that count for nothing.

    Attributes:
        total: All of them.
        unused: Of them, those that the account of the download calls matched, and that their submissions do
            not use; it calls the others refused.
    """

    total: int
    unused: int


def set_aside(download: DownloadRecord | None, results: Sequence[tuple[Evidence, Score]]) -> SetAside:
    """What was set aside of the files of a class; what a team handed in counts once.

    Args:
        download: The account of the files.
    """
    mates = team_mates(evidence for evidence, _ in results)
    graded = {score.student_id for _, score in results}
    within = sum(len(evidence.refused_files) for evidence, score in results if score.student_id not in mates)
    refused = [file for file in download.files if file.fate == "refused"] if download else []
    nobodys = sum(file.count for file in refused if not file.student_id)
    theirs = sum(file.count for file in refused if file.student_id in graded)
    return SetAside(nobodys + within, max(within - theirs, 0) if download else 0)
