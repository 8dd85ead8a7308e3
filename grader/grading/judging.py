"""Has a submission judged: the client of the judge host."""

import contextlib
import io
import json
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from PIL import Image

from grader.domain.analyzed_program import Note, Program
from grader.domain.assignment import Assignment, CheckSpec
from grader.domain.assignment_versions import Value, first_choices
from grader.domain.errors import EngineError, SandboxError
from grader.domain.evidence import Attestation, Blame, Figure, Finding, FindingKind, LayerSummary, Status
from grader.domain.limits import Limits
from grader.domain.program_run import NOTHING_SEEN, Watched
from grader.files.stored_records import validator
from grader.protocol.deadlines import BusyMachineError
from grader.protocol.frames import Frame, FrameLimit
from grader.protocol.link import NoAnswer, timed_answers
from grader.protocol.requests import FILE, STATE
from grader.protocol.trees import ModelMade
from grader.sandbox.host_client import Host
from grader.sandbox.process_limits import ProcessLimits
from grader.training import FinalModel

# a judge computes with data from a worker, which must not be able to bring down the machine
JUDGE_LIMITS = ProcessLimits(memory_mb=4000, cpu_seconds=300)
FROM_JUDGE = FrameLimit(document=16_000_000, arrays=128_000_000)
GRACE_SECONDS = 60.0
NO_WORD = "The judge ended without saying why."


@dataclass(frozen=True)
class Judged:
    """What the judge found out about a submission.

    Attributes:
        images: PNG by the names in `figures`.
        absent_modules: Modules that are not installed here.
        watched: The uses of forbidden parts that were seen at run time.
        notes: For the report.
    """

    findings: tuple[Finding, ...]
    parameters: int | None
    layers: tuple[LayerSummary, ...]
    figures: tuple[Figure, ...]
    images: dict[str, bytes]
    absent_modules: tuple[str, ...]
    watched: Watched
    attestation: Attestation | None
    notes: tuple[Note, ...] = ()


def judged(
    judges: Host,
    workers: Host,
    program: Program,
    assignment: Assignment,
    *,
    seed: int,
    report: Callable[[Finding], None],
    components: Collection[str] | None = None,
    pictures: bool = True,
    files: Mapping[str, bytes] | None = None,
    values: Mapping[str, Value] | None = None,
) -> Judged:
    """Run the checks on a submission.

    Args:
        report: Called with each finding as it is made.
        components: Run only the checks of these.
        pictures: Keep what the plotting functions draw as pictures.
        files: What was handed in besides code, weights and report, by role.
        values: The values drawn for the student; None: the first choice of each.

    Returns:
        What the judge found out, with exactly one finding for each check that was asked for.

    Raises:
        EngineError: The judge failed.
    """
    limits = assignment.limits
    options = {"components": None if components is None else list(components), "pictures": pictures}
    handed_in = {FILE + role: np.frombuffer(content, np.uint8) for role, content in (files or {}).items()}
    request = Frame(_job(program, workers, assignment, seed, values) | options, handed_in)
    seconds = (
        2 * limits.checks_seconds  # once for all together, and once for the shares of the parts
        + 2 * limits.load_seconds
        + 3 * len(assignment.components) * limits.call_seconds  # a call that hangs, and a check that overruns
    )
    asked_checks = [s for s in assignment.checks if components is None or s.component in components]
    findings: list[Finding] = []
    awaited = {(spec.id, spec.component) for spec in asked_checks}
    try:
        with contextlib.closing(_answers(judges, request, seconds)) as answers:
            for answer in answers:
                if isinstance(answer, Frame):
                    _require_machine(findings)
                    complete = _complete(findings, asked_checks, "the judge left no finding about it")
                    return _judged(complete, answer.document, dict(answer.arrays), limits)
                _require_awaited(answer, awaited)
                awaited.discard((answer.check, answer.component))
                findings.append(answer)
                report(answer)
    except NoAnswer as silence:
        if not findings:
            raise EngineError(f"The judge failed: {silence}.") from silence
        complete = _complete(findings, asked_checks, f"the judge did not finish: {silence}")
        return Judged(complete, None, (), (), {}, (), NOTHING_SEEN, Attestation("unofficial"))
    raise EngineError(NO_WORD)


def _require_machine(findings: Sequence[Finding]) -> None:
    """Refuse findings of a machine that did not try the code: the next run tries it again.

    Raises:
        BusyMachineError: It was too busy.
        SandboxError: It gave the code no process, as where that which makes them was ended.
    """
    if any(finding.kind is FindingKind.BUSY_MACHINE for finding in findings):
        raise BusyMachineError
    for finding in findings:
        if finding.kind is FindingKind.NO_PROCESS:
            raise SandboxError(finding.message)


def trained_model_judged(
    judges: Host,
    workers: Host,
    program: Program,
    assignment: Assignment,
    trained: FinalModel,
    *,
    seed: int,
    component: str | None = None,
    values: Mapping[str, Value] | None = None,
) -> tuple[Finding, ...]:
    """Run the checks of trained models on a model that was trained.

    Args:
        component: The graded class of the model, whose checks are run; None: all checks are.
        values: See `judged`.

    Returns:
        What did not pass, or needs a person; empty where the assignment has no such checks.

    Raises:
        EngineError: The judge failed.
    """
    if not any(component in (None, spec.component) for spec in assignment.trained_checks):
        return ()
    limits = assignment.limits
    arrays = {STATE + name: value for name, value in trained.state.items()}
    arrays |= {"inputs": trained.inputs, "scores": trained.scores}
    request = Frame(
        _job(program, workers, assignment, seed, values)
        | {"pictures": False, "trained": True, "component": component}
        | {"made": validator(ModelMade | None).dump_python(trained.made, mode="json")},
        arrays,
    )
    try:
        answers = _answers(judges, request, limits.checks_seconds + 2 * limits.load_seconds)
        findings = tuple(answer for answer in answers if isinstance(answer, Finding))
    except NoAnswer as silence:
        raise EngineError(f"The judge failed: {silence}.") from silence
    _require_machine(findings)
    return findings


def _job(
    program: Program, workers: Host, assignment: Assignment, seed: int, values: Mapping[str, Value] | None
) -> dict[str, Any]:
    """The part of a request that every judge gets."""
    return {
        "program": validator(Program).dump_python(program, mode="json"),
        "workers": workers.address,
        "seed": seed,
        "limits": asdict(assignment.limits),
        "values": dict(first_choices(assignment.variant) if values is None else values),
    }


def _answers(judges: Host, request: Frame, seconds: float) -> Generator[Finding | Frame]:
    """The findings as a judge makes them, and at the end the frame that says that there are no more.

    Args:
        seconds: How long the checks may take; the judge gets some grace beyond that.

    Raises:
        NoAnswer: It did not finish.
        EngineError: It failed.
    """
    child = judges.spawn(JUDGE_LIMITS)
    with timed_answers(child, request, seconds + GRACE_SECONDS, FROM_JUDGE) as frames:
        for frame in frames:
            document = frame.document
            if "finding" in document:
                yield validator(Finding).validate_json(json.dumps(document["finding"]))
            elif "done" in document:
                yield frame
                return
            else:
                raise EngineError(f"The judge failed: {document.get('error', 'it did not say why')}")
    raise EngineError(NO_WORD)


def _require_awaited(finding: Finding, awaited: Collection[tuple[str, str]]) -> None:
    """Check that a finding is the only one about a check that was asked for.

    Args:
        awaited: The checks, with their components, about which none has come yet.

    Raises:
        EngineError: It is not.
    """
    if (finding.check, finding.component) not in awaited:
        raise EngineError(
            f"The judge failed: its finding about `{finding.check}` was not asked for, or came twice."
        )


def _complete(
    findings: Sequence[Finding], asked_checks: Sequence[CheckSpec], why: str
) -> tuple[Finding, ...]:
    """One finding for each check; those that got none are undecided, for which the engine is to blame."""
    judged_checks = {finding.check for finding in findings}
    message = f"It could not be tried ({why}). It costs no points."
    undecided = [
        Finding(spec.id, spec.component, spec.title, Status.ERRORED, Blame.ENGINE, message=message)
        for spec in asked_checks
        if spec.id not in judged_checks
    ]
    return (*findings, *undecided)


def _judged(
    findings: tuple[Finding, ...], document: dict[str, Any], pixels: dict[str, Any], limits: Limits
) -> Judged:
    figures, images = [], {}
    for number, component in enumerate(document["figures"]):
        name = f"figure-{number}.png"
        images[name] = png(pixels[f"figure{number}"], pixels[f"palette{number}"])
        figures.append(Figure(component, name))
    return Judged(
        findings,
        document["parameters"],
        tuple(LayerSummary(*layer) for layer in document["layers"]),
        tuple(figures),
        images,
        tuple(document["absent_modules"]),
        validator(Watched).validate_json(json.dumps(document["watched"])),
        validator(Attestation).validate_python(document["attestation"]) if document["attestation"] else None,
        _notes(document, limits),
    )


def _notes(document: dict[str, Any], limits: Limits) -> tuple[Note, ...]:
    if not document["output_cut"]:
        return ()
    return (
        Note(
            f"The code printed more than its limit of {limits.output_kb} kB while it was checked: "
            "only the end was kept."
        ),
    )


def png(indexes: Any, palette: Any) -> bytes:
    """A picture of few colors, at most 900 pixels wide.

    Args:
        indexes: For each pixel the row of its color, uint8 (height, width).
        palette: The colors, uint8 (colors, 3).
    """
    image = Image.fromarray(indexes).convert("P")
    image.putpalette(palette.tobytes(), "RGB")
    image.thumbnail((900, 1400))
    file = io.BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()
