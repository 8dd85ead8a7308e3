"""The program of a submission: what is executed, left out and pointed out, from all analyses together.

It decides which name in the source stands for a graded name, a misspelled one included, and which class
is the model: the stated one, else the last graded class. It computes where the code of training stands,
so that forbidden parts in it have a place. It executes nothing and gives no points: the notes that it
collects go to people, and `grader.scoring` decides.

Tests: tests/analysis/test_loading_statements.py, tests/analysis/test_prying.py,
tests/analysis/test_recipe.py
"""

import ast
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from grader.analysis.bare_text import BareTexts
from grader.analysis.effects import Aliases, Effects
from grader.analysis.flow import Flows
from grader.analysis.forbidden_uses import forbidden_uses, suspicions
from grader.analysis.randomness import state_reads
from grader.analysis.roles import RoleReader, bindings, roles
from grader.analysis.script.training_script import Known, ScriptReader
from grader.analysis.slicing import Graph, Reach, omissions, pruned, statements
from grader.analysis.source import TOO_DEEP, Source, source
from grader.analysis.stated_values import claim_in_outputs, epochs_in_outputs, tuned
from grader.analysis.suspicious_code import written_data
from grader.analysis.training_recipe import DATA_ROLES, Reading, Sources, ingredients, reading
from grader.analysis.units import (
    DEFINITIONS,
    Cell,
    Unit,
    further_units,
    statements_within,
    text_constants,
    units,
)
from grader.domain.analyzed_program import (
    LOADING,
    TRAINING,
    NearName,
    Note,
    Omission,
    Place,
    Program,
    Recipe,
    Script,
    Statement,
)
from grader.domain.assignment import Component, ProgramRules, trainers
from grader.domain.errors import SubmissionError
from grader.domain.measure import ProgramRoles

FURTHEST = 2


def definitions(units: Sequence[Unit]) -> dict[str, tuple[Place, str]]:
    """Top-level name -> where it is bound last, and as what: `class`, `function` or `value`."""
    found: dict[str, tuple[Place, str]] = {}
    for unit in units:
        kinds = {
            node.name: ("class" if isinstance(node, ast.ClassDef) else "function", node.lineno)
            for node in ast.walk(unit.node)
            if isinstance(node, DEFINITIONS) and node.name in unit.binds
        }
        for name in unit.binds:
            kind, line = kinds.get(name, ("value", unit.line))
            found[name] = (unit.cell.place(line), kind)
    return found


def near_names(
    components: Sequence[Component], defined: Mapping[str, tuple[Place, str]]
) -> tuple[NearName, ...]:
    """For every graded name that is missing, the defined name that is nearly it, if there is one.

    Nearly is: the same but for case and underscores, or at most two letters apart (one in short names).
    """
    expected = {component.name for component in components}
    taken: set[str] = set()
    pairs: list[tuple[int, int, str, str]] = []
    for order, component in enumerate(components):
        if component.name in defined:
            continue
        for name, (_, kind) in defined.items():
            if kind == component.kind and name not in expected:
                apart = distance(_squeezed(component.name), _squeezed(name))
                if apart <= min(FURTHEST, len(component.name) // 3):
                    pairs.append((apart, order, component.name, name))
    found: dict[str, NearName] = {}
    for _, _, wanted, name in sorted(pairs):
        if wanted not in found and name not in taken:
            taken.add(name)
            found[wanted] = NearName(wanted, name, defined[name][0])
    return tuple(found[c.name] for c in components if c.name in found)


def _squeezed(name: str) -> str:
    return name.replace("_", "").lower()


def distance(first: str, second: str) -> int:
    """How many letters must be added, dropped or changed (Levenshtein), counted up to `FURTHEST + 1`."""
    if abs(len(first) - len(second)) > FURTHEST:
        return FURTHEST + 1
    previous = list(range(len(second) + 1))
    for row, left in enumerate(first, start=1):
        current = [row]
        for column, right in enumerate(second, start=1):
            change = previous[column - 1] + (left != right)
            current.append(min(change, previous[column] + 1, current[-1] + 1))
        previous = current
    return min(previous[-1], FURTHEST + 1)


# --- training code ---------------------------------------------------------------------------------------


def training_code(cells: Sequence[Cell], reading: Reading, script: Script) -> Iterator[tuple[ast.stmt, Cell]]:
    """Each statement of the recipe, the loop over epochs, and each expression, with its cell.

    Args:
        cells: The program's.
        reading: How the student builds the model and loads data.
        script: How the student trains.
    """
    by_file = {cell.file: cell for cell in cells}
    recipe, parts = reading.recipe, reading.ingredients
    for statement in (*recipe.all_statements, *script.statements):
        yield from _parsed(statement, by_file.get(statement.place.file, cells[0]))
    bound = [part[1] for part in (parts.model, parts.optimizer, parts.scheduler) if part]
    given = [
        part.node
        for part in (parts.train_transform, parts.test_transform, parts.batch_size, parts.collate)
        if part
    ]
    for node in (*bound, *given, *([parts.epochs] if parts.epochs is not None else [])):
        yield ast.copy_location(ast.Expr(node), node), _cell_of(node, cells)


def _parsed(statement: Statement, cell: Cell) -> Iterator[tuple[ast.stmt, Cell]]:
    """The statement, its lines counted as in its cell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(statement.source)
    ast.increment_lineno(tree, statement.place.line - 1)
    for node in tree.body:
        yield node, cell


def _cell_of(node: ast.expr, cells: Sequence[Cell]) -> Cell:
    """The cell in which an expression stands; the first where it was put together by us."""
    place = node.lineno, node.col_offset, ast.dump(node)
    for cell in cells:
        for statement in cell.tree.body:
            if not statement.lineno <= node.lineno <= (statement.end_lineno or 0):
                continue
            for inner in ast.walk(statement):
                if not isinstance(inner, ast.expr) or (inner.lineno, inner.col_offset) != place[:2]:
                    continue
                if ast.dump(inner) == place[2]:
                    return cell
    return cells[0]


# --- programs --------------------------------------------------------------------------------------------


# Python 3.11 counts the depth of trees for all threads together: who parses while another does may be told
# of a "recursion depth mismatch"
_ONE_AT_A_TIME = threading.Lock()


def program(
    path_name: str,
    data: bytes,
    rules: ProgramRules,
    modules: Mapping[str, bytes] | None = None,
    *,
    executed: bool = False,
) -> Program:
    """The program that a submitted file holds, with the modules beside it that it imports.

    Args:
        path_name: The file's name, for messages; folders before it are dropped.
        data: Its content.
        rules: What it is read by.
        modules: Python files beside it: name, with the folders before it -> content.
        executed: It is what a kernel executed: see `executed_notebook`.

    Raises:
        SubmissionError: The file cannot be read as a script or a notebook; the sentence says where and why.
    """
    name = path_name.replace("\\", "/").rsplit("/", 1)[-1]
    try:
        with _ONE_AT_A_TIME:
            read = source(name, data, modules, given=rules.modules, executed=executed)
            return _together(
                _analyzed(read, rules),
                {measure: _analyzed(read, each) for measure, each in rules.further.items()},
            )
    except (RecursionError, MemoryError) as error:
        raise SubmissionError(f"{name}: {TOO_DEEP}") from error


def _together(first: Program, further: Mapping[str, Program]) -> Program:
    """A program with how it is read for further models; what people are told of it is told once."""
    if not further:
        return first
    every = (first, *further.values())
    left_out = set.intersection(*({one.place for one in each.omissions} for each in every))
    return replace(
        _measured_apart(first, every),
        omissions=tuple(one for one in first.omissions if one.place in left_out),
        forbidden=tuple(dict.fromkeys(use for each in every for use in each.forbidden)),
        notes=tuple(dict.fromkeys(note for each in every for note in each.notes)),
        further={
            measure: replace(_measured_apart(each, every), source=None) for measure, each in further.items()
        },
    )


def _measured_apart(one: Program, every: Sequence[Program]) -> Program:
    """A program of which only that is left alone which trains none of the models that are measured."""
    trained = {statement.place for each in every if each is not one for statement in each.script.statements}
    left_alone = tuple(each for each in one.script.left_alone if each.place not in trained)
    return replace(one, script=replace(one.script, left_alone=left_alone))


def _analyzed(read: Source, rules: ProgramRules) -> Program:
    """The program of a source that could be read."""
    components, forbidden, stated = rules.components, rules.forbidden, rules.roles
    strings = text_constants(read.cells)
    whole = units(read.cells, strings)
    defined = definitions(whole)
    near = near_names(components, defined)
    names = _found_names(components, defined, near)  # graded name -> the name in the source
    aliases = Aliases(whole)
    kinds = {names[c.name]: c.kind for c in components if c.name in names}
    effects = Effects(whole, aliases, kinds, provided=rules.provided, cached=rules.cached, strings=strings)
    cut, taken_out = pruned(whole, effects, aliases, trains=rules.trains)
    classes = [c.name for c in components if c.kind == "class" and c.name in names]
    model_class = names.get(stated.model) or _last([names[name] for name in classes])
    trainer = next((names[name] for name in trainers(components, stated) if name in names), None)
    reader = RoleReader(aliases, cut, model_class)
    known_roles = roles(cut, effects, reader)
    graph = Graph(cut, effects, kinds, known_roles)
    reaches = {graded: graph.reach([found]) for graded, found in names.items()}
    kept = graph.kept({index for reach in reaches.values() for index in reach.units})
    loaded = statements(cut, kept)
    sources = Sources(
        flows=Flows(cut, effects, kept),
        effects=effects,
        reader=reader,
        roles=known_roles,
        trainer=trainer,
        graded=set(kinds),
        statements=loaded,
    )
    reading_of_script = ScriptReader(
        Known(
            units=whole,
            aliases=aliases,
            effects=effects,
            reader=reader,
            kinds=kinds,
            trainer=trainer,
            evaluators=tuple(names[name] for name in _measuring(components, stated) if name in names),
            final=stated.final,
            model_class=model_class,
            data={name: role for name, role in known_roles.items() if role in DATA_ROLES}
            | _all_data(whole, effects, reader),
            top_data={name: role for name, role in known_roles.items() if role in DATA_ROLES},
            checkpoint=rules.checkpoint,
        )
    )
    script = reading_of_script.script()
    aside = {one.place for one in script.left_alone}  # what it calls, it calls for another model
    focused = replace(sources, flows=Flows(cut, effects, kept, aside))
    parts = ingredients(focused, [loop.place for loop in script.loops])
    if (built := reading_of_script.built) is not None:
        before = sources.flows.before(built.statement, built.function)
        # what a training decides nobody knows before it
        parts = replace(parts, model=None if built.chosen else (built.name, built.expression, before))
    recipe = reading(sources, parts)
    deep = {
        graded: graph.reach([names[graded]], executed=False, stop_at_roles=kinds[names[graded]] == "function")
        for graded in names
    }
    trained = further_units(read.cells, strings, training_code(read.cells, recipe, script), len(whole))
    every_alias = Aliases((*whole, *trained))
    deep[TRAINING] = _and(graph.reach(_names(trained, lazy=True), executed=False), trained)
    uses = forbidden_uses((*whole, *trained), every_alias, forbidden, deep)
    used = dict(deep)
    deep[LOADING] = graph.reach(_names([cut[index] for index in kept]))
    bare = BareTexts()
    made = Program(
        file=read.file,
        statements=bare.statements(loaded),
        defined={graded: defined[found][0] for graded, found in names.items()},
        near_names=near,
        omissions=_ordered(
            [*read.omissions, *taken_out, *_left_out(graph, kept, recipe.recipe, script, rules.trains)], read
        ),
        unresolved=_unresolved(reaches),
        roles=_used_roles(reaches, known_roles) | recipe.roles,
        forbidden=uses,
        tuned=tuned(parts, cut, sources.flows.functions),
        recipe=bare.recipe(recipe.recipe),
        script=replace(script, statements=bare.statements(script.statements)),
        claim=claim_in_outputs(read.printed),
        shown_epochs=epochs_in_outputs(read.printed),
        notes=(
            *map(Note, (*read.notes, *recipe.notes)),
            *suspicions(whole, trained, every_alias, forbidden, deep, kept, rules.cached),
            *state_reads(whole, aliases, used, graph, recipe.recipe, script),
        ),
        source=read.text,
        modules=read.modules,
    )
    return replace(made, notes=(*made.notes, *written_data(made)))


def _all_data(units: Sequence[Unit], effects: Effects, reader: RoleReader) -> dict[str, str]:
    """Names of data, within functions too -> role."""
    found: dict[str, str] = {}
    for unit in units:
        if isinstance(unit.node, ast.ClassDef):
            continue
        for node in statements_within(unit.node):
            for name, value in bindings(node):
                role = reader.role(name, value, found) if value is not None else None
                if role in DATA_ROLES and role is not None:
                    found[name] = role
    return found


def _names(units: Iterable[Unit], lazy: bool = False) -> set[str]:
    """The names that are used when statements are executed, or also when functions in them are called."""
    return {name for unit in units for name in (unit.eager | unit.lazy if lazy else unit.eager)}


def _and(reach: Reach, units: Iterable[Unit]) -> Reach:
    """What is reached, and further statements."""
    return replace(reach, units=reach.units | {unit.index for unit in units})


def _found_names(
    components: Sequence[Component], defined: Mapping[str, tuple[Place, str]], near: Sequence[NearName]
) -> dict[str, str]:
    """Graded name -> the name under which the source has it."""
    other = {item.expected: item.found for item in near}
    return {
        component.name: other.get(component.name, component.name)
        for component in components
        if component.name in defined or component.name in other
    }


def _measuring(components: Sequence[Component], stated: ProgramRoles) -> list[str]:
    """The graded functions that measure: the one that is stated, else any may."""
    if stated.evaluator:
        return [stated.evaluator]
    return [component.name for component in components if component.kind == "function"]


def _last(names: Sequence[str]) -> str | None:
    """The model is the last of the graded classes: the others are its parts."""
    return names[-1] if names else None


def _unresolved(reaches: Mapping[str, Reach]) -> tuple[tuple[str, str], ...]:
    return tuple((graded, name) for graded, reach in reaches.items() for name in sorted(reach.missing))


def _used_roles(reaches: Mapping[str, Reach], known: Mapping[str, str]) -> dict[str, str]:
    used = {name for reach in reaches.values() for name in reach.roles}
    return {name: known[name] for name in sorted(used)}


def _left_out(
    graph: Graph, kept: Mapping[int, str], recipe: Recipe, script: Script, trains: bool
) -> list[Omission]:
    """What is executed neither on loading nor for training."""
    lifted = {statement.place for statement in (*recipe.all_statements, *script.statements)}
    found = omissions(graph, kept, trains=trains)
    return [omission for omission in found if omission.place not in lifted]


def _ordered(found: Iterable[Omission], read: Source) -> tuple[Omission, ...]:
    """Omissions in the order of the source."""
    order = {file: index for index, file in enumerate(read.text)}
    return tuple(sorted(found, key=lambda item: (order.get(item.place.file, 0), item.place.line)))
