"""Forbidden parts in the source: seen through aliases, star imports and names put together from pieces."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from grader.analysis.effects import Aliases
from grader.analysis.slicing import Reach
from grader.analysis.units import Unit
from grader.domain.assignment import ForbiddenRule
from grader.domain.program import LOOK, ForbiddenUse, Place

VISION = "torchvision.models"
VISION_HOMES = {
    "vit": "vision_transformer",
    "visiontransformer": "vision_transformer",
    "swin": "swin_transformer",
}
# where PyTorch's own functions can be had as well, and the forbidden parts that they are the inside of
OPERATORS = ("torch._C._VariableFunctions.", "torch._VF.", "torch.ops.aten.", "torch._C._nn.", "torch._refs.")
INSIDES = {
    "*scaled_dot_product*": "torch.nn.functional.scaled_dot_product_attention",
    "_native_multi_head*": "torch.nn.MultiheadAttention",
    "_triton_multi_head*": "torch.nn.MultiheadAttention",
    "_transformer_encoder*": "torch.nn.TransformerEncoderLayer",
}
EXECUTING = {"exec", "eval", "compile"}
# what looks into the running program instead of at its own data: no homework needs it, and a worker that is
# looked into can be made to say anything
PRYING = (
    "gc.get_*",
    "sys._getframe",
    "sys._current_frames",
    "inspect.currentframe",
    "inspect.stack",
    "ctypes*",
    # another copy of a module is not the one that is watched
    "importlib.util.*",
    "importlib.reload",
    "importlib.machinery.*",
    "runpy.*",
    "sys.modules*",
    "torch._C*",
)
PRYING_ATTRIBUTES = {"__subclasses__", "__closure__", "cell_contents", "f_back", "f_globals", "f_locals"}
DECODING = ("base64.*decode*", "codecs.decode", "zlib.decompress", "marshal.loads", "binascii.*")


@dataclass(frozen=True)
class _Use:
    """A dotted name that is used or imported in a statement.

    Attributes:
        via: The name that an import binds it to: it is reached only where that name is. Empty: it is
            reached where the statement is.
    """

    dotted: str
    place: Place
    unit: int
    via: str = ""


@lru_cache(maxsize=4096)
def equivalents(dotted: str) -> tuple[str, ...]:
    """A dotted name and the other homes of the same thing in torch and torchvision.

    `torch.nn.modules.activation.MultiheadAttention` is `torch.nn.MultiheadAttention`;
    `torchvision.models.vit_b_16` lives in `torchvision.models.vision_transformer`.
    """
    found = [dotted]
    parts = dotted.split(".")
    if parts[:3] == ["torch", "nn", "modules"] and len(parts) > 3:
        found.append(".".join(["torch", "nn", *parts[3:]]))
        if len(parts) > 4:
            found.append(".".join(["torch", "nn", *parts[4:]]))
    if dotted.startswith(VISION + ".") and len(parts) > 2:
        if parts[2] in VISION_HOMES.values() and len(parts) > 3:
            found.append(".".join([VISION, *parts[3:]]))
        for start, home in VISION_HOMES.items():
            if parts[2].lower().startswith(start):
                found.append(".".join([VISION, home, *parts[2:]]))
    if dotted.startswith("torch._C._nn."):
        found.append("torch.nn.functional." + dotted.removeprefix("torch._C._nn."))
    operator = next((dotted.removeprefix(home) for home in OPERATORS if dotted.startswith(home)), None)
    if operator is None and dotted.startswith("torch._"):
        operator = dotted.removeprefix("torch.")
    if operator is not None:
        found += [
            inside for pattern, inside in INSIDES.items() if fnmatchcase(operator.split(".")[0], pattern)
        ]
    return tuple(found)


def matches(dotted: str, pattern: str) -> bool:
    """Whether a dotted name falls under a rule's pattern, which covers what is inside it too."""
    return any(
        fnmatchcase(name, pattern) or fnmatchcase(name, pattern + ".*") for name in equivalents(dotted)
    )


def forbidden_uses(
    units: Sequence[Unit],
    aliases: Aliases,
    rules: Sequence[ForbiddenRule],
    reaches: Mapping[str, Reach],
) -> tuple[ForbiddenUse, ...]:
    """The forbidden parts that the program uses or imports, in the order of the source.

    Args:
        units: The whole program.
        aliases: Of the same program.
        rules: What is forbidden.
        reaches: Graded name -> what it depends on.
    """
    found: dict[tuple[str, str, Place], ForbiddenUse] = {}
    by_name: dict[str, tuple[ForbiddenRule, ...]] = {}
    for use in _uses(units, aliases, reaches):
        if use.dotted not in by_name:
            by_name[use.dotted] = _first_of_each_cost(rules, use.dotted)
        for rule in by_name[use.dotted]:
            reached = tuple(name for name, reach in reaches.items() if _is_reached(use, reach))
            key = (rule.pattern, use.dotted, use.place)
            earlier = found[key].reached_from if key in found else ()
            joined = tuple(name for name in reaches if name in reached or name in earlier)
            found[key] = ForbiddenUse(rule.pattern, use.dotted, use.place, joined)
    return _without_prefixes(found.values())


def _first_of_each_cost(rules: Sequence[ForbiddenRule], dotted: str) -> tuple[ForbiddenRule, ...]:
    """The rules that a name falls under; of those with the same consequence only the first."""
    found: dict[tuple[str, str], ForbiddenRule] = {}
    for rule in rules:
        if matches(dotted, rule.pattern):
            found.setdefault((rule.costs, rule.policy), rule)
    return tuple(found.values())


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
                via = imported.name or "*"  # no name is called `*`: loading a part is no use of it
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
                if "vit" in name.lower() or "transformer" in name.lower() or "attention" in name.lower():
                    yield _Use(f"{module}.{name}", unit.cell.place(line), unit.index, via=name)


def _without_prefixes(uses: Iterable[ForbiddenUse]) -> tuple[ForbiddenUse, ...]:
    """One use per place and rule: the longest name, since its beginnings say the same."""
    best: dict[tuple[str, Place], ForbiddenUse] = {}
    for use in uses:
        key = (use.rule, use.place)
        if key not in best or (bool(use.reached_from), len(use.name)) > (
            bool(best[key].reached_from),
            len(best[key].name),
        ):
            best[key] = use
    return tuple(best.values())


def suspicions(units: Sequence[Unit], aliases: Aliases, reaches: Mapping[str, Reach]) -> list[str]:
    """Sentences about code of a graded name that a person should look at.

    It executes text, decodes it, or looks into the running program.
    """
    found: dict[tuple[str, Place], list[str]] = {}
    bound = {name for unit in units for name in unit.binds}
    for unit in units:
        for reference in unit.references.used:
            path = ".".join(reference.path)
            runs_text = reference.called and path in EXECUTING and path not in bound
            decodes = any(
                fnmatchcase(name, pattern)
                for name in aliases.dotted(reference)
                for pattern in (*DECODING, *PRYING)
            )
            if runs_text or decodes or PRYING_ATTRIBUTES & set(reference.path):
                users = [name for name, reach in reaches.items() if unit.index in reach.units]
                if users:
                    found.setdefault((path, unit.cell.place(reference.line)), users)
    return [
        f"{place}: {path} is used by {', '.join(users)}; {LOOK} at what it does."
        for (path, place), users in found.items()
    ]
