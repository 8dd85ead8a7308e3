"""The student's own loop over epochs as statements to execute: with what it needs and what follows it."""

import ast
import re
from collections.abc import Collection, Iterator, Sequence

from grader.analysis.blocks import LOOPS, blocks, leaves, replaced
from grader.analysis.effects import Effect, Effects
from grader.analysis.flow import Flow, Flows
from grader.analysis.lifting import Lifting, Phase
from grader.analysis.loops import EpochLoop
from grader.analysis.source import Cell
from grader.analysis.units import Unit, aligned, reread, segment, statements_within, unit
from grader.domain.errors import Interruption
from grader.domain.program import Replay, Statement
from grader.domain.quoting import named

# how weights are kept and restored: the worker lets it happen in memory
RESTORING = frozenset({"torch.save", "torch.load", ".load_state_dict", ".state_dict"})
OUTWARD = Effect.SHELL | Effect.NETWORK | Effect.INPUT | Effect.ENDS | Effect.PLOT
DECIDES = re.compile(r"best|stop|patien|plateau", re.IGNORECASE)
MOST_MISSING = 20  # names that nothing defines, whose statements are taken out


class NoReplay(Interruption):
    """The loop cannot be executed; the message says why, as a clause."""


class Replaying:
    """Makes the replay of one program."""

    def __init__(
        self,
        flows: Flows,
        effects: Effects,
        lifting: Lifting,
        kept: Collection[int],
        roles: dict[str, str],
    ) -> None:
        """What the loop is read with.

        Args:
            flows: The program's flows.
            effects: The program's effects.
            lifting: Takes in what the loop needs.
            kept: `id` of the nodes of statements that are executed on loading.
            roles: Names of data -> role.
        """
        self._flows = flows
        self._effects = effects
        self._lifting = lifting
        self._kept = kept
        self._roles = roles

    def replay(self, loop: EpochLoop, flow: Flow, model: str) -> Replay:
        """The replay of a loop.

        Args:
            loop: The loop over epochs.
            flow: What was executed before it.
            model: The model's variable.

        Raises:
            NoReplay: It cannot be executed.
        """
        cell = loop.unit.cell
        step = self._pruned(reread(segment(loop.node, cell.lines), loop.node.lineno, cell), strict=True)
        for _ in range(MOST_MISSING):
            missing = self._missing(step, flow)
            if missing is None:
                break
            step = self._without_name(step, missing)
        else:
            raise NoReplay("it needs too much that is not executed on loading")
        before = [item for item in self._preparing(flow, model) if self._missing(item, flow) is None]
        after = []
        for item in self._following(loop):
            pruned = self._pruned(item)
            self._missing(pruned, flow)
            after.append(pruned)
        return Replay(
            before=tuple(map(_statement, before)),
            loop=_statement(step),
            after=tuple(map(_statement, after)),
            validates=self._validates(step, flow),
            may_stop=any(isinstance(node, ast.Break | ast.While | ast.Raise) for node in ast.walk(step.node)),
        )

    def _missing(self, step: Unit, flow: Flow) -> str | None:
        """Takes in what a statement needs; the name that cannot be had."""
        used = step.references.names(eager=True) | step.references.names(eager=False)
        own = used & step.binds
        for name in sorted(own & flow.bound.keys()):  # where it begins: `best = 0.0`
            self._lifting.missing_name([name], flow, Phase.LOOP, self._kept)
        return self._lifting.missing_name(used - own, flow, Phase.LOOP, self._kept)

    def _pruned(self, step: Unit, *, strict: bool = False) -> Unit:
        """A statement without what reaches outward.

        Raises:
            NoReplay: It returns from within an inner loop, if that matters (`strict`).
        """
        step = aligned(step)
        changes: list[tuple[ast.stmt, str]] = []
        for leaf in leaves(step.node, loops=True):
            if isinstance(leaf, ast.Return):
                if strict and _in_inner_loop(step.node, leaf):
                    raise NoReplay("it returns from within a loop over batches")
                changes.append((leaf, "break" if strict else "pass"))
            elif self._is_out(leaf, step.cell):
                changes.append((leaf, "pass"))
        return reread(replaced(step.text, step.line, changes), step.line, step.cell) if changes else step

    def _is_out(self, leaf: ast.stmt, cell: Cell) -> bool:
        used = unit(leaf, cell, "", {}, 0).references.used
        if self._effects.direct(used, but=RESTORING) & (OUTWARD | Effect.FILES):
            return True
        through = self._effects.of(used) & ~self._effects.direct(used)
        return bool(through & OUTWARD) and not through & Effect.TRAIN

    def _without_name(self, step: Unit, name: str) -> Unit:
        """A loop without the calls that need a name which nothing defines: `writer.add_scalar(...)`.

        Raises:
            NoReplay: Something else needs it.
        """
        step = aligned(step)
        changes = []
        for leaf in leaves(step.node, loops=True):
            used = unit(leaf, step.cell, "", {}, 0).references
            if isinstance(leaf, ast.Expr) and name in used.names(eager=True) | used.names(eager=False):
                changes.append((leaf, "pass"))
        if not changes:
            raise NoReplay(f"it needs {named(name)}, which is not executed on loading")
        return reread(replaced(step.text, step.line, changes), step.line, step.cell)

    def _preparing(self, flow: Flow, model: str) -> Iterator[Unit]:
        """What changes the model between its making and the loop: `model.apply(init_weights)`."""
        places = flow.bound.get(model, [])
        for step in flow.steps[max(places, default=len(flow.steps)) + 1 :]:
            if not isinstance(step.node, ast.Expr | ast.For | ast.If | ast.AugAssign | ast.Assign | ast.With):
                continue
            binds_more = isinstance(step.node, ast.Assign) and step.binds
            effects = self._effects.of(step.references.used)
            outward = OUTWARD | Effect.FILES | Effect.TRAIN | Effect.DATA | Effect.MODEL | Effect.PRINT
            if model in step.eager and not binds_more and not effects & outward:
                yield step

    def _following(self, loop: EpochLoop) -> Iterator[Unit]:
        """What chooses, keeps or restores weights after the loop, where it stands and at top level."""
        cell = loop.unit.cell
        for node in _after(loop.unit.node, loop.node):
            if self._restores(node, cell):
                yield reread(segment(node, cell.lines), node.lineno, cell)
        for item in self._flows.units:
            if (
                item.index > loop.unit.index
                and not item.is_definition
                and self._restores(item.node, item.cell)
            ):
                yield item

    def _restores(self, node: ast.stmt, cell: Cell) -> bool:
        """Whether a statement saves or loads weights."""
        used = unit(node, cell, "", {}, 0).references.used
        whole = self._effects.direct(used)
        return bool(whole & Effect.FILES) and not self._effects.direct(used, but=RESTORING) & Effect.FILES

    def _validates(self, step: Unit, flow: Flow) -> bool:
        tests = {name for name, role in self._roles.items() if role == "test_loader"}
        looks = bool(tests & (step.references.names(eager=True) | step.references.names(eager=False)))
        decides = any(isinstance(node, ast.If | ast.Break | ast.IfExp) for node in ast.walk(step.node))
        told = " ".join(
            [step.text, *(ast.unparse(value) for name, value, _ in flow.values if "sched" in name)]
        )
        return looks and (decides or DECIDES.search(told) is not None)


def _after(outer: ast.stmt, inner: ast.stmt) -> list[ast.stmt]:
    """The statements that follow one within another, at every level."""
    opened: Sequence[list[ast.stmt]] = blocks(outer)
    if isinstance(outer, ast.FunctionDef):
        opened = [outer.body]
    for block in opened:
        for index, node in enumerate(block):
            if node is inner or any(each is inner for each in statements_within(node)):
                return [*(_after(node, inner) if node is not inner else []), *block[index + 1 :]]
    return []


def _in_inner_loop(outer: ast.stmt, leaf: ast.stmt) -> bool:
    inner = [node for node in statements_within(outer) if isinstance(node, LOOPS) and node is not outer]
    return any(each is leaf for node in inner for each in statements_within(node))


def _statement(step: Unit) -> Statement:
    return Statement(step.text, step.place, tuple(sorted(step.binds)), "needed")
