"""Components: a student's part is constructed, called, and its weights are read and written.

It computes outputs, gradients and the tree of modules. Whatever the student's code raises passes through.
`grader.judge` decides whether the numbers are right, and validates all of them first.

Tests: tests/worker/test_components.py
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from grader.protocol.replies import Built, Called, Done, Parameter, WeightValues
from grader.protocol.requests import SET, Adopt, Build, Call, SetWeights, Weights
from grader.worker.exchanged_values import Kept, Objects
from grader.worker.invocation import Invocations
from grader.worker.model_outputs import MAX_MODULES, array, module_tree
from grader.worker.student_faults import StudentFault, students_code
from grader.worker.student_module import StudentModule, quiet, seed_all
from grader.worker.substitutes import AffineFakes
from grader.worker.training_setup import configured_model

CONFIGURED_MODEL = "$model"


class Components:
    """The components that were built, among the objects that are kept."""

    def __init__(self, student: StudentModule, objects: Objects, invocations: Invocations) -> None:
        self._student, self._objects, self._invocations = student, objects, invocations

    def build(self, request: Build) -> Built:
        """Construct a component; whatever the student's code raises passes through."""
        affine_fakes = AffineFakes()
        replacements = self._invocations.replacements(request.fakes, affine_fakes, request.replace)
        seed_all(request.seed)
        unpacking = self._invocations.unpacker(request)
        args = [unpacking.value(node) for node in request.args]
        kwargs = {name: unpacking.value(node) for name, node in request.kwargs.items()}
        with self._student.replaced(replacements), quiet():
            if request.component == CONFIGURED_MODEL:
                built: Any = configured_model(self._student, made=request.made)
            else:
                if request.inner is not None:
                    args.append(affine_fakes.inner(request.inner))
                with students_code():
                    built = self._student.namespace[request.component](*args, **kwargs)
        if not isinstance(built, nn.Module):
            wrong = f"{request.component}(...) made a {type(built).__name__}, not an nn.Module"
            raise StudentFault(TypeError(wrong))
        with students_code():
            for number, (path, behavior) in enumerate(request.substitute.items()):
                around, _, name = path.rpartition(".")
                setattr(built.get_submodule(around), name, affine_fakes.submodule(path, number, behavior))
            built = built.to("cpu")
            if request.double:
                built = built.double()
        return self._built(self._objects.keep(Kept(built, affine_fakes, replacements)))

    def adopt(self, request: Adopt) -> Built:
        """Take a module that is kept as a component."""
        return self._built(request.handle)

    def _built(self, handle: int) -> Built:
        kept = self._objects[handle]
        with students_code():  # reading a lazy layer's parameters raises
            parameters = _parameters(kept.value)
        return Built(handle, parameters, module_tree(kept.value), tuple(kept.affine_fakes.made))

    def call(self, request: Call) -> Called:
        """Call a component; whatever the student's code raises passes through."""
        kept = self._objects[request.handle]
        module, affine_fakes = kept.value, kept.affine_fakes
        _overwrite(module, _set_first(request.arrays))
        with students_code():
            module.train(request.train)
        affine_fakes.clear()
        inputs, keywords = _inputs(request.arrays), _keywords(request.arrays)
        seed_all(request.seed)
        rates = _dropout_rates(module) if request.without_dropout else {}
        with (
            self._student.replaced(dict(kept.replacements)),
            quiet(),
            torch.set_grad_enabled(request.gradients),
            _without_dropout(rates),
        ):
            if request.gradients:
                module.zero_grad(set_to_none=True)
                inputs = [x.requires_grad_() if x.is_floating_point() else x for x in inputs]
            outputs: list[Any] = []
            calls_by: list[int] = []
            for number in range(request.times):
                if number:  # what a call did to its inputs and to its mode, the next one must not see
                    inputs, keywords = _inputs(request.arrays), _keywords(request.arrays)
                    with students_code():
                        module.train(request.train)
                with students_code():
                    outputs.append(module(*inputs, **keywords))
                calls_by.append(len(affine_fakes.calls))
        arrays: dict[str, Any] = {}
        no_gradient: tuple[str, ...] = ()
        with students_code():  # a tensor of a student's own class may do anything when it is read
            calls = affine_fakes.told(arrays)
            for number, output in enumerate(outputs):
                if not isinstance(output, Tensor):
                    return Called(type(output).__name__, calls, arrays=arrays)
                arrays[f"output{number or ''}"] = array(output)
            if request.gradients:
                cotangent = torch.from_numpy(request.arrays["cotangent"].copy())
                no_gradient = _gradients(module, inputs[0], outputs[0], cotangent, arrays)
        return Called("tensor", calls, no_gradient, tuple(calls_by), arrays)

    def weights(self, request: Weights) -> WeightValues:
        """The parameters and buffers of a component."""
        module = self._objects[request.handle].value
        _overwrite(module, _set_first(request.arrays))
        with students_code():  # one that is sparse, or claims more memory than there is, cannot be read
            named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
            return WeightValues({name: array(value) for name, value in list(named.items())[:MAX_MODULES]})

    def set_weights(self, request: SetWeights) -> Done:
        """Overwrite parameters and buffers of a component."""
        _overwrite(self._objects[request.handle].value, request.arrays)
        return Done()


def _set_first(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are to be set before a request is fulfilled, by the names of their weights."""
    return {name.removeprefix(SET): value for name, value in arrays.items() if name.startswith(SET)}


def _overwrite(module: nn.Module, values: Mapping[str, Any]) -> None:
    if not values:
        return
    with students_code():
        named = {
            **dict(module.named_parameters(remove_duplicate=False)),
            **dict(module.named_buffers(remove_duplicate=False)),
        }
    targets = [(named[name], value) for name, value in values.items()]
    with students_code(), torch.no_grad():  # one that is a view of a single number cannot be written
        for target, value in targets:
            target.copy_(torch.from_numpy(value.copy()).to(target.dtype))


def _inputs(arrays: Mapping[str, Any]) -> list[Tensor]:
    numbered = sorted((int(name), value) for name, value in arrays.items() if name.isdigit())
    return [torch.from_numpy(value.copy()) for _, value in numbered]


def _keywords(arrays: Mapping[str, Any]) -> dict[str, Tensor]:
    return {
        name.removeprefix("keyword:"): torch.from_numpy(value.copy())
        for name, value in arrays.items()
        if name.startswith("keyword:")
    }


def _dropout_rates(module: nn.Module) -> dict[nn.modules.dropout._DropoutNd, float]:
    """The rates of the dropout layers."""
    return {part: part.p for part in module.modules() if isinstance(part, nn.modules.dropout._DropoutNd)}


@contextlib.contextmanager
def _without_dropout(rates: Mapping[nn.modules.dropout._DropoutNd, float]) -> Iterator[None]:
    """These layers with a rate of zero, for a while."""
    for part in rates:
        part.p = 0.0
    try:
        yield
    finally:
        for part, rate in rates.items():
            part.p = rate


def _gradients(
    module: nn.Module, x: Tensor, output: Tensor, cotangent: Tensor, arrays: dict[str, Any]
) -> tuple[str, ...]:
    """Put the gradients into `arrays`; the names of the parameters that received none."""
    if not output.requires_grad:
        return tuple(name for name, value in module.named_parameters() if value.requires_grad)
    if output.shape != cotangent.shape:
        return ()
    (output * cotangent.to(output.dtype)).sum().backward()  # type: ignore[no-untyped-call]
    if x.grad is not None:
        arrays["gradient:input"] = array(x.grad)
    missing = []
    for name, value in module.named_parameters():
        if value.grad is not None:
            arrays[f"gradient:{name}"] = array(value.grad)
        elif value.requires_grad:
            missing.append(name)
    return tuple(missing)


def _parameters(module: nn.Module) -> tuple[Parameter, ...]:
    named = list(module.named_parameters(remove_duplicate=False))[:MAX_MODULES]
    groups: dict[int, list[str]] = {}
    for name, value in named:
        groups.setdefault(id(value), []).append(name)
    return tuple(
        Parameter(name, tuple(value.shape), value.requires_grad, tuple(groups[id(value)]))
        for name, value in named
        if groups[id(value)][0] == name
    )
