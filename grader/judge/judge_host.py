"""The judge host: collects the checks once, then forks a trusted judge per submission.

It is `python -m grader.judge FOLDER`, and runs no student code: it asks workers. It passes findings on as
they come. `examination` decides what a check found, and `grader.grading.judging` which submissions come.

Tests: tests/courses/test_drawn_values.py, tests/grading/test_limits_by_name.py
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import torch

from grader.course.assignment_file import read_assignment
from grader.course.check_files import CHECKS, TRAINED
from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import first_choices, frozen_value
from grader.domain.errors import CourseError, GraderError
from grader.domain.evidence import Attestation, Finding
from grader.domain.limits import MEGABYTE, Limits
from grader.domain.program_run import Watched
from grader.files.stored_records import validator
from grader.judge.course_code import CodeByValues
from grader.judge.examination import Checks, Examined, run_pytest
from grader.judge.repeated_calls import MeasuredModel, state_of
from grader.judge.student import Student
from grader.protocol import typed_messages
from grader.protocol.frames import Frame, FrameLimit, read_frame, write_frame
from grader.protocol.requests import FILE, MOST_STATE, STATE
from grader.protocol.trees import ModelMade
from grader.sandbox import forkserver, libc
from grader.sandbox.host_client import Host, end_for_the_course
from grader.sandbox.lockdown import Lockdown
from grader.sandbox.process_limits import ProcessLimits
from grader.sandbox.readable_files import enter_folders, given_files, lay_out

FROM_PIPELINE = 64_000_000  # bytes of a job, and of arrays beyond a model's state and handed-in files

MOST_PREPARED = 16  # sets of drawn values for which the instructors' code is executed before judges fork


def main() -> None:
    """Run the host."""
    libc.keep_freed_memory()  # what a check frees, the next one needs again
    try:
        assignment = read_assignment(Path(sys.argv[1]).absolute())
        if (provided := lay_out(given_files(assignment), Path.cwd())) is not None:
            enter_folders(provided)  # the solution's functions look for them as the students' do
        code = CodeByValues(assignment)
        code.prepare(MOST_PREPARED)
        paths = [
            path
            for folder in (CHECKS, TRAINED)
            for path in sorted((assignment.folder / folder).glob("test_*.py"))
        ]
        first = code.of(first_choices(assignment.variant))
        run_pytest(paths, assignment, first, lambda checks: _serve(checks, code))
    except CourseError as error:
        end_for_the_course(error)
    except GraderError as error:
        sys.exit(str(error))  # the process that started the host passes the sentence on


def _serve(checks: Checks, code: CodeByValues) -> None:
    torch.set_num_threads(1)
    typed_messages.prepare_validators()
    for kind in (Program, Finding, Attestation, Watched):
        validator(kind)

    def judge(reader: BinaryIO, writer: BinaryIO) -> None:
        Judge(checks, code, reader, writer).run()

    forkserver.main(judge, lambda: None, Lockdown.NONE)


class Judge:
    """One submission's judge: reads a job, reports findings as they come, and then everything."""

    def __init__(self, checks: Checks, code: CodeByValues, reader: BinaryIO, writer: BinaryIO) -> None:
        self._checks = checks
        self._code = code
        self._reader = reader
        self._writer = writer

    def run(self) -> None:
        """Examine the submission that the job names."""
        frame = read_frame(self._reader, _job_limit(self._checks.assignment))
        job = frame.document
        # this process judges one submission only: what is set here affects no other
        assignment = replace(self._checks.assignment, limits=Limits(**job["limits"]))
        self._checks.assignment = assignment
        program = validator(Program).validate_json(json.dumps(job["program"]))
        workers = Host.connect(job["workers"])
        limits = check_limits(assignment)
        seed = int(job["seed"])
        student = Student(
            lambda: workers.spawn(limits),
            program,
            assignment,
            seed=seed,
            granted=limits,
            pictures=job["pictures"],
            files=None if job.get("trained") else _files(frame.arrays),
        )
        try:
            self._checks.values = {name: frozen_value(value) for name, value in job["values"].items()}
            self._checks.code = self._code.of(self._checks.values)
            if job.get("trained"):
                self._examine_trained(student, _measured_model(frame), job.get("component"))
                return
            chosen = job.get("components")
            examined = self._checks.examined(student, report=self._report, components=chosen)
            self._finish(examined, student)
        except Exception as error:  # noqa: BLE001 - whatever it is, who asked must hear of it
            message = str(error) if isinstance(error, GraderError) else f"{type(error).__name__}: {error}"
            write_frame(self._writer, Frame({"error": message[:2000]}))
        finally:
            student.close()

    def _examine_trained(self, student: Student, then: MeasuredModel, component: str | None) -> None:
        """Run the checks of trained models, and report what a person should look at."""
        for result in self._checks.examined_trained(student, then, component):
            self._report(result)
        write_frame(self._writer, Frame({"done": True}))

    def _report(self, result: Finding) -> None:
        write_frame(self._writer, Frame({"finding": validator(Finding).dump_python(result, mode="json")}))

    def _finish(self, examined: Examined, student: Student) -> None:
        pictures: dict[str, Any] = {}
        for number, (_, picture) in enumerate(examined.figures):
            pictures |= {f"figure{number}": picture.indexes, f"palette{number}": picture.palette}
        document = {
            "done": True,
            "parameters": examined.parameters,
            "layers": [[layer.path, layer.type, layer.parameters, layer.depth] for layer in examined.layers],
            "figures": [component for component, _ in examined.figures],
            "absent_modules": list(examined.absent_modules),
            "watched": validator(Watched).dump_python(examined.watched, mode="json"),
            "output_cut": examined.output_cut,
            "attestation": student.worker.attestation
            and validator(Attestation).dump_python(student.worker.attestation, mode="json"),
        }
        write_frame(self._writer, Frame(document, pictures))


def _job_limit(assignment: Assignment) -> FrameLimit:
    """How large a job may be: it holds the state of a trained model, or files that were handed in."""
    files = len(assignment.own_roles) * assignment.limits.file_mb * MEGABYTE
    return FrameLimit(FROM_PIPELINE, MOST_STATE + FROM_PIPELINE + files, values=2_000_000)


def _measured_model(frame: Frame) -> MeasuredModel:
    """The trained model of a job."""
    inputs, scores = (torch.from_numpy(frame.arrays[name].copy()) for name in ("inputs", "scores"))
    made = validator(ModelMade | None).validate_json(json.dumps(frame.document["made"]))
    return MeasuredModel(state_of(frame.arrays, STATE), inputs, scores, made)


def _files(arrays: Mapping[str, Any]) -> dict[str, bytes]:
    """What was handed in, by role."""
    return {
        name.removeprefix(FILE): value.tobytes() for name, value in arrays.items() if name.startswith(FILE)
    }


def check_limits(assignment: Assignment) -> ProcessLimits:
    """What a worker may use while it is checked."""
    limits = assignment.limits
    return ProcessLimits.within(limits, cpu_seconds=max(int(2 * limits.checks_seconds), 1))
