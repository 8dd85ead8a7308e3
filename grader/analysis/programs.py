"""The program of a submission: what is executed, left out and pointed out, from all analyses together.

This module decides which name in the source stands for a graded name, even if it is misspelled. It also
decides which class is the model: the stated one, else the last graded class. It computes where the code of
training is, so that forbidden parts in it have a place. It executes nothing and gives no points: the notes
that it collects go to people, and `grader.scoring` decides.

Tests: tests/analysis/test_loading_statements.py, tests/analysis/test_prying.py,
tests/analysis/test_recipe.py
"""

import ast
import contextlib
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from grader.analysis.bare_text import BareTexts
from grader.analysis.effects import Aliases, Effects
from grader.analysis.flow import Flows
from grader.analysis.forbidden_uses import forbidden_uses, suspicions
from grader.analysis.randomness import state_reads
from grader.analysis.recognized_roles import RoleReader, bindings, roles
from grader.analysis.script.script_inputs import ScriptInputs
from grader.analysis.script.training_script import ScriptReader
from grader.analysis.slicing import Graph, Reach, omissions, pruned, statements
from grader.analysis.source import TOO_DEEP, Source, source
from grader.analysis.stated_values import claim_in_outputs, epochs_in_outputs, tuned
from grader.analysis.suspicious_code import written_data
from grader.analysis.syntax_trees import DEFINITIONS, depth, statements_within, walk
from grader.analysis.training_recipe import DATA_ROLES, Reading, Sources, ingredients, reading
from grader.analysis.units import Cell, Unit, further_units, text_constants, units, used_names
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
from grader.domain.errors import EngineError, SubmissionError
from grader.domain.measure import ProgramRoles

FURTHEST = 2


def definitions(units: Sequence[Unit]) -> dict[str, tuple[Place, str]]:
    """Top-level name -> where it is bound last, and its kind: `class`, `function` or `value`."""
    places: dict[str, tuple[Place, str]] = {}
    for unit in units:
        kinds = {
            node.name: ("class" if isinstance(node, ast.ClassDef) else "function", node.lineno)
            for node in walk(unit.node)
            if isinstance(node, DEFINITIONS) and node.name in unit.binds
        }
        for name in unit.binds:
            kind, line = kinds.get(name, ("value", unit.line))
            places[name] = (unit.cell.place(line), kind)
    return places


def near_names(
    components: Sequence[Component], defined: Mapping[str, tuple[Place, str]]
) -> tuple[NearName, ...]:
    """For every graded name that is missing, the defined name that is nearly the same, if there is one.

    Nearly the same: it differs only in case and underscores, or by at most two letters (one in short names).
    """
    expected = {component.name for component in components}
    used_names: set[str] = set()
    pairs: list[tuple[int, int, str, str]] = []
    for order, component in enumerate(components):
        if component.name in defined:
            continue
        for name, (_, kind) in defined.items():
            if kind == component.kind and name not in expected:
                apart = distance(_squeezed(component.name), _squeezed(name))
                if apart <= min(FURTHEST, len(component.name) // 3):
                    pairs.append((apart, order, component.name, name))
    near_by_expected: dict[str, NearName] = {}
    for _, _, expected_name, name in sorted(pairs):
        if expected_name not in near_by_expected and name not in used_names:
            used_names.add(name)
            near_by_expected[expected_name] = NearName(expected_name, name, defined[name][0])
    return tuple(near_by_expected[c.name] for c in components if c.name in near_by_expected)


def _squeezed(name: str) -> str:
    return name.replace("_", "").lower()


def distance(word: str, other: str) -> int:
    """How many letters must be added, dropped or changed (Levenshtein), counted up to `FURTHEST + 1`."""
    if abs(len(word) - len(other)) > FURTHEST:
        return FURTHEST + 1
    previous = list(range(len(other) + 1))
    for row, letter in enumerate(word, start=1):
        current = [row]
        for column, other_letter in enumerate(other, start=1):
            change = previous[column - 1] + (letter != other_letter)
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
    bound_nodes = [part[1] for part in (parts.model, parts.optimizer, parts.scheduler) if part]
    data_nodes = [
        part.node
        for part in (parts.train_transform, parts.test_transform, parts.batch_size, parts.collate)
        if part
    ]
    for node in (*bound_nodes, *data_nodes, *([parts.epochs] if parts.epochs is not None else [])):
        yield ast.copy_location(ast.Expr(node), node), _cell_of(node, cells)


def _parsed(statement: Statement, cell: Cell) -> Iterator[tuple[ast.stmt, Cell]]:
    """The statement, with the line numbers that it has in its cell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(statement.source)
    ast.increment_lineno(tree, statement.place.line - 1)
    for node in tree.body:
        yield node, cell


def _cell_of(node: ast.expr, cells: Sequence[Cell]) -> Cell:
    """The cell that contains an expression; the first cell if we put the expression together."""
    place = node.lineno, node.col_offset, ast.dump(node)
    for cell in cells:
        for statement in cell.tree.body:
            if not statement.lineno <= node.lineno <= (statement.end_lineno or 0):
                continue
            for inner in walk(statement):
                if not isinstance(inner, ast.expr) or (inner.lineno, inner.col_offset) != place[:2]:
                    continue
                if ast.dump(inner) == place[2]:
                    return cell
    return cells[0]


# --- programs --------------------------------------------------------------------------------------------


# Python 3.11 counts the depth of trees for all threads together: a thread that parses while another one
# does may get a "recursion depth mismatch"
_ONE_AT_A_TIME = threading.Lock()
_USUAL_DEPTH = 60  # of a syntax tree; code that people write reaches some twenty


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
        rules: The rules by which it is read.
        modules: Python files beside it: name, with the folders before it -> content.
        executed: The data are what a kernel executed: see `executed_notebook`.

    Raises:
        SubmissionError: The file cannot be read as a script or a notebook; the sentence says where and why.
        EngineError: The analysis has a defect.
    """
    name = path_name.replace("\\", "/").rsplit("/", 1)[-1]
    try:
        with _ONE_AT_A_TIME:
            submitted = source(name, data, modules, given=rules.modules, executed=executed)
            with _circles_are_ours(name, submitted):
                return _together(
                    _analyzed(submitted, rules),
                    {
                        measure: _analyzed(submitted, further_rules)
                        for measure, further_rules in rules.further.items()
                    },
                )
    except (RecursionError, MemoryError) as error:
        raise SubmissionError(f"{name}: {TOO_DEEP}") from error


@contextlib.contextmanager
def _circles_are_ours(name: str, submitted: Source) -> Iterator[None]:
    """What recurses for ever over code that is nested like any other is a defect of the analysis.

    Raises:
        EngineError: In place of such a RecursionError.
    """
    try:
        yield
    except RecursionError as error:
        if max(depth(cell.tree) for cell in submitted.cells) > _USUAL_DEPTH:
            raise
        raise EngineError(f"{name}: its analysis went in circles.") from error


def _together(main: Program, further: Mapping[str, Program]) -> Program:
    """A program with its versions for further models; people are shown each note once."""
    if not further:
        return main
    versions = (main, *further.values())
    left_out = set.intersection(*({omission.place for omission in version.omissions} for version in versions))
    return replace(
        _measured_apart(main, versions),
        omissions=tuple(omission for omission in main.omissions if omission.place in left_out),
        forbidden=tuple(dict.fromkeys(use for version in versions for use in version.forbidden)),
        notes=tuple(dict.fromkeys(note for version in versions for note in version.notes)),
        further={
            measure: replace(_measured_apart(version, versions), source=None)
            for measure, version in further.items()
        },
    )


def _measured_apart(this: Program, versions: Sequence[Program]) -> Program:
    """A program that leaves alone only what trains none of the measured models."""
    trained = {
        statement.place for other in versions if other is not this for statement in other.script.statements
    }
    left_alone = tuple(omission for omission in this.script.left_alone if omission.place not in trained)
    return replace(this, script=replace(this.script, left_alone=left_alone))


def _analyzed(submitted: Source, rules: ProgramRules) -> Program:
    """The program of a source that could be read."""
    components, forbidden, stated = rules.components, rules.forbidden, rules.roles
    strings = text_constants(submitted.cells)
    all_units = units(submitted.cells, strings)
    defined = definitions(all_units)
    near = near_names(components, defined)
    names = _names_in_source(components, defined, near)  # graded name -> the name in the source
    aliases = Aliases(all_units)
    kinds = {names[c.name]: c.kind for c in components if c.name in names}
    effects = Effects(
        all_units, aliases, kinds, provided=rules.provided, cached=rules.cached, strings=strings
    )
    cut, taken_out = pruned(all_units, effects, aliases, trains=rules.trains)
    classes = [c.name for c in components if c.kind == "class" and c.name in names]
    model_class = names.get(stated.model) or _last([names[name] for name in classes])
    trainer = next((names[name] for name in trainers(components, stated) if name in names), None)
    reader = RoleReader(aliases, cut, model_class)
    known_roles = roles(cut, effects, reader)
    graph = Graph(cut, effects, kinds, known_roles)
    reaches = {graded: graph.reach([source_name]) for graded, source_name in names.items()}
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
        ScriptInputs(
            units=all_units,
            aliases=aliases,
            effects=effects,
            reader=reader,
            kinds=kinds,
            trainer=trainer,
            evaluators=tuple(names[name] for name in _measuring(components, stated) if name in names),
            final=stated.final,
            model_class=model_class,
            data={name: role for name, role in known_roles.items() if role in DATA_ROLES}
            | _all_data(all_units, effects, reader),
            top_data={name: role for name, role in known_roles.items() if role in DATA_ROLES},
            checkpoint=rules.checkpoint,
            file_stem=rules.file_stem,
        )
    )
    script = reading_of_script.script()
    aside = {statement.place for statement in script.left_alone}  # what it calls, it calls for another model
    focused = replace(sources, flows=Flows(cut, effects, kept, aside))
    parts = ingredients(focused, [loop.place for loop in script.loops])
    if (built := reading_of_script.built) is not None:
        before = sources.flows.before(built.statement, built.function)
        # what a training decides nobody knows before it
        parts = replace(parts, model=None if built.chosen else (built.name, built.expression, before))
    recipe = reading(sources, parts, reading_of_script.loading())
    deep = {
        graded: graph.reach([names[graded]], executed=False, stop_at_roles=kinds[names[graded]] == "function")
        for graded in names
    }
    trained = further_units(
        submitted.cells, strings, training_code(submitted.cells, recipe, script), len(all_units)
    )
    every_alias = Aliases((*all_units, *trained))
    deep[TRAINING] = _with_units(graph.reach(used_names(trained, lazy=True), executed=False), trained)
    uses = forbidden_uses((*all_units, *trained), every_alias, forbidden, deep)
    used_by_names = dict(deep)
    deep[LOADING] = graph.reach(used_names([cut[index] for index in kept]))
    bare = BareTexts()
    result = Program(
        file=submitted.file,
        statements=bare.statements(loaded),
        defined={graded: defined[source_name][0] for graded, source_name in names.items()},
        near_names=near,
        omissions=_ordered(
            [*submitted.omissions, *taken_out, *_left_out(graph, kept, recipe.recipe, script, rules.trains)],
            submitted,
        ),
        unresolved=_unresolved(reaches),
        roles=_used_roles(reaches, known_roles) | recipe.roles,
        forbidden=uses,
        tuned=tuned(parts, cut, sources.flows.functions),
        recipe=bare.recipe(recipe.recipe),
        script=replace(script, statements=bare.statements(script.statements)),
        claim=claim_in_outputs(submitted.printed),
        shown_epochs=epochs_in_outputs(submitted.printed),
        notes=(
            *map(Note, (*submitted.notes, *recipe.notes)),
            *suspicions(all_units, trained, every_alias, forbidden, deep, kept, rules.cached),
            *state_reads(all_units, aliases, used_by_names, graph, recipe.recipe, script),
        ),
        source=submitted.text,
        modules=submitted.modules,
    )
    return replace(result, notes=(*result.notes, *written_data(result)))


def _all_data(units: Sequence[Unit], effects: Effects, reader: RoleReader) -> dict[str, str]:
    """Names of data, within functions too -> role."""
    data_roles: dict[str, str] = {}
    for unit in units:
        if isinstance(unit.node, ast.ClassDef):
            continue
        for node in statements_within(unit.node):
            for name, value in bindings(node):
                role = reader.role(name, value, data_roles) if value is not None else None
                if role in DATA_ROLES and role is not None:
                    data_roles[name] = role
    return data_roles


def _with_units(reach: Reach, units: Iterable[Unit]) -> Reach:
    """What is reached, extended by further statements."""
    return replace(reach, units=reach.units | {unit.index for unit in units})


def _names_in_source(
    components: Sequence[Component], defined: Mapping[str, tuple[Place, str]], near: Sequence[NearName]
) -> dict[str, str]:
    """Graded name -> the name under which the source has it."""
    misspelled = {item.expected: item.found for item in near}
    return {
        component.name: misspelled.get(component.name, component.name)
        for component in components
        if component.name in defined or component.name in misspelled
    }


def _measuring(components: Sequence[Component], stated: ProgramRoles) -> list[str]:
    """The graded functions that may measure: the stated one, else all."""
    if stated.evaluator:
        return [stated.evaluator]
    return [component.name for component in components if component.kind == "function"]


def _last(names: Sequence[str]) -> str | None:
    """The last of the names: the model is the last graded class, and the others are its parts."""
    return names[-1] if names else None


def _unresolved(reaches: Mapping[str, Reach]) -> tuple[tuple[str, str], ...]:
    return tuple((graded, name) for graded, reach in reaches.items() for name in sorted(reach.missing))


def _used_roles(reaches: Mapping[str, Reach], roles_by_name: Mapping[str, str]) -> dict[str, str]:
    names = {name for reach in reaches.values() for name in reach.roles}
    return {name: roles_by_name[name] for name in sorted(names)}


def _left_out(
    graph: Graph, kept: Mapping[int, str], recipe: Recipe, script: Script, trains: bool
) -> list[Omission]:
    """What is executed neither on loading nor for training."""
    lifted = {statement.place for statement in (*recipe.all_statements, *script.statements)}
    left_out = omissions(graph, kept, trains=trains)
    return [omission for omission in left_out if omission.place not in lifted]


def _ordered(unordered: Iterable[Omission], submitted: Source) -> tuple[Omission, ...]:
    """Omissions in the order of the source."""
    order = {file: index for index, file in enumerate(submitted.text)}
    return tuple(sorted(unordered, key=lambda item: (order.get(item.place.file, 0), item.place.line)))
