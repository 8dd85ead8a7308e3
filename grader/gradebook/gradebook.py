"""An append-only store of evidence: one folder per student, one record per run."""

import re
from collections.abc import Mapping
from pathlib import Path

from grader.domain.errors import EngineError, UsageError
from grader.domain.evidence import Evidence
from grader.gradebook.durable import write, write_all
from grader.gradebook.evidence_file import evidence_from, evidence_text

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_RUN = re.compile(r"run-(\d+)")


class Gradebook:
    """The evidence below a results folder.

    Run 1 of student 400101204 is `evidence/400101204/run-0001.json`, with its images in
    `evidence/400101204/run-0001/`. A run exists once its JSON file does; nothing is ever changed.

    Args:
        folder: The results folder (`--out`). It need not exist before something is recorded.
    """

    def __init__(self, folder: Path) -> None:
        self._root = folder / "evidence"

    def record(self, evidence: Evidence, images: Mapping[str, bytes]) -> int:
        """Add what was found out about one submission.

        Args:
            evidence: What was found out.
            images: The PNG files that the evidence names, by name.

        Returns:
            The run's number, 1 for the student's first.

        Raises:
            EngineError: The student's id or an image's name cannot be a file name, or a field of the
                evidence is not of its type.
            UsageError: The disk does not take it.
        """
        for name in (evidence.student_id, *images):
            if not _NAME.fullmatch(name):
                raise EngineError(
                    f"'{name}' cannot be a file name in the gradebook. Report this to the grader's authors."
                )
        text = evidence_text(evidence).encode("ascii")
        number, pictures = self._claimed(evidence.student_id)
        write_all(pictures, images)
        write(self._file(evidence.student_id, number), text)
        return number

    def students(self) -> tuple[str, ...]:
        """The ids of the students with evidence, sorted."""
        if not self._root.is_dir():
            return ()
        names = sorted(path.name for path in self._root.iterdir() if _NAME.fullmatch(path.name))
        return tuple(name for name in names if self._numbers(name))

    def runs(self, student_id: str) -> tuple[int, ...]:
        """The numbers of the student's runs, oldest first.

        Raises:
            UsageError: There is no evidence about this student.
        """
        numbers = self._numbers(student_id) if _NAME.fullmatch(student_id) else ()
        if not numbers:
            raise UsageError(
                f"{self._root} has no evidence about '{student_id}'. Grade that submission first."
            )
        return numbers

    def evidence(self, student_id: str, run: int | None = None) -> Evidence:
        """What was found out about the student's submission.

        Args:
            student_id: Whose.
            run: The run's number; the latest by default.

        Raises:
            UsageError: There is no such record, or its file is damaged.
        """
        path = self._file(student_id, self._chosen(student_id, run))
        try:
            found = evidence_from(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"{path} cannot be read ({error.strerror}). Change its permissions.") from None
        except (ValueError, RecursionError):
            raise UsageError(
                f"{path} is damaged: it does not hold what the grader wrote. "
                "Delete it to fall back on the run before, or grade the submission again."
            ) from None
        if found.student_id != student_id:
            raise UsageError(
                f"{path} is about the student '{found.student_id}'. Move it into the folder of that name."
            )
        return found

    def images(self, student_id: str, run: int | None = None) -> dict[str, bytes]:
        """The images that belong to the student's evidence, by name.

        Args:
            student_id: Whose.
            run: The run's number; the latest by default.

        Raises:
            UsageError: There is no such record, or an image cannot be read.
        """
        folder = self._file(student_id, self._chosen(student_id, run)).with_suffix("")
        try:
            found = (
                [path for path in folder.iterdir() if _NAME.fullmatch(path.name)] if folder.is_dir() else []
            )
            return {path.name: path.read_bytes() for path in sorted(found)}
        except OSError as error:
            raise UsageError(
                f"An image in {folder} cannot be read ({error.strerror}). Change its permissions."
            ) from None

    def _file(self, student_id: str, number: int) -> Path:
        return self._root / student_id / f"run-{number:04}.json"

    def _chosen(self, student_id: str, run: int | None) -> int:
        numbers = self.runs(student_id)
        if run is None:
            return numbers[-1]
        if run not in numbers:
            raise UsageError(
                f"There is no run {run} of '{student_id}'. There are {', '.join(map(str, numbers))}."
            )
        return run

    def _numbers(self, student_id: str) -> tuple[int, ...]:
        matches = (_RUN.fullmatch(path.stem) for path in (self._root / student_id).glob("run-*.json"))
        return tuple(sorted(int(match.group(1)) for match in matches if match))

    def _claimed(self, student_id: str) -> tuple[int, Path]:
        """The next number and its image folder, which only one process can create."""
        home = self._root / student_id
        try:
            home.mkdir(parents=True, exist_ok=True)
            taken = (_RUN.fullmatch(path.stem) for path in home.glob("run-*"))
            number = max((int(match.group(1)) for match in taken if match), default=0)
            while True:
                number += 1
                try:
                    folder = home / f"run-{number:04}"
                    folder.mkdir()
                except FileExistsError:
                    continue
                return number, folder
        except OSError as error:
            raise UsageError(
                f"{home} cannot be written ({error.strerror}). Give another folder by --out."
            ) from None
