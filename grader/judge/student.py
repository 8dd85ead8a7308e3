"""The student's code as a check sees it, at arm's length.

A check builds components, calls them, and runs the student's functions on rigged data. All of it happens
in a worker; numbers come back, and anything wrong with them is a `Mismatch`. It applies time
limits, seeds and the course's policies (allow, flag, forbid). The check decides whether an answer is
right.

Tests: tests/judge/test_examination.py, tests/judge/test_calls.py, tests/judge/test_policies.py
"""

import math
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from grader.analysis.forbidden_uses import matches
from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.domain.errors import CourseError, EngineError
from grader.domain.formatting import CODE, as_code, named
from grader.domain.program_run import AffineFake, ReachedPart
from grader.judge import untrusted_replies
from grader.judge.checked_component import INNER, Component
from grader.judge.loaded_worker import Answers, LoadedWorker
from grader.judge.remote_objects import SETTINGS, Fakes, Outcome, Packing, Thing, invoked, labeled, unpacker
from grader.judge.untrusted_replies import ForwardRecord, Picture
from grader.judge.verdict import PolicyNote, cannot_be_had, explained, explained_mismatch, left_out
from grader.kit import Cause, Mismatch
from grader.kit.doubles import Batches, Fake
from grader.kit.rigged_data import RiggedData
from grader.protocol.frames import ProtocolError
from grader.protocol.link import FaultKind, Link, StudentRaised, WorkerFault, WorkerProcess
from grader.protocol.replies import Built, Done, DrawnFigure, FakeCalled, ForwardPass, Loaded, Ran
from grader.protocol.requests import (
    SET,
    Adopt,
    Build,
    Call,
    FakeForm,
    Invoke,
    RunFunction,
    SetWeights,
    Weights,
)
from grader.protocol.trees import ModelMade
from grader.sandbox.process_limits import ProcessLimits

MAX_PICTURES = 3  # of one function
MAX_PATH = 300  # characters of a module's path
KEEPS_GRAPH = "it holds tensors with their graph: append loss.item()"


@dataclass(frozen=True)
class Run:
    """What a function of the student's did with rigged data.

    Attributes:
        numbers: All numbers that it returned and appended, in order.
        printed: What it printed, and the texts that it returned.
        history_problem: What is wrong with what it left in the history, as a clause.
        history_has_tensors: It left tensors in the history, not numbers.
        forwards: The model's passes, without those through which no gradient came back although one did
            through another pass with the same images: such a pass only looks at them. So in `events`.
        arrays: `weights`, `logit_gradients`, `step_gradients` for train_epoch; `image<k>`,
            `figure<k>` and `palette<k>`.
    """

    printed: str
    returned: tuple[float, ...]
    returned_kind: str
    history: tuple[float, ...]
    history_problem: str
    history_has_tensors: bool
    forwards: tuple[ForwardPass, ...]
    steps: int
    events: tuple[str, ...]
    training_after: bool
    gradients_after: bool
    figures: tuple[DrawnFigure, ...]
    arrays: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Later:
    """Weights that are not sent yet."""

    request: SetWeights
    link: Link
    component: str


AT_TOP_LEVEL: dict[FaultKind, str] = {
    "time": "Look at the top level of the file for a loop that never ends.",
    "death": "Look at the top level of the file for exit calls and for very large tensors.",
    "nonsense": "Write nothing to file descriptors of the process: print is fine.",
}


class Student:
    """A submission, loaded in a worker.

    Attributes:
        program: What was analyzed of the source.
        random: A generator seeded for this submission: fresh inputs, the same on every run.
        figures: Pictures that checks keep for the report: (component, picture).
        built: The components that the running check built, oldest first.
        flagged: What the running check leaves to a person, although it passes: (policy, sentence).
        advice: What the running check advises, although it passes: (policy, sentence, hint).
        worker: The worker in which the submission is loaded.
        fakes: The fakes that the worker may call.
        questions: How many were asked so far that may have changed something in the worker.
    """

    def __init__(
        self,
        spawn: Callable[[], WorkerProcess],
        program: Program,
        assignment: Assignment,
        *,
        seed: int = 0,
        pictures: bool = True,
        granted: ProcessLimits | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        """A submission that is judged.

        Args:
            spawn: A new worker.
            granted: The limits on a worker, if there are any.
            files: What was handed in besides code, weights and report, by role; None: not known here.
        """
        self.program = program
        self.random = torch.Generator().manual_seed(seed)
        self.figures: list[tuple[str, Picture]] = []
        self.built: list[Component] = []
        self.notes: list[PolicyNote] = []
        self._assignment = assignment
        self._limits = assignment.limits
        self.worker = LoadedWorker(spawn, program, assignment)
        self._seed = seed
        self._pictures = pictures
        self._shared: dict[str, Any] = {}
        self._allowed = self._until = math.inf
        self._falls_under: dict[str, tuple[str, ...]] = {}
        self._granted = granted
        self.fakes = Fakes(self._arguments_of)
        self._files = files
        self.questions = 0
        self._later: _Later | None = None

    @property
    def link(self) -> Link:
        """The link to a worker in which the submission is loaded."""
        return self.worker.link

    @property
    def loaded(self) -> Loaded:
        """What loading yielded.

        Raises:
            Mismatch: The file cannot be loaded.
        """
        try:
            _ = self.worker.link
        except WorkerFault as fault:
            raise Mismatch(
                f"Loading the file failed: {explained(fault)}.",
                hint=AT_TOP_LEVEL[fault.kind],
                cause=Cause.NOT_LOADED,
                concerns="the file",
            ) from fault
        if self.worker.loaded is None:
            raise RuntimeError("a link without a loaded program")
        return self.worker.loaded

    def allow(self, seconds: float) -> None:
        """From now on all calls together may take this long, within the limit on each single call."""
        self._allowed = seconds
        self._until = time.monotonic() + seconds

    def new_random(self, seed: int) -> None:
        """Seed the inputs of the next check, whatever checks came before."""
        self.random = torch.Generator().manual_seed(self._seed ^ seed)

    def policy(self, name: str, sentence: str, hint: str = "", *, look_for: str = "") -> None:
        """Apply the course's policy on something that is unusual but not a mistake in itself.

        Args:
            name: A key of `[policies]` in assignment.toml: allow, advise (the student reads it), flag (a
                person looks at it) or forbid.
            sentence: What the student's code does and what the handout asks for.
            hint: What to try, if it is advised or forbidden.
            look_for: Kinds of code that mark the line, as in the `Look for:` of a known mistake.

        Raises:
            Mismatch: The course forbids it.
            CourseError: assignment.toml does not say.
        """
        ruling = self._assignment.policies.get(name)
        if ruling is None:
            raise CourseError(
                f"assignment.toml: [policies] has no '{name}', which a check asks for. "
                f'Add {name} = "allow", "advise", "flag" or "forbid".'
            )
        if ruling == "forbid":
            raise Mismatch(sentence, hint=hint, diagnosis=name, look_for=look_for)
        if ruling != "allow":
            self.notes.append(PolicyNote(name, ruling == "advise", sentence, hint, look_for))

    def file(self, role: str) -> bytes:
        """The file that the student handed in for one of the assignment's own roles: bytes, not opened yet.

        Raises:
            Mismatch: Nothing was handed in for it.
            CourseError: The assignment does not ask for such a file, or the check runs after the training.
        """
        asked = next((file for file in self._assignment.asked_files if file.role == role), None)
        if asked is None or role not in self._assignment.own_roles:
            roles = ", ".join(self._assignment.own_roles) or "none"
            raise CourseError(
                f"A check asks for the file '{role}'. Name it in [files] of assignment.toml; "
                f"the roles of its own are: {roles}."
            )
        if self._files is None:
            raise CourseError(f"A check of the trained model asks for the file '{role}': ask in checks/.")
        if role not in self._files:
            raise Mismatch(
                f"No {role} file was handed in: there is nothing to look at.",
                hint=f"Hand in {' or '.join(asked.name('<StudentID>', end) for end in asked.suffixes)}.",
            )
        return self._files[role]

    def parameter_names(self, component: str) -> tuple[str, ...]:
        """The names of all parameters of a stub, in the template's order."""
        return self._assignment.all_parameters_of(component)

    def shared(self, key: str, make: Callable[[], Any]) -> Any:
        """A result that several checks share: the first makes it, with inputs that depend on the key only."""
        if key not in self._shared:
            before = self.random
            self.new_random(zlib.crc32(key.encode()))
            try:
                self._shared[key] = make()
            finally:
                self.random = before
        return self._shared[key]

    def next_seed(self) -> int:
        """A seed for the worker."""
        return int(torch.randint(2**31, (1,), generator=self.random))

    def tensor(self, *shape: int, double: bool = False) -> Tensor:
        """A fresh standard-normal tensor."""
        return torch.randn(shape, generator=self.random, dtype=torch.float64 if double else torch.float32)

    def build(
        self,
        component: str,
        *args: Any,
        replace: Mapping[str, AffineFake | Fake] | None = None,
        inner: AffineFake | None = None,
        substitute: Mapping[str, AffineFake] | None = None,
        double: bool = False,
        **kwargs: Any,
    ) -> Component:
        """One of the student's components, constructed with the arguments.

        Args:
            component: A graded class of modules, or a graded function that makes one.
            args, kwargs: Of any kind that `call` takes.
            replace: Components to replace by fakes while it is constructed and used.
            inner: A fake to hand over as the last positional argument (PreNorm's fn).
            substitute: Submodules to replace by fakes once it is constructed, by path.
            double: In float64.

        Raises:
            Mismatch: It does not exist, or constructing it failed.
        """
        self._require(component, self._kind_of(component))
        label = _label(component, args, kwargs, inner)
        packing = Packing(self.fakes)
        nodes = tuple(map(packing.node, args)), {name: packing.node(value) for name, value in kwargs.items()}
        affine_fakes, fakes = self._in_place(replace or {})
        under = dict(substitute or {})
        request = Build(
            component,
            *nodes,
            affine_fakes,
            fakes,
            inner,
            under,
            double,
            self.next_seed(),
            arrays=packing.arrays,
        )
        built = self.ask(request, Built, self.link, component, label)
        self._note_forbidden(component, built)
        places = {*affine_fakes, *under, *([INNER] if inner is not None else [])}
        arguments = {**dict(zip(self.parameter_names(component), args, strict=False)), **kwargs}
        sizes = {name: value for name, value in arguments.items() if type(value) is int}
        self.built.append(Component(self, component, label, built, frozenset(places), sizes))
        return self.built[-1]

    def call(
        self, name: str, /, *args: Any, replace: Mapping[str, AffineFake | Fake] | None = None, **kwargs: Any
    ) -> Outcome:
        """Call something graded: a function, or a class, whose object then stays in the worker.

        Args:
            name: Its name.
            args, kwargs: By the stub's parameters: None, numbers, texts, lists, tuples, dictionaries, sets,
                bytes, tensors, arrays, things, `Part`s, `Fake`s, `batches`, devices, nested as they like.
                A student who reordered or renamed the parameters gets them all the same. Settings are:
                `reads`, the names of files that are wanted when it is done; `files`, the content of files
                that it finds, by name (with either, it runs in a new folder); `training`, the mode of a
                module; `gradients`, whether those by the positional arguments are wanted, of the sum of a
                returned tensor, times `cotangent` if there is one. A parameter of the stub that has such a
                name is an argument.
            replace: What replaces other graded names meanwhile.

        Raises:
            Mismatch: It does not exist or raised.
            CourseError: A fake that computes would replace a part that is graded.
        """
        self._require(name, self._kind_of(name))
        parameters = self._assignment.all_parameters_of(name)
        settings = {key: kwargs.pop(key) for key in SETTINGS if key in kwargs and key not in parameters}
        label = labeled(name, args, kwargs, parameters)
        affine_fakes, fakes = self._in_place(replace or {})
        packing = Packing(self.fakes)
        request = packing.invoke(
            args,
            kwargs,
            self.next_seed(),
            settings,
            name=name,
            parameters=parameters,
            fakes=fakes,
            replace=affine_fakes,
        )
        return invoked(self, request, name, label, (args, kwargs), packing)

    def make(self, name: str, /, *args: Any, **kwargs: Any) -> Thing:
        """An object of a graded class, or what a graded function makes, which stays in the worker.

        Raises:
            Mismatch: It does not exist or raised, or made a value that cannot stay in the worker.
        """
        made: Thing = self.call(name, *args, **kwargs).returned.thing()
        made.label = labeled(name, args, kwargs)
        return made

    def keep(self, value: Any, component: str = "") -> Thing:
        """Keep one of the check's own values in the worker, to hand it over more than once.

        Args:
            value: A fake, batches, arrays or tensors in lists and dictionaries; `thing.get("")` shows what a
                student's code did to them in place.
            component: The graded name for whose points it counts.
        """
        packing = Packing(self.fakes)
        request = packing.invoke((value,), {}, self.next_seed(), {}, action="keep")
        kinds = {Fake: getattr(value, "name", ""), Batches: "data_loader"}
        label = kinds.get(type(value), "values")
        kept: Thing = invoked(self, request, component, label, ((value,), {}), packing).returned.thing()
        return kept

    def component(self, thing: Thing) -> Component:
        """A module that stays in the worker, as a component: its parameters can be read and set.

        Raises:
            Mismatch: It is not a module.
        """
        if thing.kind != "module":
            raise Mismatch(f"`{thing.label}` is a {named(thing.type)}; it should be a module.")
        built = self.ask(Adopt(thing._handle), Built, self.link, thing.name, thing.label)
        self._note_forbidden(thing.name, built)
        self.built.append(Component(self, thing.name, thing.label, built))
        return self.built[-1]

    def _kind_of(self, name: str) -> str:
        """What a graded name is: `class` or `function`."""
        kinds = {component.name: component.kind for component in self._assignment.components}
        if name not in kinds:
            raise CourseError(f"A check asks for {name}, which is no [[component]] of assignment.toml.")
        return kinds[name]

    def _in_place(
        self, replace: Mapping[str, AffineFake | Fake]
    ) -> tuple[dict[str, AffineFake], dict[str, FakeForm]]:
        """What replaces graded names: fakes of known behavior, and fakes that answer here.

        Raises:
            CourseError: A fake would compute what is graded.
        """
        for name, value in replace.items():
            if isinstance(value, Fake) and value.asks_the_check:
                raise CourseError(
                    f"A check puts a callback in the place of {name}, which is graded: whoever asks it gets "
                    "what is to be written. Use Fake.script, Fake.table or Fake.rows."
                )
        affine_fakes = {name: value for name, value in replace.items() if isinstance(value, AffineFake)}
        fakes = {
            name: self.fakes.form(value, name, self._kind_of(name))
            for name, value in replace.items()
            if isinstance(value, Fake)
        }
        return affine_fakes, fakes

    def _arguments_of(self, called: FakeCalled, fake: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that a fake was called with."""
        try:
            value = unpacker(self, called.arrays, fake, fake).value(called.tree)
        except ProtocolError as error:
            raise untrusted_replies.nonsense() from error
        match value:
            case (tuple(args), dict(kwargs)) if all(isinstance(name, str) for name in kwargs):
                return args, kwargs
        raise untrusted_replies.nonsense()

    def configured_model(self, made: ModelMade | None = None) -> Component:
        """The model as the student's source configures it.

        Args:
            made: What it is made with; None: as the source says.

        Raises:
            Mismatch: The source does not say how, or constructing it failed.
        """
        name = self._assignment.model
        if made is not None:
            label = _label(name, made.args, made.kwargs, None)
        elif self.program.recipe.model is not None:
            label = as_code(self.program.recipe.model).strip(CODE)
        else:
            raise Mismatch(f"No statement like `model = {name}(...)` was found in the file.")
        request = Build("$model", seed=self.next_seed(), made=made)
        _ = self.loaded
        built = self.ask(request, Built, self.link, name, label)
        self._note_forbidden(name, built)
        self.built.append(Component(self, name, label, built))
        return self.built[-1]

    def run(
        self,
        function: str,
        data: RiggedData,
        *,
        initial_mode: str = "eval",
        keywords: dict[str, Any] | None = None,
        shuffled: bool = False,
    ) -> Run:
        """Run one of the student's functions on rigged data.

        Args:
            shuffled: The loader gives the images in another order in each pass.

        Raises:
            Mismatch: It does not exist or raised.
        """
        self._require(function, "function")
        request = RunFunction(
            function,
            self._assignment.parameters_of(function),
            data.batch_sizes,
            data.class_names,
            "train" if initial_mode == "train" else "eval",
            data.learning_rate,
            keywords or {},
            data.id_bits,
            self.next_seed(),
            pictures=self.pictures_of(function),
            shuffled=shuffled,
            arrays=data.shown,
        )
        record = ForwardRecord(data)
        label = f"{function}(...)"
        ran = self.ask(request, Ran, self.link, function, label, {ForwardPass: record.rows})
        arrays = untrusted_replies.run_arrays(ran, data)
        forwards, events = record.without_looks(ran)
        self.keep_figures(function, ran.figures, arrays)
        return Run(
            ran.printed,
            tuple(arrays["returned"].tolist()),
            ran.returned_kind,
            tuple(arrays["history"].tolist()),
            KEEPS_GRAPH if ran.history_keeps_graph else "",
            ran.history_has_tensors,
            forwards,
            ran.steps,
            events,
            ran.training_after,
            ran.gradients_after,
            ran.figures,
            arrays,
        )

    @staticmethod
    def attempted(call: Callable[[], Any]) -> Any:
        """The tensor that a call of the student's code gives; None if it raises or gives no finite tensor."""
        try:
            return call()
        except Mismatch:
            return None

    def ask(
        self,
        request: Any,
        reply: type[Any],
        link: Link,
        component: str,
        label: str | None = None,
        answers: Answers | None = None,
    ) -> Any:
        """Ask the worker; what went wrong in the student's code becomes a Mismatch.

        Args:
            answers: What the worker may ask back -> the answer that it gets.

        Raises:
            Mismatch: The student's code raised.
            WorkerFault: The worker hung, died or talked nonsense.
        """
        if link.broken:
            raise WorkerFault("death", "the worker ended before the check was done")
        request = self._with_later(request, link)
        self.questions += not isinstance(request, Weights) or bool(request.arrays)
        link.watch.stage = component
        self.fakes.begin()
        answers = {**(answers or {}), FakeCalled: self.fakes.answer}
        try:
            remaining = max(self._until - time.monotonic(), 0.1)
            allowed = self._limits.call_seconds * (request.times if isinstance(request, Call) else 1)
            answer = self.worker.timed_reply(link, request, reply, min(allowed, remaining), answers)
            self._until += link.granted
        except StudentRaised as raised:
            if self.fakes.refusal is not None:
                raise self.fakes.refusal from None
            if sentence := left_out(raised.problem, component, self.program):
                raise EngineError(sentence) from None
            raise explained_mismatch(
                raised,
                component,
                label or component,
                self.program,
                self.worker.loaded,
                self._granted,
                assignment=self._assignment.id,
            ) from None
        except WorkerFault as fault:
            if fault.kind == "time" and remaining < allowed:
                raise WorkerFault("time", f"its calls took over {self._allowed:.0f} s together") from fault
            raise
        if isinstance(request, Build | Call | Invoke | RunFunction):
            link.watch.require_one(request.seed)
        if self.fakes.refusal is not None:
            raise self.fakes.refusal
        return answer

    def set_later(self, request: SetWeights, link: Link, component: str) -> None:
        """Have weights overwritten before the next question is answered, of whatever kind it is.

        A question about the same component takes them along: a question of their own takes longer than the
        setting itself. Whatever is set must be sent before the check ends (`settle`).
        """
        later = self._later
        if later is not None and (later.link is not link or later.request.handle != request.handle):
            self.settle()
        elif later is not None:
            request = replace(request, arrays={**later.request.arrays, **request.arrays})
        self._later = _Later(request, link, component)
        self.questions += 1  # what is known of any weights may be out of date

    def settle(self) -> None:
        """Send the weights that are still to be set.

        Raises:
            Mismatch: They cannot be set.
            WorkerFault: As for `ask`.
        """
        later, self._later = self._later, None
        if later is not None and not later.link.broken:
            self.ask(later.request, Done, later.link, later.component)

    def _with_later(self, request: Any, link: Link) -> Any:
        """The request with the weights that are still to be set, which otherwise are sent now."""
        later = self._later
        if later is None:
            return request
        if isinstance(request, Call | Weights) and (request.handle, link) == (
            later.request.handle,
            later.link,
        ):
            self._later = None
            added = {SET + name: value for name, value in later.request.arrays.items()}
            return replace(request, arrays={**request.arrays, **added})
        self.settle()
        return request

    def _note_forbidden(self, component: str, built: Built) -> None:
        """Note the forbidden parts that a component consists of, even if its worker did not report them."""
        untrusted_replies.parameters(built)
        forbidden: dict[str, str] = {}  # path -> the forbidden part that it is
        for module in built.modules:
            name = f"{module.origin}.{module.type}"
            if module.origin.startswith("grader.worker.") or not self._patterns_of(name):
                continue  # one of our fakes, or nothing forbidden
            path = module.path[:MAX_PATH]
            inside = next((forbidden[above] for above in _paths_above(path) if above in forbidden), "")
            forbidden[path] = name
            within = self._patterns_of(inside) if inside else ()
            self.link.watch.reach(ReachedPart(name, self._patterns_of(name), inside, within, component))

    def _patterns_of(self, name: str) -> tuple[str, ...]:
        """The assignment's patterns that a dotted name falls under."""
        if name not in self._falls_under:
            if (
                len(self._falls_under) > untrusted_replies.MAX_MODULES
            ):  # no model has so many kinds of modules
                self._falls_under.clear()
            patterns = self._assignment.forbidden_patterns
            self._falls_under[name] = tuple(pattern for pattern in patterns if matches(name, pattern))
        return self._falls_under[name]

    def missing(self, name: str) -> Mismatch:
        """Why a graded name is missing."""
        return self._cannot_be_had(name, "class or function", None)

    def _require(self, name: str, kind: str) -> None:
        actual_kind = self.loaded.kinds.get(name)
        if actual_kind == kind or (actual_kind is not None and kind == "function" and actual_kind == "class"):
            return
        raise self._cannot_be_had(name, kind, actual_kind)

    def _cannot_be_had(self, name: str, kind: str, actual_kind: str | None) -> Mismatch:
        return cannot_be_had(
            name, kind, actual_kind, self.program, self.loaded, self._granted, assignment=self._assignment.id
        )

    def pictures_of(self, component: str) -> bool:
        """Whether figures of a component are wanted as pixels: those of its first run, for the report."""
        return self._pictures and not any(name == component for name, _ in self.figures)

    def keep_figures(self, component: str, figures: Sequence[DrawnFigure], arrays: Mapping[str, Any]) -> None:
        """Keep the pixels of figures for the report, if they look like pixels."""
        if not self.pictures_of(component):
            return
        for figure in figures[:MAX_PICTURES]:
            picture = untrusted_replies.picture(arrays, figure.pixels)
            if picture is not None:
                self.figures.append((component, picture))

    def close(self) -> None:
        """End the worker."""
        self.worker.close()


def _paths_above(path: str) -> Iterator[str]:
    """The paths of the modules around one, the nearest first."""
    while path:
        path = path.rpartition(".")[0]
        yield path


def _label(component: str, args: tuple[Any, ...], kwargs: dict[str, Any], inner: object) -> str:
    values = [*map(repr, args), *(["fn"] if inner is not None else [])]
    return f"{component}({', '.join([*values, *(f'{k}={v!r}' for k, v in kwargs.items())])})"
