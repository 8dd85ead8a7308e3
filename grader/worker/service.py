"""The worker's loop: a request, a reply, until the judge is gone.

It decides whose fault an exception is that no other module has marked: the student's if a line of theirs was
executed, else ours. During a training the labels of the test images are not here: after each epoch the
weights go to the judge. Without a training script it raises a gap. The judge decides what a request asks for,
and `grader.judge.verdict` what a fault means.

Tests: tests/worker/test_components.py, tests/worker/test_worker_training.py
"""

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Literal

import torch
from torch import Tensor

from grader.protocol.frames import ClosedError, FrameLimit
from grader.protocol.replies import (
    Answered,
    Done,
    FakeCalled,
    ForwardPass,
    Measurable,
    Problem,
    Raised,
    Reply,
)
from grader.protocol.requests import (
    Adopt,
    Answer,
    Build,
    Call,
    FakeAnswer,
    Invoke,
    Load,
    LoadCheckpoint,
    MeasureModel,
    Prove,
    Rows,
    RunFunction,
    SetWeights,
    Train,
    Weights,
)
from grader.protocol.typed_messages import REQUESTS, receive, send
from grader.worker.built_component import Components
from grader.worker.exchanged_values import Objects
from grader.worker.forbidden_watch import ForbiddenWatch
from grader.worker.invocation import Invocations
from grader.worker.loaded_weights import Measuring, checkpoint_loaded
from grader.worker.rigged_objects import AskForRows
from grader.worker.rigged_run import rigged_run
from grader.worker.script_run import run_script
from grader.worker.script_watch import Tell
from grader.worker.student_environment import usable_device
from grader.worker.student_faults import (
    RecipeError,
    StudentFault,
    UnusableGpuError,
    is_gpu_failure,
    passed_students_code,
    problem,
    student_lines,
)
from grader.worker.student_module import StudentModule, restore_torch
from grader.worker.substitutes import AskJudge
from grader.worker.training_setup import prepared


def train(student: StudentModule, request: Train, tell: Tell) -> None:
    """Train.

    Args:
        tell: Called with the plan, each epoch, and the end.

    Raises:
        RecipeError: The source does not say how.
        StudentFault: The student's code raised.
    """
    torch.set_num_threads(request.threads)
    device = usable_device(request.device, request.gpu_memory_mb)
    if student.program.script.missing:
        raise RecipeError("nothing_trains")
    run_script(student, prepared(student, request, device), tell, request.other)


# --- service ---------------------------------------------------------------------------------------------


FROM_JUDGE = FrameLimit(document=64_000_000, arrays=4_000_000_000, values=2_000_000)


def serve(reader: BinaryIO, writer: BinaryIO) -> None:
    """Answer requests until the other side closes the stream."""

    def rows(forward: ForwardPass) -> Tensor:
        send(writer, forward)
        return torch.from_numpy(receive(reader, (Rows,), FROM_JUDGE).arrays["rows"].copy())

    def fake(called: FakeCalled) -> FakeAnswer:
        send(writer, called)
        return receive(reader, (FakeAnswer,), FROM_JUDGE)

    def watch(request: Load) -> ForbiddenWatch:
        lines = student_lines(request.program)
        return ForbiddenWatch(request.forbidden, lines, writer.fileno(), lambda what: send(writer, what))

    service = Service(rows, fake, lambda reply: send(writer, reply), watch)
    while True:
        try:
            request = receive(reader, REQUESTS, FROM_JUDGE)
        except ClosedError:
            return
        try:
            for reply in service.replies(request):
                send(writer, reply)
        except ClosedError:
            return


class Service:
    """Answers the requests about one submission."""

    def __init__(
        self, rows: AskForRows, fake: AskJudge, tell: Tell, watch: Callable[[Load], ForbiddenWatch]
    ) -> None:
        """Nothing is loaded yet.

        Args:
            rows: Asks the judge for the rows of a rigged model's images.
            fake: Asks the judge what a fake answers.
            tell: Sends a reply at once, during long training.
            watch: Begins to watch what a request forbids.
        """
        self._rows = rows
        self._fake = fake
        self._tell = tell
        self._watch = watch
        self._student: StudentModule | None = None
        self._components: Components | None = None
        self._invocations: Invocations | None = None
        self._measuring: Measuring | None = None

    def replies(self, request: Any) -> Iterator[Reply]:
        """The replies to a request; an exception becomes Raised, which says whose fault it is."""
        try:
            yield from self._answered(request)
        except RecipeError as error:
            raised = problem(error.error) if error.error is not None else Problem("RecipeError")
            yield Raised(raised, "recipe", error.gap)
        except StudentFault as fault:
            yield _raised(fault.error, "student")
        except Exception as error:
            # our code may call the student's: an attribute, an overridden method
            yield _raised(error, "student" if passed_students_code(error) else "engine")

    def _answered(self, request: Any) -> Iterator[Reply]:
        if isinstance(request, Load):
            self._student = StudentModule(request, self._watch(request))
            objects = Objects()
            self._invocations = Invocations(self._student, objects, self._fake, self._tell)
            self._components = Components(self._student, objects, self._invocations)
            yield self._student.loaded()
            return
        if self._student is None or self._components is None or self._invocations is None:
            raise RuntimeError("nothing is loaded")
        restore_torch()
        answers: dict[type[Any], Callable[[Any], Reply]] = {
            Build: self._components.build,
            Adopt: self._components.adopt,
            Invoke: self._invocations.invoked,
            Call: self._components.call,
            Weights: self._components.weights,
            SetWeights: self._components.set_weights,
            RunFunction: lambda wanted: rigged_run(self._the_student(), wanted, self._rows),
            MeasureModel: self._measure,
            Answer: self._answer,
            LoadCheckpoint: lambda wanted: checkpoint_loaded(self._the_student(), wanted),
        }
        watch = self._student.watch
        if isinstance(request, Train):
            train(self._student, request, self._tell)
            watch.imported()
        elif isinstance(request, Prove):
            watch.prove(request.token)
            yield Done()
        else:
            answer = answers[type(request)](request)
            watch.imported()
            if isinstance(request, Build | Call | Invoke | RunFunction):
                watch.prove(request.seed, request.seed)
            yield answer

    def _measure(self, request: MeasureModel) -> Measurable:
        self._measuring = Measuring(self._the_student(), request)
        return self._measuring.measurable()

    def _answer(self, request: Answer) -> Answered:
        if self._measuring is None:
            raise RuntimeError("nothing is built for measuring")
        return self._measuring.answered(request)

    def _the_student(self) -> StudentModule:
        if self._student is None:
            raise RuntimeError("nothing is loaded")
        return self._student


def _raised(error: BaseException, whose: Literal["student", "engine"]) -> Raised:
    """What was raised, for the judge; a GPU that fails is nobody's fault who hands in."""
    if is_gpu_failure(error):
        return Raised(Problem(UnusableGpuError.__name__), "engine")
    return Raised(problem(error), whose)
