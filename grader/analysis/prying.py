"""Introspection: code that looks into the running program, resolves computed names, or executes text.

It goes by names, and points out what a graded name, the training or the loading reaches, unless `reflection`
allows it. It errs toward pointing out; `grader.worker.prying` watches at run time for what it misses. Each
note asks a person to look and costs nothing by itself; `forbidden` decides what is forbidden.

Tests: tests/analysis/test_prying.py
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from grader.analysis.effects import Aliases
from grader.analysis.references import ANYTHING, Computed, Reference
from grader.analysis.reflection import (
    ATTRIBUTES,
    BUILTINS,
    EXECUTING,
    FILES,
    MODULES,
    any_of,
    homes,
    is_flagged,
    is_made,
    is_private,
)
from grader.analysis.slicing import KNOWN, Reach
from grader.analysis.units import Unit
from grader.domain.assignment import ForbiddenRule
from grader.domain.note import Note
from grader.domain.program import LOADING, TRAINING, Place

is_decoding = any_of(("base64.*decode*", "codecs.decode", "zlib.decompress", "binascii.*"))
# what a library expects to be given another value
is_setting = any_of(("torch.backends.*", "torch.multiprocessing.*", "*.__version__"))
HUB_WEIGHTS = "torch.hub.load_state_dict_from_url"
UNBOUND = frozenset({*EXECUTING, "__builtins__", "__loader__", "__spec__", "get_ipython"})


class Prying:
    """Finds it in one program."""

    def __init__(
        self,
        units: Sequence[Unit],
        aliases: Aliases,
        rules: Sequence[ForbiddenRule],
        cached: Collection[str] = (),
    ) -> None:
        """What is searched.

        Args:
            units: The whole program.
            aliases: Of the same program.
            rules: What is forbidden: the modules that hold it must not be handed on.
            cached: The names of files that libraries find without downloading them.
        """
        self._cached = frozenset(cached)
        self._units = units
        self._aliases = aliases
        self._bound = {name for unit in units for name in unit.binds}
        self._stars = [
            imported.target.removesuffix(".*")
            for unit in units
            for imported in unit.references.imported
            if imported.name == "*"
        ]
        names = [rule.pattern.split(".") for rule in rules]
        self._roots = frozenset(parts[0] for parts in names)
        self._homes = {".".join(parts[:count]) for parts in names for count in range(1, len(parts))}

    def notes(self, reaches: Mapping[str, Reach], loaded: Collection[int]) -> list[Note]:
        """What a person should look at, in the order of the source.

        Args:
            reaches: Graded names, TRAINING and LOADING -> what they depend on.
            loaded: The statements that are executed on loading: of a definition, what that executes.
        """
        found: dict[tuple[str, Place], list[str]] = {}
        for unit in self._units:
            for what, line, eager in self._all(unit):
                users = _users(unit, eager and unit.index in loaded, reaches)
                if users:
                    found.setdefault((what, unit.cell.place(line)), users)
        return [
            Note(
                f"{place}: {what} by {', '.join(users)}; a person should look at what it does.",
                ask_person=True,
            )
            for (what, place), users in found.items()
        ]

    def _all(self, unit: Unit) -> Iterator[tuple[str, int, bool]]:
        """(what is done, line, whether it is done when the statement is executed)."""
        for reference in unit.references.used:
            what = self._told(reference)
            if what:
                yield what, reference.line, reference.eager
        for computed in unit.references.computed:
            yield self._computed(computed), computed.line, computed.eager

    def _told(self, reference: Reference) -> str:
        """What a reference does that is pointed out; empty for most."""
        path = ".".join(part for part in reference.path if part)
        root = reference.path[0]
        free = root != ANYTHING and not reference.absolute and root not in self._bound
        if (free and root in UNBOUND) or ATTRIBUTES & set(reference.path[1:]):
            return f"{path} is used"
        if free and root in BUILTINS and not reference.called:
            return f"{path} is handed on as a value"
        for name in self._names(reference, free):
            if name == HUB_WEIGHTS and reference.file.rpartition("/")[2] in self._cached:
                continue  # what it would download is there, and comes from the course
            if is_flagged(name) or is_private(name, self._roots) or is_decoding(name):
                return f"{path} is used"
            if reference.called and is_made(name):
                return f"{path} is used"
            if name.startswith("."):
                continue
            if name.rpartition(".")[2] in FILES:
                return f"{path} is used"
            if self._is_handed_on(name, reference.whole):
                return f"{path} is handed on as a value"
            if reference.stored and name.partition(".")[0] in self._roots and not is_setting(name):
                return f"{path} is given another value"
        return ""

    def _is_handed_on(self, name: str, whole: bool) -> bool:
        """Whether a module that holds forbidden parts or pries is used as a value, or the names in it are."""
        module, names, _ = name.partition(".__dict__")
        return (whole or bool(names)) and any(
            home in self._homes or home in MODULES for home in homes(module)
        )

    def _names(self, reference: Reference, free: bool) -> Iterable[str]:
        names = self._aliases.dotted(reference, imported_only=True)
        if free and not names and reference.path[0] not in KNOWN:
            return [f"{module}.{'.'.join(reference.path)}" for module in self._stars]
        return names

    def _computed(self, computed: Computed) -> str:
        where = f" of {'.'.join(computed.base)}" if any(computed.base) else ""
        return f"a name{where} that is computed is resolved ({computed.function})"


def _users(unit: Unit, executed: bool, reaches: Mapping[str, Reach]) -> list[str]:
    """Who reaches it: graded names, or else the training, or else the loading."""
    users = [name for name, reach in reaches.items() if unit.index in reach.units]
    graded = [name for name in users if name not in (TRAINING, LOADING)]
    if graded or TRAINING in users:
        return graded or [TRAINING]
    return [LOADING] if executed or LOADING in users else []
