"""Forbidden parts: which of them the source uses, what reaches them, and which were used at run time.

Uses are recognized by dotted names, through aliases, star imports and strings put together from pieces. A
name computed at run time does not show in the source: `suspicious_code` points that out, and
`grader.worker.forbidden_watch` sees the use. A use at run time is dropped if the same part is known with
the same consequence, or if it happened inside a part that already costs these points.
`grader.scoring.rubric_lines` decides what a use costs.

Tests: tests/analysis/test_forbidden_parts.py, tests/analysis/test_prying.py,
tests/analysis/test_run_time.py, tests/attacks/test_hidden_parts_cost.py
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from grader.analysis.effects import Aliases
from grader.analysis.reflection import any_of, homes
from grader.analysis.slicing import Reach
from grader.analysis.suspicious_code import Prying
from grader.analysis.units import Unit
from grader.domain.analyzed_program import LOADING, TRAINING, ForbiddenUse, Note, Place, Program
from grader.domain.assignment import Assignment
from grader.domain.assignment_rules import ForbiddenRule
from grader.domain.program_run import ReachedPart

VISION = "torchvision.models"
VISION_HOMES = {
    "vit": "vision_transformer",
    "visiontransformer": "vision_transformer",
    "swin": "swin_transformer",
}
# PyTorch's own functions, wherever they are defined, and the forbidden parts that they implement
INSIDES = {
    "*scaled_dot_product*": "torch.nn.functional.scaled_dot_product_attention",
    "_sfdp_*": "torch.nn.functional.scaled_dot_product_attention",
    "_native_multi_head*": "torch.nn.MultiheadAttention",
    "_triton_multi_head*": "torch.nn.MultiheadAttention",
    "_transformer_encoder*": "torch.nn.TransformerEncoderLayer",
}
_may_be_inside = any_of(f"*.{pattern}{rest}" for pattern in INSIDES for rest in ("", ".*"))
DISTINCTIVE = 10  # letters
WILD = frozenset("*?[")


@dataclass(frozen=True)
class _Use:
    """A dotted name that is used or imported in a statement.

    Attributes:
        via: The name that an import binds it to: it is reached only if that name is. Empty: it is reached if
            the statement is.
    """

    dotted: str
    place: Place
    unit: int
    via: str = ""


@lru_cache(maxsize=4096)
def equivalents(dotted: str) -> tuple[str, ...]:
    """A dotted name and the other homes of the same object in torch and torchvision.

    `torch.nn.modules.activation.MultiheadAttention` is `torch.nn.MultiheadAttention`;
    `torchvision.models.vit_b_16` lives in `torchvision.models.vision_transformer`.
    """
    equivalent_names = dict.fromkeys(name for home in homes(dotted) for name in _homes_in_torch(home))
    return tuple(equivalent_names)


def _homes_in_torch(dotted: str) -> Iterable[str]:
    """The homes of an object in torch and torchvision."""
    yield dotted
    parts = dotted.split(".")
    if parts[:3] == ["torch", "nn", "modules"] and len(parts) > 3:
        yield ".".join(["torch", "nn", *parts[3:]])
        if len(parts) > 4:
            yield ".".join(["torch", "nn", *parts[4:]])
    if dotted.startswith(VISION + ".") and len(parts) > 2:
        if parts[2] in VISION_HOMES.values() and len(parts) > 3:
            yield ".".join([VISION, *parts[3:]])
        for start, home in VISION_HOMES.items():
            if parts[2].lower().startswith(start):
                yield ".".join([VISION, home, *parts[2:]])
    if dotted.startswith("torch._C._nn."):
        yield "torch.nn.functional." + dotted.removeprefix("torch._C._nn.")
    if parts[0] == "torch" and _may_be_inside(dotted):
        yield from (
            inside for pattern, inside in INSIDES.items() if any(fnmatchcase(part, pattern) for part in parts)
        )


@lru_cache(maxsize=16384)
def matches(dotted: str, pattern: str) -> bool:
    """Whether a dotted name falls under a rule's pattern, which also covers everything inside it.

    A name that is specific enough to have one meaning counts anywhere in its library:
    `torch.ao.nn.quantizable.MultiheadAttention`.
    """
    library, distinctive_part = pattern.partition(".")[0] + ".", _distinctive_part(pattern)
    return any(
        _is_named(name, pattern)
        or (distinctive_part and name.startswith(library) and _has_part(name, distinctive_part))
        for name in equivalents(dotted)
    )


def _is_named(name: str, pattern: str) -> bool:
    """Whether a pattern names a dotted name or something around it; most have a `*` at the end, or none."""
    start = pattern.rstrip("*")
    if not WILD & set(start):
        return name.startswith(start) and (start != pattern or name[len(start) :][:1] in ("", "."))
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern + ".*")


@lru_cache(maxsize=256)
def _distinctive_part(pattern: str) -> str:
    """The last part of a pattern if it has only one meaning: it is long and consists of several words."""
    last_part = pattern.rpartition(".")[2]
    letters = last_part.replace("_", "").rstrip("*")
    return last_part if len(last_part) > DISTINCTIVE and letters.isalnum() and not last_part.islower() else ""


def _has_part(dotted: str, wanted_part: str) -> bool:
    parts = dotted.split(".")
    if wanted_part.endswith("*"):
        return any(part.startswith(wanted_part[:-1]) for part in parts)
    return wanted_part in parts


def forbidden_uses(
    units: Sequence[Unit],
    aliases: Aliases,
    rules: Sequence[ForbiddenRule],
    reaches: Mapping[str, Reach],
) -> tuple[ForbiddenUse, ...]:
    """The forbidden parts that the program uses or imports, in the order of the source.

    Args:
        units: The whole program.
        aliases: The same program's.
        rules: What is forbidden.
        reaches: Graded name, or TRAINING -> what it depends on.
    """
    uses: dict[tuple[str, str, Place], ForbiddenUse] = {}
    by_name: dict[str, tuple[ForbiddenRule, ...]] = {}
    for use in _uses(units, aliases, reaches):
        if use.dotted not in by_name:
            by_name[use.dotted] = _first_of_each_cost(rules, use.dotted)
        for rule in by_name[use.dotted]:
            reached = tuple(name for name, reach in reaches.items() if _is_reached(use, reach))
            key = (rule.pattern, use.dotted, use.place)
            earlier = uses[key].reached_from if key in uses else ()
            joined = tuple(name for name in reaches if name in reached or name in earlier)
            graded = tuple(name for name in joined if name != TRAINING)
            uses[key] = ForbiddenUse(rule.pattern, use.dotted, use.place, graded or joined)
    return _without_prefixes(uses.values())


def _first_of_each_cost(rules: Sequence[ForbiddenRule], dotted: str) -> tuple[ForbiddenRule, ...]:
    """The rules that a name falls under; only the first of those with the same consequence."""
    first_rules: dict[tuple[str, str], ForbiddenRule] = {}
    for rule in rules:
        if matches(dotted, rule.pattern):
            first_rules.setdefault((rule.costs, rule.policy), rule)
    return tuple(first_rules.values())


def _is_reached(use: _Use, reach: Reach) -> bool:
    return use.via in reach.names if use.via else use.unit in reach.units


def _uses(units: Sequence[Unit], aliases: Aliases, reaches: Mapping[str, Reach]) -> Iterable[_Use]:
    stars = [
        (unit, imported.target.removesuffix(".*"), imported.line)
        for unit in units
        for imported in unit.references.imported
        if imported.name == "*"
    ]
    bound = {name for unit in units for name in unit.binds}
    for unit in units:
        for imported in unit.references.imported:
            if imported.name != "*":
                via = imported.name or "*"  # no name is `*`: loading a part is not a use of it
                yield _Use(imported.target, unit.cell.place(imported.line), unit.index, via)
        for reference in unit.references.used:
            for dotted in aliases.dotted(reference, imported_only=True):
                yield _Use(dotted, unit.cell.place(reference.line), unit.index)
            root = reference.path[0]
            if root and not reference.absolute and root not in bound:
                for _, module, _ in stars:
                    name = f"{module}.{'.'.join(reference.path)}"
                    if len(stars) == 1 or module.startswith("torch.nn"):
                        yield _Use(name, unit.cell.place(reference.line), unit.index)
    for unit, module, line in stars:
        yield _Use(module, unit.cell.place(line), unit.index, via="*")
        for reach in reaches.values():
            for name in sorted(reach.names - bound):
                yield _Use(f"{module}.{name}", unit.cell.place(line), unit.index, via=name)


def _without_prefixes(uses: Iterable[ForbiddenUse]) -> tuple[ForbiddenUse, ...]:
    """One use per place and rule: the one with the longest name, which includes the shorter ones."""
    best: dict[tuple[str, Place], ForbiddenUse] = {}
    for use in uses:
        key = (use.rule, use.place)
        if key not in best or (bool(use.reached_from), len(use.name)) > (
            bool(best[key].reached_from),
            len(best[key].name),
        ):
            best[key] = use
    return tuple(best.values())


def suspicions(
    units: Sequence[Unit],
    trained: Sequence[Unit],
    aliases: Aliases,
    rules: Sequence[ForbiddenRule],
    reaches: Mapping[str, Reach],
    loaded: Collection[int],
    cached: Collection[str] = (),
) -> list[Note]:
    """Notes about code that a person should look at because it pries.

    Args:
        units: The whole program.
        trained: The parts of it that training executes, as units of their own.
        aliases: The same program's.
        rules: What is forbidden.
        reaches: Graded names, TRAINING and LOADING -> what they depend on.
        loaded: The statements that are executed on loading.
        cached: The names of files that libraries find without downloading them.
    """
    return Prying((*units, *trained), aliases, rules, cached).notes(reaches, loaded)


# --- run time --------------------------------------------------------------------------------------------


def run_time_uses(
    assignment: Assignment,
    program: Program,
    shown: Sequence[ForbiddenUse],
    reached: Iterable[ReachedPart],
) -> tuple[ForbiddenUse, ...]:
    """Forbidden parts that were used at run time although they are not shown.

    A use is left out in two cases. The same part is shown, reached and has the same consequence. Or the code
    of another part used it, and that part already costs these points.

    Args:
        shown: The uses that are known, from the source or an earlier stage.
        reached: What was used at run time.
    """
    uses: dict[tuple[str, str, str], ForbiddenUse] = {}
    stages: dict[tuple[str, str, str], list[str]] = {}
    for part in reached:
        for rule in _rules_of(assignment, part.patterns):
            if part.inside and _is_paid(assignment, rule, part.within):
                continue
            if not part.inside and _is_shown(assignment, shown, rule, part):
                continue
            key = (rule.pattern, part.name, part.inside)
            stages.setdefault(key, []).append("the model" if part.stage in (LOADING, "") else part.stage)
            place = part.place or _place(program, part.stage)
            uses.setdefault(key, ForbiddenUse(rule.pattern, part.name, place, (), part.inside))
    return tuple(_with_stages(uses, stages))


def _with_stages(
    uses: dict[tuple[str, str, str], ForbiddenUse], stages: dict[tuple[str, str, str], list[str]]
) -> Iterator[ForbiddenUse]:
    for key, use in uses.items():
        graded = [stage for stage in stages[key] if stage != TRAINING]
        reached_from = tuple(dict.fromkeys(graded)) or (TRAINING,)
        yield ForbiddenUse(use.rule, use.name, use.place, reached_from, use.inside)


def _rules_of(assignment: Assignment, patterns: Sequence[str]) -> Iterator[ForbiddenRule]:
    """The rules of patterns; only the first of those with the same consequence."""
    consequences: set[tuple[str, str]] = set()
    for rule in assignment.forbidden:
        if rule.pattern in patterns and (rule.costs, rule.policy) not in consequences:
            consequences.add((rule.costs, rule.policy))
            yield rule


def _is_paid(assignment: Assignment, rule: ForbiddenRule, within: Sequence[str]) -> bool:
    """Whether a part around this one already costs what this one would cost."""
    item = assignment.item_of(rule.costs)
    targets = {rule.costs, item.id if item is not None else rule.costs}
    return any(
        around.policy == "forbid" and around.costs in targets
        for around in assignment.forbidden
        if around.pattern in within
    )


def _is_shown(
    assignment: Assignment, shown: Sequence[ForbiddenUse], rule: ForbiddenRule, part: ReachedPart
) -> bool:
    """Whether this part is known to be used with this consequence."""
    consequences = {
        forbidden_rule.pattern: (forbidden_rule.costs, forbidden_rule.policy)
        for forbidden_rule in assignment.forbidden
    }
    names = equivalents(part.name)
    return any(
        consequences.get(use.rule) == (rule.costs, rule.policy)
        and any(_is_within(shown_name, name) for shown_name in equivalents(use.name) for name in names)
        for use in shown
        # what only the training uses costs something else
        if use.reached_from and not use.inside and (not use.in_training or part.stage == TRAINING)
    )


def _is_within(shown_name: str, name: str) -> bool:
    """Whether a shown name is that of a part, or of something in it."""
    return shown_name == name or shown_name.startswith(f"{name}.")


def _place(program: Program, stage: str) -> Place:
    """Where a component is defined; the file's beginning if it is not."""
    return (program.defined or {}).get(stage, Place(program.file, 1))
