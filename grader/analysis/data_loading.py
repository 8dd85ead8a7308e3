"""Data loading in the source: the transforms of training and test images, batch size, `collate_fn`.

A heuristic: calls of `DataLoader`, data sets and transforms are recognized by their names. The side
(training or test) follows from the names around them, then from `shuffle`. A misleading name gives the
wrong side, and nobody is asked. Where no batch size or transform is found the result is None, and
`grader.worker.training_setup` takes the handout's and notes that. `script.script_data` decides what the
training loops over.

Tests: tests/analysis/script/test_substituted_data.py, tests/analysis/test_recipe.py
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from grader.analysis.constant_values import called_name
from grader.analysis.flow import Flow, Flows, arguments
from grader.analysis.inlining import written_out
from grader.analysis.recognized_roles import argument_of_loader, begun_call, is_loader
from grader.analysis.syntax_trees import assigned, calls, children, statements_within, text_of, walk
from grader.analysis.units import Unit
from grader.domain.split_sides import split_side

CALL_DEPTH = 3
TRANSFORMS = {"Compose", "ToTensor", "Resize", "Grayscale", "Normalize", "RandAugment", "TrivialAugmentWide"}
MOST_CALLS = 60  # that are searched for transforms or batch sizes


# an argument is of what no loader is seen to be given; of what a loader is given; of what one is given that
# the loop over epochs uses; or it is set before that loop, in place of an earlier one
UNUSED, LOADED, TRAINED_WITH, SET = range(4)


@dataclass(frozen=True)
class DataArgument:
    """An expression that the student gives to a data set or a loader.

    Attributes:
        node: The expression.
        flow: What was executed before it.
        side: `train`, `test`, or None if it is not known.
        unit: The top-level statement that holds it.
        rank: `SET`, `TRAINED_WITH`, `LOADED`, or `UNUSED`: a greater one counts before the others.
    """

    node: ast.expr
    flow: Flow
    side: str | None
    unit: Unit
    rank: int = UNUSED


class DataUse:
    """The data sets and loaders of a program."""

    def __init__(
        self,
        flows: Flows,
        graded: set[str],
        datasets: Collection[str],
        callables: Collection[str],
        *,
        looped: Collection[str] = (),
        end: int | None = None,
    ) -> None:
        """Collect the calls of the program.

        Args:
            flows: The program's flows.
            graded: The graded names, whose inner parts are ignored.
            datasets: The program's own classes of data sets.
            callables: Its own classes whose objects can be called: they may be transforms.
            looped: The names that the loop over epochs uses.
            end: The index of the top-level statement that leads to that loop; None: it is not known.
        """
        self._looped, self._end = frozenset(looped), end
        self._flows = flows
        self._makers = {*callables, *TRANSFORMS}
        self._datasets = {*datasets, "ImageFolder", "DatasetFolder"}
        self._calls = list(self._all_calls(graded))
        self._sides = self._loader_sides()

    def _all_calls(self, graded: set[str]) -> Iterator[tuple[Unit, str | None, ast.stmt, ast.Call]]:
        """(top-level statement, function, statement, call) for every call outside of graded names."""
        for unit in self._flows.units:
            if unit.is_definition and unit.binds & graded:
                continue
            if isinstance(unit.node, ast.ClassDef):
                yield from ((unit, None, statement, call) for statement, call in _calls_in_methods(unit.node))
                continue
            function = self._flows.function_of(unit)
            name = function.name if function is not None else None
            for statement in statements_within(function or unit.node):
                if statement is not function:
                    for call in _shallow_calls(statement):
                        yield unit, name, statement, call

    def batch_size(self) -> DataArgument | None:
        """The batch size of the training loader."""
        best: tuple[int, DataArgument] | None = None
        for unit, function, statement, call in (*self._loader_calls(), *self._partial_loaders()):
            size = argument_of_loader(call, "batch_size")
            if size is None:
                continue
            loader_side = self._loader_side(statement, call)
            score = {"train": 2, None: 1, "test": 0}[loader_side]
            if best is None or score > best[0]:
                flow = self._flows.before(statement, function)
                best = (score, DataArgument(size, flow, loader_side, unit))
        return best[1] if best is not None else None

    def _partial_loaders(self) -> Iterator[tuple[Unit, str | None, ast.stmt, ast.Call]]:
        """Calls as in `partial(DataLoader, batch_size=64)`, as the call of a loader that they begin."""
        for unit, function, statement, call in self._calls_of("partial"):
            begun = begun_call(call)
            if begun is not None and is_loader(begun):
                yield unit, function, statement, begun

    def collate(self) -> DataArgument | None:
        """The training loader's `collate_fn`, if no other loader has one: it may augment the images."""
        collate: DataArgument | None = None
        for unit, function, statement, call in self._calls_of("DataLoader"):
            batch_maker = argument_of_loader(call, "collate_fn")
            if batch_maker is None or _is_none(batch_maker):
                continue
            loader_side = self._loader_side(statement, call)
            if loader_side != "train" or collate is not None:
                return None
            collate = DataArgument(batch_maker, self._flows.before(statement, function), loader_side, unit)
        return collate

    def transforms(self) -> tuple[DataArgument | None, DataArgument | None]:
        """The transforms of the training and the test images; if only one is known, it counts for both."""
        transforms = [*self._given_to_datasets(), *self._held_by_variables()]
        transforms.sort(key=lambda transform: -transform.rank)  # others may be made for their length
        train = next((transform for transform in transforms if transform.side == "train"), None)
        test = next((transform for transform in transforms if transform.side == "test"), None)
        either = next((transform for transform in transforms if transform.side is None), None)
        return train or either or test, test or either or train

    def _given_to_datasets(self) -> Iterator[DataArgument]:
        """Transforms given to data sets, in the order of the source."""
        yield from self._given_to_loaders()
        calls_left = MOST_CALLS
        for unit, function, statement, call in self._calls:
            for value in self._candidates(function, statement, call) if calls_left > 0 else ():
                calls_left -= 1
                yield from self._followed(unit, function, statement, call, value, CALL_DEPTH)
        for unit in reversed(self._flows.units):  # the last one counts
            if not unit.is_definition:
                yield from self._set_later(unit)

    def _given_to_loaders(self) -> Iterator[DataArgument]:
        """Transforms given to the call that makes a loader's data: `DataLoader(pictures.part(augmented))`."""
        for unit, flow, loader_side, maker, rank in self._loaded():
            if loader_side is None or not isinstance(maker, ast.Call):
                continue
            for value in (*maker.args, *(keyword.value for keyword in maker.keywords)):
                if self._is_transform(value, flow, CALL_DEPTH):
                    yield DataArgument(value, flow, loader_side, unit, rank)

    @cached_property
    def _makes_loaded(self) -> dict[int, tuple[str | None, int]]:
        """`id` of each call that makes what a loader is given -> (the loader's side, the rank).

        As of `folder("data/train")` in `DataLoader(Subset(folder("data/train"), held_out))`.
        """
        made: dict[int, tuple[str | None, int]] = {}
        for _, _, side, maker, rank in self._loaded():
            for node in walk(maker) if maker is not None else ():
                if isinstance(node, ast.Call):
                    made.setdefault(id(node), (side, rank))
        return made

    def _loaded(self) -> Iterator[tuple[Unit, Flow, str | None, ast.expr | None, int]]:
        """(top-level statement, what was executed before, side, what makes its data, rank) of each loader."""
        for unit, function, statement, call in self._loader_calls():
            flow, data = self._flows.before(statement, function), argument_of_loader(call, "dataset")
            maker = flow.last(data.id) if isinstance(data, ast.Name) else data
            rank = TRAINED_WITH if id(call) in self._trained_with else LOADED
            yield unit, flow, self._loader_side(statement, call), maker, rank

    def _loader_calls(self) -> list[tuple[Unit, str | None, ast.stmt, ast.Call]]:
        """The calls that make loaders; first those of loaders that are trained with."""
        return sorted(self._calls_of("DataLoader"), key=lambda entry: id(entry[3]) not in self._trained_with)

    @cached_property
    def _trained_with(self) -> frozenset[int]:
        """`id` of the call that makes each loader that the loop over epochs uses: the last one before it."""
        last: dict[str, int] = {}
        for unit, _, statement, call in self._calls_of("DataLoader"):
            if self._end is None or unit.index <= self._end:
                last |= {name: id(call) for name in _targets(statement, call) if name in self._looped}
        return frozenset(last.values())

    def _candidates(self, function: str | None, statement: ast.stmt, call: ast.Call) -> list[ast.expr]:
        """The arguments of a call that are transforms: by keyword, or given to a data set in another way."""
        by_keyword = (k.value for k in call.keywords if k.arg == "transform" and not _is_none(k.value))
        named_transforms = [transform for value in by_keyword for transform in _loop_values(statement, value)]
        if named_transforms or called_name(call.func) not in self._datasets:
            return named_transforms
        all_arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        flow = self._flows.before(statement, function)
        return [value for value in all_arguments if self._is_transform(value, flow, CALL_DEPTH)]

    def _calls_of(self, name: str) -> list[tuple[Unit, str | None, ast.stmt, ast.Call]]:
        """The first calls of something of this name."""
        return [entry for entry in self._calls if called_name(entry[3].func) == name][:MOST_CALLS]

    def _set_later(self, unit: Unit) -> Iterator[DataArgument]:
        """Transforms that are assigned: `test_set.dataset.transform = test_transform`."""
        for statement in statements_within(unit.node):
            pair = assigned(statement)
            for target in pair[0] if pair else ():
                if isinstance(target, ast.Attribute) and target.attr == "transform" and pair:
                    flow, side = self._flows.before(statement, None), split_side(text_of(target))
                    is_before = self._end is not None and unit.index < self._end
                    yield DataArgument(pair[1], flow, side, unit, SET if side and is_before else UNUSED)

    def _followed(
        self,
        unit: Unit,
        function: str | None,
        statement: ast.stmt,
        call: ast.Call,
        value: ast.expr,
        depth: int,
    ) -> Iterator[DataArgument]:
        """A transform, or the arguments that calls of the function give for it if it is a parameter."""
        dataset_side = self._side_of_data(statement, call)
        if function is not None and isinstance(value, ast.Name) and depth > 0:
            node = self._flows.functions[function]
            parameters = {arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
            callers = self._calls_of(function)
            if value.id in parameters and callers:
                for outer, caller, place, outer_call in callers:
                    argument = arguments(node, outer_call).get(value.id)
                    if argument is not None and not _is_none(argument):
                        yield from self._followed(outer, caller, place, outer_call, argument, depth - 1)
                return
        inlined = list(self._inlined(function, value)) if dataset_side is None and depth > 0 else []
        yield from inlined or [
            DataArgument(
                value,
                self._flows.before(statement, function),
                dataset_side or split_side(text_of(value)),
                unit,
                self._made_for(call)[1],
            )
        ]

    def _inlined(self, function: str | None, value: ast.expr) -> Iterator[DataArgument]:
        """What an expression in a function is in each call of it: `Compose(steps)` of `folder("train")`.

        There is nothing where it depends on what is not bound once, by an expression, in the function's body.
        """
        if function is None:
            return
        node = self._flows.functions[function]
        for outer, caller, place, outer_call in self._calls_of(function):
            expression = written_out(node, value, arguments(node, outer_call))
            if expression is not None:
                flow, side = self._flows.before(place, caller), self._side_of_data(place, outer_call)
                yield DataArgument(expression, flow, side, outer, self._made_for(outer_call)[1])

    def _is_transform(self, node: ast.expr, flow: Flow, depth: int) -> bool:
        """Whether an expression makes a transform, or is a name for one."""
        if isinstance(node, ast.Name) and depth > 0:
            bound = flow.last(node.id)
            return bound is not None and self._is_transform(bound, flow, depth - 1)
        if isinstance(node, ast.IfExp):
            return self._is_transform(node.body, flow, depth)
        if isinstance(node, ast.List | ast.Tuple):  # steps that a student's own data set does in order
            return any(self._is_transform(step, flow, depth) for step in node.elts)
        if not isinstance(node, ast.Call):
            return False
        return called_name(node.func) in self._makers or (
            depth > 0 and self._makes(node.func, flow, depth - 1)
        )

    def _makes(self, function: ast.expr, flow: Flow, depth: int) -> bool:
        """Whether a name is bound to a maker: `partial(Compose, [...])`, `lambda: Compose([...])`."""
        match flow.last(function.id) if isinstance(function, ast.Name) else None:
            case ast.Lambda(body=body):
                return self._is_transform(body, flow, depth)
            case ast.Call(args=[ast.Attribute(attr=name) | ast.Name(id=name), *_]) as call:
                return called_name(call.func) == "partial" and name in self._makers
        return False

    def _held_by_variables(self) -> Iterator[DataArgument]:
        """Variables that hold transforms, for the case that no data set says what it uses."""
        end = self._flows.before(None, None)
        for name, value, step in end.values:
            if isinstance(value, ast.Call) and called_name(value.func) == "Compose":
                variable = ast.copy_location(ast.Name(name, ast.Load()), value)
                yield DataArgument(variable, end, split_side(name), step)

    def _side_of_data(self, statement: ast.stmt, call: ast.Call) -> str | None:
        """Which images a call makes: by the loader that is given them, else by names."""
        return self._made_for(call)[0] or self._dataset_side(statement, call)

    def _made_for(self, call: ast.Call) -> tuple[str | None, int]:
        """(side, rank) of the loader that is given what a call makes."""
        return self._makes_loaded.get(id(call), (None, UNUSED))

    def _dataset_side(self, statement: ast.stmt, call: ast.Call) -> str | None:
        """Which images a data set holds: by its variable, its path, or the loader that uses it."""
        names = _targets(statement, call)
        for text in (*names, *(text_of(arg) for arg in call.args[:2])):
            image_side = split_side(text)
            if image_side is not None:
                return image_side
        image_side = next(
            (split_side(text_of(k.value)) for k in call.keywords if k.arg in ("root", "split")), None
        )
        if image_side is not None:
            return image_side
        loader_sides = {self._sides[name] for name in names if name in self._sides}
        return loader_sides.pop() if len(loader_sides) == 1 else None

    def _loader_sides(self) -> Mapping[str, str]:
        """Data set's variable -> the side of the loader that uses it, if that is known."""
        sides: dict[str, str] = {}
        for _, _, statement, call in self._calls:
            data = argument_of_loader(call, "dataset")
            if called_name(call.func) == "DataLoader" and isinstance(data, ast.Name):
                loader_side = self._loader_side(statement, call)
                if loader_side is not None:
                    sides[data.id] = loader_side
        return sides

    def _loader_side(self, statement: ast.stmt, call: ast.Call) -> str | None:
        data = argument_of_loader(call, "dataset")
        targets = _targets(statement, call)
        texts = [*_keys(statement, call), *(targets if len(targets) == 1 else ())]
        for text in (*texts, *([text_of(data)] if data is not None else ())):
            image_side = split_side(text)
            if image_side is not None:
                return image_side
        shuffle = argument_of_loader(call, "shuffle")
        if isinstance(shuffle, ast.Constant):
            return "train" if shuffle.value else "test"
        sampler = argument_of_loader(call, "sampler")
        return "train" if sampler is not None and not _is_none(sampler) else None


def _calls_in_methods(node: ast.ClassDef) -> Iterator[tuple[ast.stmt, ast.Call]]:
    for method in node.body:
        if isinstance(method, ast.FunctionDef):
            for statement in statements_within(method):
                if statement is not method:
                    yield from ((statement, call) for call in _shallow_calls(statement))


def _shallow_calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls in a statement's own expressions, including lambdas, but not in statements within it."""
    for child in children(statement):
        if not isinstance(child, ast.stmt | ast.excepthandler):
            yield from calls(child)
            for node in walk(child):
                if isinstance(node, ast.Lambda):
                    yield from calls(node.body)


def _keys(statement: ast.stmt, call: ast.Call) -> Iterator[str]:
    """The keys and keywords under which a statement puts what a call gives: `{"train": DataLoader(...)}`."""
    for node in walk(statement):
        match node:
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if value is call and isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield key.value
            case ast.keyword(arg=str(name), value=value) if value is call:
                yield name


def _loop_values(statement: ast.stmt, value: ast.expr) -> list[ast.expr]:
    """What a variable of a comprehension stands for, if that is written out: `for t in (a, b)`."""
    for node in walk(statement) if isinstance(value, ast.Name) else ():
        for generator in getattr(node, "generators", ()):
            match generator:
                case ast.comprehension(target=ast.Name(id=name), iter=ast.Tuple() | ast.List() as items):
                    if isinstance(value, ast.Name) and name == value.id:
                        return items.elts
    return [value]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _targets(statement: ast.stmt, call: ast.Call) -> list[str]:
    """The texts of what a statement binds to what a call gives: in `a, b = f(), g()`, `a` for `f()`."""
    pair = assigned(statement)
    if pair is None:
        return []
    targets, bound = pair
    names = [
        text_of(name)
        for target in targets
        for name in (target.elts if isinstance(target, ast.Tuple | ast.List) else [target])
    ]
    is_pairs = len(targets) == 1 and isinstance(targets[0], ast.Tuple | ast.List)
    if is_pairs and isinstance(bound, ast.Tuple | ast.List) and len(bound.elts) == len(names):
        return [name for name, part in zip(names, bound.elts, strict=True) if call in walk(part)]
    return names
