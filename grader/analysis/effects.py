"""Side effects of statements: shell, network, files, data, training, plotting, printing.

A heuristic over dotted names, seen through imports and plain aliases, and over method names of any object.
Functions have the effects of what they call. It errs both ways: any `.write` counts as file access, and an
unknown name as harmless. It is not a security boundary (`grader.sandbox` is), and `slicing` decides which
statements are left out because of an effect.

Tests: tests/analysis/test_loading_statements.py, tests/analysis/test_provided_files.py
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntFlag, auto
from fnmatch import fnmatchcase
from functools import cache

from grader.analysis.constant_values import handles_in, read_file
from grader.analysis.name_scopes import ANYTHING
from grader.analysis.references import Reference
from grader.analysis.syntax_trees import assigned
from grader.analysis.units import Unit

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Effect(IntFlag):
    """Kinds of effects; the most informative come first, and reasons name the first that applies."""

    NONE = 0
    SHELL = auto()
    NETWORK = auto()
    TRAIN = auto()
    MODEL = auto()
    DATA = auto()
    FILES = auto()
    OPTIMIZER = auto()
    INPUT = auto()
    ENDS = auto()
    PLOT = auto()
    SEED = auto()
    PRINT = auto()


REASONS = {
    Effect.SHELL: "it runs another program",
    Effect.NETWORK: "it uses the network or a web service",
    Effect.TRAIN: "it trains, evaluates or plots: the grader does that with its own data",
    Effect.MODEL: "it builds the model: the grader does that when it trains",
    Effect.DATA: "it loads data: the grader brings its own",
    Effect.FILES: "it reads or writes files",
    Effect.OPTIMIZER: "it builds the optimizer or schedule: the grader does that when it trains",
    Effect.INPUT: "it waits for input or for time to pass",
    Effect.ENDS: "it ends the program",
    Effect.PLOT: "it draws",
    Effect.SEED: "it sets a seed: the grader sets its own",
    Effect.PRINT: "it only prints",
}
# where the grader trains nothing
REASONS_UNTRAINED = {
    Effect.TRAIN: "it trains, evaluates or plots: the checks call your functions themselves",
    Effect.MODEL: "it builds the model: the checks build it themselves",
    Effect.DATA: "it loads data: the checks bring their own",
    Effect.OPTIMIZER: "it builds the optimizer or schedule: the checks do that themselves",
    Effect.SEED: "it sets a seed: the checks set their own",
}
NOT_NEEDED = "nothing that is graded needs it"
BLOCKING = ~(Effect.PLOT | Effect.SEED | Effect.PRINT)

# Dotted names, and methods of any object as `.name`.
PATTERNS: dict[Effect, tuple[str, ...]] = {
    Effect.SHELL: (
        *("os.system", "os.popen", "os.exec*", "os.spawn*", "os.fork", "os.kill", "subprocess.*"),
        *("get_ipython", ".run_line_magic", ".run_cell_magic", "multiprocessing.*"),
    ),
    Effect.NETWORK: (
        *("urllib.*", "requests.*", "gdown.*", "wget.*", "torch.hub.*", "kagglehub.*", "kaggle.*"),
        *(
            "socket.*",
            "http.*",
            "huggingface_hub.*",
            "google.colab.*",
            "wandb.*",
            "torchvision.datasets.utils.*",
        ),
    ),
    Effect.TRAIN: (".backward", ".step", ".fit"),
    Effect.MODEL: ("torchvision.models.*", "timm.*", "transformers.*", "torchsummary.*", "torchinfo.*"),
    Effect.DATA: ("torch.utils.data.*", "torchvision.datasets.*"),
    Effect.FILES: (
        *("open", "os.listdir", "os.makedirs", "os.mkdir", "os.remove", "os.rename", "os.walk", "os.scandir"),
        *("os.rmdir", "os.chdir", "os.unlink", "shutil.*", "zipfile.*", "tarfile.*", "glob.*", "torch.save"),
        *("torch.load", "numpy.load*", "numpy.save*", "numpy.genfromtxt", "PIL.Image.open"),
        *("pandas.read_[!s]*", "pandas.read_s[!q]*", "torchvision.io.*"),  # `read_sql` asks a connection
        *("cv2.im*", "json.load", "json.dump", "pickle.*", "yaml.*load*", "joblib.*"),
        *(
            "torchvision.utils.save_image",
            "torch.utils.tensorboard.*",
            "tensorboardX.*",
            ".savefig",
            ".read_text",
            ".read_bytes",
            ".write_text",
        ),
        *(".write_bytes", ".mkdir", ".iterdir", ".glob", ".rglob", ".extractall", ".extract", ".unlink"),
        *(".load_state_dict", ".to_csv", ".to_excel", ".rmdir", ".rmtree", ".write"),
    ),
    Effect.OPTIMIZER: ("torch.optim.*",),
    Effect.INPUT: ("input", "time.sleep", "getpass.*"),
    Effect.ENDS: ("exit", "quit", "sys.exit", "os._exit", "os.abort"),
    Effect.PLOT: ("matplotlib.*", "seaborn.*", "plotly.*"),
    Effect.SEED: ("torch*.manual_seed*", "random.seed", "numpy.random.seed", "*.seed_everything"),
    Effect.PRINT: ("print", "display", "pprint.*", "IPython.display.*", "logging.*", "warnings.*"),
}


# those of FILES that only read the file that they are given
READING = (
    *("open", "io.open", "torch.load", "numpy.load*", "numpy.genfromtxt", "pandas.read_*", "PIL.Image.open"),
    *("cv2.imread", "json.load", "pickle.load", "yaml.*load*", "joblib.load", "torchvision.io.read*"),
    *(".read_text", ".read_bytes", ".load_state_dict"),
)


# functions that find the file to download in a cache, or fail at once with the name of a missing one
FROM_CACHES = (
    "torch.hub.load_state_dict_from_url",
    "huggingface_hub.hf_hub_download",
    "huggingface_hub.snapshot_download",
)


class Aliases:
    """What top-level names stand for, by imports and by plain assignments (`models = torchvision.models`)."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self._targets: dict[str, set[str]] = defaultdict(set)
        for unit in units:
            for imported in unit.references.imported:
                if imported.name not in ("", "*"):
                    self._targets[imported.name].add(imported.target)
            pair = assigned(unit.node)
            if pair is not None and isinstance(pair[1], ast.Name | ast.Attribute | ast.Call):
                self._assign(pair[0], pair[1], unit)
            elif pair is not None and isinstance(pair[1], ast.Tuple):
                self._assign_each(pair[0], pair[1])

    def _assign(self, targets: Sequence[ast.expr], value: ast.expr, unit: Unit) -> None:
        """Follow a name for a module or for something in one."""
        paths = [
            reference
            for reference in unit.references.used
            if reference.path[0] != ANYTHING
            if reference.eager
            and reference.line == value.lineno
            and (not isinstance(value, ast.Call) or reference.absolute)
        ]
        for target in targets:
            if isinstance(target, ast.Name) and paths:
                reference = max(paths, key=lambda r: len(r.path))
                if reference.path[0] != target.id:
                    self._targets[target.id] |= set(self.dotted(reference, imported_only=True))

    def _assign_each(self, targets: Sequence[ast.expr], values: ast.Tuple) -> None:
        """Follow `nn, F = torch.nn, torch.nn.functional`."""
        for target in targets:
            if not isinstance(target, ast.Tuple) or len(target.elts) != len(values.elts):
                continue
            for name, value in zip(target.elts, values.elts, strict=True):
                path = _path(value)
                if isinstance(name, ast.Name) and path and path[0] != name.id:
                    reference = Reference(path, False, value.lineno, True, False)
                    self._targets[name.id] |= set(self.dotted(reference, imported_only=True))

    def dotted(self, reference: Reference, imported_only: bool = False) -> tuple[str, ...]:
        """The dotted names that a reference may stand for.

        Args:
            reference: As `references` gives it.
            imported_only: Leave out names that no import explains.
        """
        root, *attributes = reference.path
        if reference.absolute:
            return (".".join(reference.path),)
        if root == ANYTHING:
            return ("." + ".".join(attributes),)
        targets = self._targets.get(root)
        if targets:
            return tuple(sorted(".".join((target, *attributes)) for target in targets))
        return () if imported_only else (".".join(reference.path),)

    def is_imported(self, name: str) -> bool:
        """Whether a top-level name stands for something that is imported."""
        return bool(self._targets.get(name))

    def names_of(self, node: ast.expr) -> tuple[str, ...]:
        """The dotted names that an expression such as `optim.AdamW` may stand for."""
        path = _path(node)
        return self.dotted(Reference(path, False, node.lineno, True, False)) if path else ()


def _path(node: ast.expr) -> tuple[str, ...]:
    """The parts of `optim.AdamW`, the first ANYTHING if it is not a name; empty for other expressions."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.insert(0, node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        return (node.id, *path)
    return (ANYTHING, *path) if path else ()


@cache
def _effect_of_name(name: str) -> Effect:
    """The effect of calling something by this dotted name."""
    effects = Effect.NONE
    method = "." + name.rsplit(".", 1)[-1]
    for effect, patterns in PATTERNS.items():
        for pattern in patterns:
            if fnmatchcase(method if pattern.startswith(".") else name, pattern):
                effects |= effect
    if name.startswith(("os.path.", "torch.optim.lr_scheduler.LRS")):
        effects &= ~Effect.FILES
    if name.startswith("torch.utils.data.") and name.lower().endswith("sampler"):
        effects &= ~Effect.DATA  # it draws numbers
    return effects


def _makers(units: Sequence[Unit]) -> dict[str, set[str]]:
    """Functions that are only ever used as in `step = make_step()`, at top level -> what they are bound to.

    What such a function gives back has effects of its own, when it is called by that name.
    """
    made: dict[str, list[str]] = defaultdict(list)
    for unit in units:
        match unit.node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=maker))):
                made[maker].append(name)
    uses = Counter(reference.path[0] for unit in units for reference in unit.references.used)
    return {maker: set(names) for maker, names in made.items() if uses[maker] == len(names)}


@cache
def _reads_only(name: str) -> bool:
    """Whether calling something by this dotted name only reads the file that it is given."""
    method = "." + name.rsplit(".", 1)[-1]
    return any(fnmatchcase(method if pattern.startswith(".") else name, pattern) for pattern in READING)


class Effects:
    """The effects of units, through the functions that they call."""

    def __init__(
        self,
        units: Sequence[Unit],
        aliases: Aliases,
        graded: Mapping[str, str],
        *,
        provided: Collection[str] = (),
        cached: Collection[str] = (),
        strings: Mapping[str, str] | None = None,
    ) -> None:
        """Work out the effects of every function once.

        Args:
            units: The program.
            aliases: The same program's.
            graded: Graded names (as they are defined) -> `class` or `function`.
            provided: Files that are there wherever it is executed: reading them by name has no effect.
            cached: What libraries find without downloading it: files of URLs, and repositories of the hub.
            strings: Text constants of the program, by name.
        """
        self._aliases = aliases
        self._provided = frozenset(provided)
        self._cached = frozenset(cached)
        self._strings = dict(strings or {})
        self._handles = self._handles_of(units) if provided else {}
        self._graded = {
            name: Effect.MODEL if kind == "class" else Effect.TRAIN for name, kind in graded.items()
        }
        self._functions: dict[str, Effect] = dict(self._graded)
        self._classes: set[str] = set()
        self._own_methods: set[str] = set()
        makers = _makers(units)
        callers: dict[str, set[str]] = defaultdict(set)
        for unit in units:
            if isinstance(unit.node, ast.ClassDef) and unit.node.name not in graded:
                self._functions[unit.node.name] = self._base_effect(unit.node)
                self._classes.add(unit.node.name)
            if isinstance(unit.node, ast.ClassDef):
                self._own_methods |= {each.name for each in unit.node.body if isinstance(each, FUNCTIONS)}
            if not isinstance(unit.node, FUNCTIONS) or unit.node.name in graded:
                continue
            name = unit.node.name
            given_back = f"{name}()" if name in makers else name
            for reference in unit.references.used:
                if reference.called and not reference.eager:
                    function = given_back if reference.given_back else name
                    self._functions[function] = self.of_function(function) | self._direct([reference])
                    if len(reference.path) == 1 and not reference.absolute:
                        callers[reference.path[0]].add(function)
            self._functions.setdefault(name, Effect.NONE)
        for maker, made in makers.items():
            for name in made - set(graded):
                self._functions.setdefault(name, Effect.NONE)
                callers[f"{maker}()"].add(name)
        self._spread(callers)

    def _handles_of(self, units: Iterable[Unit]) -> dict[str, str]:
        """Names that only ever stand for provided files, with the file that each is opened from."""
        files_by_name: dict[str, set[str]] = defaultdict(set)
        for unit in units:
            for name, file in handles_in(unit.node, self._strings).items():
                files_by_name[name].add(file)
        return {name: min(files) for name, files in files_by_name.items() if all(map(self._is_there, files))}

    def _is_there(self, file: str) -> bool:
        """Whether a file, URL or repository of this name is available wherever the program is executed."""
        if "://" in file:
            return file.partition("?")[0].rpartition("/")[2] in self._cached
        return file in self._provided or ("/" in file and file in self._cached)

    def _base_effect(self, node: ast.ClassDef) -> Effect:
        """The effects that a class has from its bases: one of data sets loads data when it is called."""
        effects = Effect.NONE
        for base in node.bases:
            for name in self._aliases.names_of(base):
                effects |= _effect_of_name(name) & (Effect.DATA | Effect.OPTIMIZER)
        return effects

    def _spread(self, callers: Mapping[str, Collection[str]]) -> None:
        """Give callers the effects of what they call."""
        stack = list(self._functions)
        while stack:
            name = stack.pop()
            for caller in callers.get(name, ()):
                joined = self._functions[caller] | self._functions[name]
                if joined != self._functions[caller]:
                    self._functions[caller] = joined
                    stack.append(caller)

    def _direct(self, references: Iterable[Reference]) -> Effect:
        effects = Effect.NONE
        for reference in references:
            for name in self._aliases.dotted(reference):
                effect = _effect_of_name(name)
                if reference.file and self._is_there(reference.file) and _reads_only(name):
                    effect &= ~Effect.FILES
                if name in FROM_CACHES:
                    effect &= ~Effect.NETWORK
                effects |= effect
        return effects

    def reads_provided(self, references: Iterable[Reference]) -> bool:
        """Whether executing a statement reads a file that is available wherever it is executed."""
        return any(
            reference.called and reference.eager and self._is_there(reference.file)
            for reference in references
        )

    def direct(self, references: Iterable[Reference], *, but: Collection[str] = ()) -> Effect:
        """The effects of executing a statement, except those of the functions that it calls.

        Args:
            references: What it refers to.
            but: Dotted names, and methods as `.name`, that do not count.
        """
        return self._direct(
            [
                reference
                for reference in references
                if reference.called and reference.eager and not self._is_one_of(reference, but)
            ]
        )

    def _is_one_of(self, reference: Reference, names: Collection[str]) -> bool:
        dotted_names = self._aliases.dotted(reference)
        return any(name in names or "." + name.rsplit(".", 1)[-1] in names for name in dotted_names)

    def of_function(self, name: str) -> Effect:
        """The effects of calling a top-level function."""
        return self._functions.get(name, Effect.NONE)

    def of_call(self, node: ast.Call, *, but: Collection[str] = ()) -> Effect:
        """The effects of a call, except those of the program's own functions and methods.

        Args:
            node: The call.
            but: As in `direct`.
        """
        path = _path(node.func)
        if not path:
            return Effect.NONE
        if path[0] in self._functions:  # a class of data sets has the effects of its bases
            return self._functions[path[0]] & Effect.DATA if path[0] in self._classes else Effect.NONE
        if path[0] in ("self", "cls") and len(path) == 2 and path[1] in self._own_methods:
            return Effect.NONE  # what the method does has its effects where it does it
        file = read_file(node, self._strings, self._handles) if self._provided else ""
        called = Reference(path, False, node.lineno, True, True, file=file)
        return Effect.NONE if self._is_one_of(called, but) else self._direct([called])

    def of(self, references: Iterable[Reference]) -> Effect:
        """The effects of executing a statement with these references."""
        called = [r for r in references if r.called and r.eager]
        effects = self._direct(called)
        for reference in called:
            if len(reference.path) == 1 and not reference.absolute:
                effects |= self._functions.get(reference.path[0], Effect.NONE)
        return effects


def reason(effect: Effect, *, trains: bool = True) -> str:
    """Why a statement with these effects is left out, in words.

    Args:
        effect: What it would do.
        trains: The grader trains what is handed in.
    """
    for kind, words in (REASONS if trains else REASONS | REASONS_UNTRAINED).items():
        if effect & kind:
            return words
    return NOT_NEEDED
