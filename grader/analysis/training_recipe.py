"""The training recipe: expressions for model, transforms, batch size and epochs, and what they need.

Models and the epoch loop are recognized by use. Optimizers and schedules are recognized by `torch.optim`,
by `.parameters()` as an argument, or by a name with `sched`. What cannot be taken over is dropped with a
note, a count that cannot be read is None, and `grader.worker.training_setup` says what the recipe lacks.
`script.training_script`, not the recipe, decides what is trained, and `grader.worker.script_run` for how
long.

Tests: tests/analysis/test_recipe.py, tests/worker/test_worker_recipe.py
"""

import ast
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from grader.analysis.data_loading import DataArgument, DataUse
from grader.analysis.effects import Effect, Effects
from grader.analysis.flow import Flow, Flows, Lifting, Phase
from grader.analysis.recognized_roles import SCHEDULES, RoleReader, unwrapped
from grader.analysis.syntax_trees import LOOPS, calls, own_calls, statements_within, text_of, walk
from grader.analysis.units import Unit
from grader.domain.analyzed_program import Loading, Place, Recipe, Statement
from grader.domain.formatting import as_code, named

PROGRESS = {"tqdm", "trange", "track", "master_bar", "progress_bar", "enumerate"}
RANGES = {"range", "trange"}


@dataclass(frozen=True)
class EpochLoop:
    """A loop over epochs.

    Attributes:
        node: The `for` or `while`.
        function: The top-level function that holds it; None at top level.
        unit: The top-level statement that holds it.
        rank: 0 if it calls the graded training function, 1 if it trains by itself.
    """

    node: ast.For | ast.While
    function: str | None
    unit: Unit
    rank: int


def epoch_loop(
    units: tuple[Unit, ...], trainer: str | None, graded: set[str], among: Collection[Place]
) -> EpochLoop | None:
    """The loop that trains the final model: the last one that calls the training function.

    Args:
        among: The places of the loops that train the model that counts; empty: any loop may be it.
        units: The program.
        trainer: The graded function that trains for one epoch, as it is defined.
        graded: All graded names, as they are defined: loops within them are not over epochs.
    """
    stepping = _callers(units, trainer) | ({trainer} if trainer else set())
    loops: list[EpochLoop] = []
    for unit in units:
        if isinstance(unit.node, ast.ClassDef) or unit.binds & graded:
            continue
        function = unit.node.name if isinstance(unit.node, ast.FunctionDef) else None
        for node in statements_within(unit.node):
            if isinstance(node, LOOPS):
                if among and unit.cell.place(node.lineno) not in among:
                    continue
                rank = _rank(node, stepping)
                if rank is not None:
                    loops.append(EpochLoop(node, function, unit, rank))
    if among:
        return loops[-1] if loops else None
    best = min((loop.rank for loop in loops), default=None)
    return next((loop for loop in reversed(loops) if loop.rank == best), None)


def _rank(node: ast.For | ast.While, stepping: set[str]) -> int | None:
    if any(isinstance(call.func, ast.Name) and call.func.id in stepping for call in own_calls(node)):
        return 0
    inner = [loop for loop in statements_within(node) if isinstance(loop, LOOPS) and loop is not node]
    every = [call for loop in inner for call in own_calls(loop)]
    if any(_method(call) == "backward" or (_method(call) == "step" and call.args) for call in every):
        return 1
    return None


def _callers(units: tuple[Unit, ...], trainer: str | None) -> set[str]:
    """Functions without loops that call the training function: an epoch's training and evaluation."""
    names_of_callers = set()
    for unit in units:
        if isinstance(unit.node, ast.FunctionDef):
            has_loop = any(isinstance(node, LOOPS) for node in statements_within(unit.node))
            called_names = {call.func.id for call in calls(unit.node) if isinstance(call.func, ast.Name)}
            if not has_loop and trainer in called_names:
                names_of_callers.add(unit.node.name)
    return names_of_callers


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def epochs(loop: ast.For | ast.While, bound_to: Callable[[str], ast.expr | None]) -> ast.expr | None:
    """The expression for how often a loop runs; None if it is not known.

    Args:
        bound_to: The expression that a name is bound to before the loop (`bar = trange(30)`).
    """
    if isinstance(loop, ast.While):
        test = loop.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Lt | ast.LtE):
            return test.comparators[0]
        return None
    iterated = loop.iter
    if isinstance(iterated, ast.Name):
        iterated = bound_to(iterated.id) or iterated
    while isinstance(iterated, ast.Call):
        name = text_of(iterated.func).split(".")[-1]
        if name in RANGES:
            return _count(iterated)
        if name not in PROGRESS or not iterated.args:
            return None
        iterated = iterated.args[0]
    return None


def _count(call: ast.Call) -> ast.expr | None:
    """How many numbers `range(...)` gives, as an expression that is as short as possible."""
    args = call.args
    if len(args) == 1:
        return args[0]
    if len(args) == 2 and isinstance(args[0], ast.Constant):
        start, stop = args[0].value, args[1]
        if start == 0:
            return stop
        match stop:
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=more)) if more == start:
                return left
            case ast.BinOp(left=ast.Constant(value=more), op=ast.Add(), right=right) if more == start:
                return right
    if not args:
        return None
    counted = ast.Call(ast.Name("len", ast.Load()), [ast.Call(ast.Name("range", ast.Load()), args, [])], [])
    return ast.copy_location(ast.fix_missing_locations(ast.copy_location(counted, call)), call)


# --- recipe ----------------------------------------------------------------------------------------------


EPOCH_NAMES = ("n_epochs", "num_epochs", "epochs", "epoch_count", "max_epochs", "nb_epochs", "total_epochs")
Text = Callable[[str, ast.expr | None, Flow | None, Phase], str | None]
MOST_FUNCTIONS = 20  # that are searched for the model
MODEL = "model"  # what nothing is in the place of
SHOWN_BY_LOADERS = ("training transform", "test transform", "batch size")
DATA_ROLES = {"train_loader", "test_loader", "train_dataset", "test_dataset", "class_names", "num_classes"}


@dataclass(frozen=True)
class Ingredients:
    """The expressions of a recipe as nodes, each with what was executed before it.

    Attributes:
        flow: What is executed on the way to the loop over epochs.
        loop: That loop, if there is one.
        model, optimizer, scheduler: (variable, expression, the flow that it was found in).
    """

    flow: Flow
    loop: EpochLoop | None
    model: tuple[str, ast.expr, Flow] | None
    optimizer: tuple[str, ast.expr, Flow] | None
    scheduler: tuple[str, ast.expr, Flow] | None
    batch_size: DataArgument | None
    collate: DataArgument | None
    train_transform: DataArgument | None
    test_transform: DataArgument | None
    epochs: ast.expr | None


@dataclass
class Reading:
    """A recipe, what it was made from, and what came up on the way.

    Attributes:
        roles: Names of data (loaders, data sets, class names) that its expressions use.
        notes: Sentences about expressions that cannot be used.
    """

    recipe: Recipe
    ingredients: Ingredients
    roles: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Sources:
    """What a recipe is read from.

    Attributes:
        flows: The program's flows.
        effects: The program's effects.
        reader: Recognizes models, optimizers and schedules.
        roles: Top-level names that are bound by role.
        trainer: The graded function that trains for an epoch, as it is defined.
        graded: All graded names, as they are defined.
        statements: What is executed on loading.
    """

    flows: Flows
    effects: Effects
    reader: RoleReader
    roles: dict[str, str]
    trainer: str | None
    graded: set[str]
    statements: Sequence[Statement]


def ingredients(sources: Sources, loops: Collection[Place]) -> Ingredients:
    """The parts of the student's training, wherever in the program they are.

    Args:
        loops: The places of the loops that train the model that counts.
    """
    flows, reader = sources.flows, sources.reader
    loop = epoch_loop(flows.units, sources.trainer, sources.graded, loops)
    if loop is not None:
        flow = flows.before(loop.node, loop.function)
    else:
        flow = flows.before(None, "main" if "main" in flows.functions else None)
    places = [flow, *_other_flows(sources)]
    classes = [unit.node for unit in flows.units if isinstance(unit.node, ast.ClassDef)]
    datasets = [
        definition.name
        for definition in classes
        if sources.effects.of_function(definition.name) & Effect.DATA
    ]
    callables = [definition.name for definition in classes if _can_be_called(definition)]
    data = DataUse(
        flows,
        sources.graded,
        datasets,
        callables,
        looped=_names_looped(loop, flows) if loop is not None else (),
        end=_end(loop, flows) if loop is not None else None,
    )
    train, test = data.transforms()
    return Ingredients(
        flow=flow,
        loop=loop,
        model=_last(places, lambda name, value: reader.is_model(value)),
        optimizer=_last(places, lambda name, value: _is_optimizer(reader, value)),
        scheduler=_scheduler(flow, reader),
        batch_size=data.batch_size(),
        collate=data.collate(),
        train_transform=train,
        test_transform=test,
        epochs=_epochs(loop, flow),
    )


def _names_looped(loop: EpochLoop, flows: Flows) -> set[str]:
    """The names that a loop uses, and those that the function around it is given where it is called."""
    names = {node.id for node in walk(loop.node) if isinstance(node, ast.Name)}
    for unit in flows.units if loop.function is not None else ():
        for call in (node for node in walk(unit.node) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Name) and call.func.id == loop.function:
                names |= {node.id for node in walk(call) if isinstance(node, ast.Name)}
    return names


def _end(loop: EpochLoop, flows: Flows) -> int:
    """The index of the top-level statement that leads to a loop: the last one that names its function."""
    if loop.function is None:
        return loop.unit.index
    naming = [unit.index for unit in flows.units if not unit.is_definition and loop.function in unit.eager]
    return max(naming, default=flows.units[-1].index)


def _can_be_called(node: ast.ClassDef) -> bool:
    return any(isinstance(inner, ast.FunctionDef) and inner.name == "__call__" for inner in node.body)


def _other_flows(sources: Sources) -> list[Flow]:
    """The whole flows of functions that build models or optimizers, the last first, and of the top level."""
    names = [
        name
        for name in reversed(sources.flows.functions)
        if name not in sources.graded
        and sources.effects.of_function(name) & (Effect.MODEL | Effect.OPTIMIZER)
    ]
    return [sources.flows.before(None, name) for name in (*names[:MOST_FUNCTIONS], None)]


def _last(places: Sequence[Flow], fits: Callable[[str, ast.expr], bool]) -> tuple[str, ast.expr, Flow] | None:
    """The last binding that fits, in the first flow that has one."""
    for flow in places:
        for name, value, _ in reversed(flow.values):
            if fits(name, value):
                return name, value, flow
    return None


def _is_optimizer(reader: RoleReader, value: ast.expr) -> bool:
    """Whether an expression makes an optimizer: one of torch's, or a call that is given `.parameters()`."""
    if reader.makes(value, *SCHEDULES, "torch.optim.swa_utils."):
        return False
    if reader.makes(value, "torch.optim."):
        return True
    if not isinstance(value, ast.Call) or not value.args:
        return False
    first_argument = value.args[0]
    return isinstance(first_argument, ast.Call) and text_of(first_argument.func).endswith(
        (".parameters", ".named_parameters")
    )


def _scheduler(flow: Flow, reader: RoleReader) -> tuple[str, ast.expr, Flow] | None:
    """The last schedule before the loop; the student's own classes count if the name says so."""

    def fits(name: str, value: ast.expr) -> bool:
        if reader.makes(value, *SCHEDULES):
            return True
        return isinstance(value, ast.Call) and "sched" in name.lower() and "optim" in text_of(value).lower()

    return _last([flow], fits)


def _epochs(loop: EpochLoop | None, flow: Flow) -> ast.expr | None:
    counted = epochs(loop.node, flow.last) if loop is not None else None
    if counted is not None:
        return counted
    for name in EPOCH_NAMES:
        for bound in flow.bound:
            if bound.lower() == name and (stated := flow.last(bound)) is not None:
                return stated
    return None


def reading(sources: Sources, parts: Ingredients, loading: Loading) -> Reading:
    """The recipe that the worker executes.

    Args:
        sources: What it is read from.
        parts: Its parts.
        loading: How the loaders are made, which shows more than the source.
    """
    model = parts.model[0] if parts.model else "model"
    data = _data_names(sources, parts)
    late = dict.fromkeys(data, Phase.DATA)
    late[model] = Phase.MODEL
    lifting = Lifting(sources.effects, _loaded(sources.statements), late)
    loaded_nodes = {id(sources.flows.units[index].node) for index in sources.flows.kept}
    result = Reading(Recipe(), parts)

    def text(what: str, node: ast.expr | None, flow: Flow | None, phase: Phase) -> str | None:
        if node is None or flow is None:
            return None
        missing = lifting.missing(node, flow, phase, loaded_nodes)
        if missing is None:
            return text_of(node)
        if loading.statements and what in SHOWN_BY_LOADERS:
            return None
        instead = " The handed-out one is used in its place." if what != MODEL else ""
        result.notes.append(
            f"The {what} {as_code(text_of(node))} could not be taken over: it needs {named(missing)}, "
            f"which is not executed on loading.{instead}"
        )
        return None

    result.recipe = Recipe(
        model=text(MODEL, unwrapped(parts.model[1]), parts.model[2], Phase.DATA) if parts.model else None,
        model_name=model,
        train_transform=_text_of(text, SHOWN_BY_LOADERS[0], parts.train_transform),
        test_transform=_text_of(text, SHOWN_BY_LOADERS[1], parts.test_transform),
        batch_size=_text_of(text, SHOWN_BY_LOADERS[2], parts.batch_size),
        collate=_text_of(text, "function that makes batches", parts.collate),
    )
    result.recipe = replace(
        result.recipe,
        statements=lifting.statements(Phase.START),
        after_data=lifting.statements(Phase.DATA),
        loading=loading,
        lacks_transform=(parts.train_transform is not None and result.recipe.train_transform is None)
        or (parts.test_transform is not None and result.recipe.test_transform is None),
    )
    result.roles = {name: data[name] for name in sorted(lifting.used_late) if name in data}
    return result


def _text_of(text: Text, description: str, part: DataArgument | None) -> str | None:
    return text(description, part.node, part.flow, Phase.START) if part is not None else None


def _data_names(sources: Sources, parts: Ingredients) -> dict[str, str]:
    """Names of data -> role: those at top level, and those within the functions on the way."""
    names = {name: role for name, role in sources.roles.items() if role in DATA_ROLES}
    flows: Collection[Flow] = [parts.flow, *(part[2] for part in (parts.model, parts.optimizer) if part)]
    for flow in flows:
        for name, value, _ in flow.values:
            role = sources.reader.role(name, value, names)
            if role in DATA_ROLES and role is not None:
                names[name] = role
        for step in flow.steps:
            names |= _roles_of_unexecuted(step, sources, names)
    return names


def _roles_of_unexecuted(step: Unit, sources: Sources, names: dict[str, str]) -> dict[str, str]:
    """Names bound by statements that are not executed: `train_loader, test_loader = loaders()`."""
    return {
        name: role
        for name, role in sources.reader.bound_roles(step, sources.effects, names).items()
        if role in DATA_ROLES
    }


def _loaded(statements: Sequence[Statement]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for statement in statements:
        for name in statement.binds:
            counts[name] = counts.get(name, 0) + 1
    return counts
