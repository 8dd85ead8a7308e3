"""The program of a submission: what is executed, left out and pointed out, from all analyses together.

It hands what one analysis found to the next, in one order, and computes where the code of training is, so
that forbidden parts in it have a place. `graded_names` decides which name stands for a graded one. It
executes nothing and gives no points: the notes that it collects go to people, and `grader.scoring` decides.

Tests: tests/analysis/test_loading_statements.py, tests/analysis/test_prying.py,
tests/analysis/test_recipe.py
"""

import ast
import contextlib
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from grader.analysis.bare_text import BareTexts
from grader.analysis.effects import Aliases, Effects
from grader.analysis.flow import Flows
from grader.analysis.forbidden_uses import forbidden_uses, suspicions
from grader.analysis.graded_names import GradedNames, graded_names
from grader.analysis.randomness import state_reads
from grader.analysis.recognized_roles import RoleReader, bindings, roles
from grader.analysis.script.script_inputs import ScriptInputs
from grader.analysis.script.training_script import ScriptReader
from grader.analysis.slicing import Graph, Reach, omissions, pruned, statements
from grader.analysis.source import TOO_DEEP, Source, source
from grader.analysis.stated_values import claim_in_outputs, epochs_in_outputs, tuned
from grader.analysis.suspicious_code import written_data
from grader.analysis.syntax_trees import depth, statements_within, walk
from grader.analysis.training_recipe import DATA_ROLES, Ingredients, Reading, Sources, ingredients, reading
from grader.analysis.units import Cell, Unit, further_units, text_constants, units, used_names
from grader.domain.analyzed_program import (
    LOADING,
    TRAINING,
    Note,
    Omission,
    Program,
    Recipe,
    Script,
    Statement,
)
from grader.domain.assignment import ProgramRules
from grader.domain.errors import EngineError, SubmissionError

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
                read = _Read.of(submitted)
                return _together(
                    _analyzed(read, rules),
                    {
                        measure: _analyzed(read, further_rules)
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


@dataclass(frozen=True)
class _Read:
    """A source, and what is read from it by no rules of an assignment.

    Attributes:
        strings: Its text constants.
    """

    submitted: Source
    strings: Mapping[str, str]
    units: tuple[Unit, ...]
    aliases: Aliases

    @classmethod
    def of(cls, submitted: Source) -> Self:
        """What a source holds."""
        strings = text_constants(submitted.cells)
        found = units(submitted.cells, strings)
        return cls(submitted, strings, found, Aliases(found))


def _analyzed(read: _Read, rules: ProgramRules) -> Program:
    """The program of a source that could be read."""
    submitted, strings, all_units, aliases = read.submitted, read.strings, read.units, read.aliases
    names = graded_names(all_units, rules)
    effects = Effects(
        all_units, aliases, names.kinds, provided=rules.provided, cached=rules.cached, strings=strings
    )
    cut, taken_out = pruned(all_units, effects, aliases, trains=rules.trains)
    reader = RoleReader(aliases, cut, names.model)
    known_roles = roles(cut, effects, reader)
    graph = Graph(cut, effects, names.kinds, known_roles)
    reaches = {graded: graph.reach([source_name]) for graded, source_name in names.found.items()}
    kept = graph.kept({index for reach in reaches.values() for index in reach.units})
    loaded = statements(cut, kept)
    scripts = ScriptReader(
        ScriptInputs(
            units=all_units,
            aliases=aliases,
            effects=effects,
            reader=reader,
            kinds=names.kinds,
            trainer=names.trainer,
            evaluators=names.evaluators,
            final=rules.roles.final,
            model_class=names.model,
            data=_of_data(known_roles) | _all_data(all_units, effects, reader),
            top_data=_of_data(known_roles),
            checkpoint=rules.checkpoint,
            file_stem=rules.file_stem,
        )
    )
    script = scripts.script()
    sources = Sources(
        flows=Flows(cut, effects, kept),
        effects=effects,
        reader=reader,
        roles=known_roles,
        trainer=names.trainer,
        graded=set(names.kinds),
        statements=loaded,
    )
    # what is left alone calls what it calls for another model
    aside = {statement.place for statement in script.left_alone}
    parts = _ingredients(replace(sources, flows=Flows(cut, effects, kept, aside)), sources, scripts, script)
    recipe = reading(sources, parts, scripts.loading())
    trained = further_units(
        submitted.cells, strings, training_code(submitted.cells, recipe, script), len(all_units)
    )
    every_unit = (*all_units, *trained)
    every_alias = Aliases(every_unit)
    used_by_names = _all_that_is_used(graph, names, trained)
    reached = {**used_by_names, LOADING: graph.reach(used_names([cut[index] for index in kept]))}
    bare = BareTexts()
    result = Program(
        file=submitted.file,
        statements=bare.statements(loaded),
        defined={graded: names.defined[source_name][0] for graded, source_name in names.found.items()},
        near_names=names.near,
        omissions=_ordered(
            [*submitted.omissions, *taken_out, *_left_out(graph, kept, recipe.recipe, script, rules.trains)],
            submitted,
        ),
        unresolved=_unresolved(reaches),
        roles=_used_roles(reaches, known_roles) | recipe.roles,
        forbidden=forbidden_uses(every_unit, every_alias, rules.forbidden, used_by_names),
        tuned=tuned(parts, cut, sources.flows.functions),
        recipe=bare.recipe(recipe.recipe),
        script=replace(script, statements=bare.statements(script.statements)),
        claim=claim_in_outputs(submitted.printed),
        shown_epochs=epochs_in_outputs(submitted.printed),
        notes=(
            *map(Note, (*submitted.notes, *recipe.notes)),
            *suspicions(all_units, trained, every_alias, rules.forbidden, reached, kept, rules.cached),
            *state_reads(all_units, aliases, used_by_names, graph, recipe.recipe, script),
        ),
        source=submitted.text,
        modules=submitted.modules,
    )
    return replace(result, notes=(*result.notes, *written_data(result)))


def _ingredients(focused: Sources, everything: Sources, scripts: ScriptReader, script: Script) -> Ingredients:
    """What a training is made of, by the statements that train the model that counts.

    Args:
        focused: What was read, without what is left alone.
        everything: What was read.
    """
    parts = ingredients(focused, [loop.place for loop in script.loops])
    built = scripts.built
    if built is None:
        return parts
    before = everything.flows.before(built.statement, built.function)
    # what a training decides nobody knows before it
    return replace(parts, model=None if built.chosen else (built.name, built.expression, before))


def _all_that_is_used(graph: Graph, names: GradedNames, trained: Sequence[Unit]) -> dict[str, Reach]:
    """Graded names and TRAINING -> what their code uses when it is called.

    Args:
        trained: The statements and expressions of the training.
    """
    used = {
        graded: graph.reach(
            [source_name], executed=False, stop_at_roles=names.kinds[source_name] == "function"
        )
        for graded, source_name in names.found.items()
    }
    used[TRAINING] = _with_units(graph.reach(used_names(trained, lazy=True), executed=False), trained)
    return used


def _of_data(known_roles: Mapping[str, str]) -> dict[str, str]:
    return {name: role for name, role in known_roles.items() if role in DATA_ROLES}


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
