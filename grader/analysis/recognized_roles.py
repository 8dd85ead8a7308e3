"""What assigned names hold: plain values, or a role such as model, optimizer, loader, class names.

Plain values are recognized by kinds of nodes and a list of harmless calls. Roles follow from what a name is
bound to, and only where that is unknown, from the name itself. A misleading name gets the wrong role, and no
person is asked to confirm it. Statements that bind a role are not executed on loading: the grader fills the
name in, which would be missing otherwise. What is harmful to execute, `effects` knows without roles.
`slicing` decides what is executed; `grader.worker.training_setup` and `script.script_data` what replaces
roles.

Tests: tests/analysis/script/test_substituted_data.py, tests/analysis/test_loading_statements.py
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from grader.analysis.constant_values import called_name
from grader.analysis.effects import BLOCKING, Aliases, Effects
from grader.analysis.syntax_trees import assigned, children, statements_within, text_of, walk
from grader.analysis.units import Unit
from grader.domain.split_sides import split_side

HARMLESS_FUNCTIONS = {
    *("range", "len", "int", "float", "str", "bool", "tuple", "list", "dict", "set", "frozenset", "min"),
    *("max", "sum", "round", "abs", "sorted", "enumerate", "zip", "reversed", "map", "slice", "type"),
    *(
        "torch.device",
        "torch.cuda.is_available",
        "torch.cuda.device_count",
        "torch.backends.mps.is_available",
    ),
    *("torch.backends.mps.is_built", "Path", "PurePath", "pathlib.Path", "os.path.join", "os.cpu_count"),
    *("os.getcwd", "os.environ.get", "os.getenv", "namedtuple", "collections.namedtuple", "defaultdict"),
    *(
        "collections.defaultdict",
        "OrderedDict",
        "Counter",
        "deque",
        "SimpleNamespace",
        "types.SimpleNamespace",
    ),
    *("partial", "functools.partial", "TypeVar", "device", "cuda.is_available", "isinstance", "getattr"),
}
HARMLESS_PACKAGES = {"math"}
PLAIN_NODES = (
    *(ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare),
    *(ast.IfExp, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.JoinedStr, ast.FormattedValue),
    *(ast.Starred, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.comprehension, ast.keyword),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context),
)


def is_plain(node: ast.stmt) -> bool:
    """Whether a statement only gives names to plain values, so that executing it can do no harm."""
    pair = assigned(node)
    if pair is None:
        return False
    targets, value = pair
    has_plain_targets = all(isinstance(t, ast.Name | ast.Tuple | ast.List) for t in targets) and all(
        isinstance(element, ast.Name | ast.Starred)
        for target in targets
        if isinstance(target, ast.Tuple | ast.List)
        for element in target.elts
    )
    return has_plain_targets and _is_plain_value(value)


def _is_plain_value(value: ast.expr) -> bool:
    stack: list[ast.AST] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Call):
            if not _is_harmless(node.func):
                return False
        elif not isinstance(node, PLAIN_NODES):
            return False
        stack += children(node)
    return True


def _is_harmless(function: ast.expr) -> bool:
    if not isinstance(function, ast.Name | ast.Attribute):
        return False
    name = text_of(function)
    return (
        name in HARMLESS_FUNCTIONS
        or name.split(".")[0] in HARMLESS_PACKAGES
        or (name.endswith("Loss") and name.split(".")[-1][:1].isupper())
    )


# --- roles -----------------------------------------------------------------------------------------------


LOADER_NAME = re.compile(r"loader|dl$|(?<!wr)iter(ator)?$", re.IGNORECASE)
LOADERS_NAME = re.compile(r"loaders?(_?\d+|_?dict|_by_\w+)?$|dls?$", re.IGNORECASE)
SEVERAL_LOADERS_NAME = re.compile(r"(loader|dl)s(_?dict|_by_\w+)?$", re.IGNORECASE)
DATASET_NAME = re.compile(
    r".*data.*|(.*_)?(train|trn|test|tst|val|valid|eval|dev|sub|full|whole|all|img|image)?(ds|sets?)\d*(_[a-z]{2,10})?",
    re.IGNORECASE,
)
# what is said of a data set, and is none
ABOUT_DATA = re.compile(
    r".*_(means?|stds?|avg|var|stats?|sizes?|len|length|counts?|num|dims?|shape|dir|path|root|folder|file|url"
    r"|names?|df|min|max|sum|seed|time|cfg|config|type|format|loss|acc|weights?)|metadata|wandb.*",
    re.IGNORECASE,
)
BY_NAME = (
    ("optimizer", re.compile(r"^(optimi[sz]er|optim|opt)\d*$", re.IGNORECASE)),
    ("scheduler", re.compile(r"^(lr_?)?sched(uler)?\d*$", re.IGNORECASE)),
    (
        "class_names",
        re.compile(r"^(class_?names?|classes|class_?labels|label_?names?|categories)$", re.IGNORECASE),
    ),
    ("loss_history", re.compile(r"loss(es)?_?(history|list|hist)$|losses$|_history$", re.IGNORECASE)),
    ("model", re.compile(r"^(model|net|network|vit)(_?\d+)?$", re.IGNORECASE)),
    ("epoch", re.compile(r"^(epoch|ep)$", re.IGNORECASE)),
)
LOADER_PARAMETERS = (
    *("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn"),
)
SCHEDULES = ("torch.optim.lr_scheduler.", "torch.optim.swa_utils.SWALR")
# what is not itself an object with a role: a collection of such objects, or a function that makes one
COLLECTIONS_AND_LAMBDAS = (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Lambda)
# what gives the model that it is called on, and what it is given
MODEL_METHODS = {"to", "cuda", "cpu", "train", "eval", "double", "float", "requires_grad_"}
MODEL_WRAPPERS = {"DataParallel", "compile"}


def role_by_name(name: str) -> str | None:
    """The role that a name suggests; none if it names several objects: `loaders`."""
    if SEVERAL_LOADERS_NAME.search(name):
        return None
    if LOADER_NAME.search(name):
        return f"{split_side(name) or 'train'}_loader"
    for role, pattern in BY_NAME:
        if pattern.search(name):
            return role
    if DATASET_NAME.fullmatch(name) and not ABOUT_DATA.fullmatch(name):
        return f"{split_side(name) or 'train'}_dataset"
    return None


def is_name_of_loaders(name: str) -> bool:
    """Whether a name is that of a loader, or of several, and not of a pass over one."""
    return bool(LOADERS_NAME.search(name))


def unwrapped(node: ast.expr) -> ast.expr:
    """A model's expression without `.to(device)`, `.cuda()`, `nn.DataParallel(...)`, `torch.compile(...)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
        if isinstance(node.func, ast.Attribute) and node.func.attr in MODEL_METHODS:
            node = node.func.value
        elif called_name(node.func) in MODEL_WRAPPERS and node.args:
            node = node.args[0]
        else:
            break
    return node


class RoleReader:
    """Finds the role of what an expression makes."""

    def __init__(self, aliases: Aliases, units: Iterable[Unit], model_class: str | None) -> None:
        """Find the functions that make models.

        Args:
            aliases: The names under which the program imports things.
            units: The statements of the program.
            model_class: The graded class whose object is the model, as it is defined.
        """
        self._aliases = aliases
        self._makers = {model_class} if model_class is not None else set()
        self._constructors: set[str] = set()
        for unit in units:
            if isinstance(unit.node, ast.ClassDef) and unit.node.name == model_class:
                self._constructors = {f"{model_class}.{name}" for name in _class_methods(unit.node)}
            if isinstance(unit.node, ast.FunctionDef) and self._returns_model(unit.node):
                self._makers.add(unit.node.name)
            self._makers |= {name for name, value in bindings(unit.node) if self._is_maker(value)}

    def _is_maker(self, value: ast.expr | None) -> bool:
        """Whether a value is a function that makes models: `partial(ViT, dim=64)`, `lambda dim: ViT(dim)`."""
        match value:
            case ast.Lambda(body=body):
                return self.is_model(body)
            case ast.Call(args=[ast.Name(id=name), *_]):
                return name in self._makers and self.makes(value, "functools.partial")
        return False

    def _returns_model(self, node: ast.FunctionDef) -> bool:
        inner = list(statements_within(node))
        models = {
            name
            for statement in inner
            for name, value in bindings(statement)
            if value is not None and self.is_model(value)
        }
        returned = [s.value for s in inner if isinstance(s, ast.Return) and s.value is not None]
        return any(
            self.is_model(value) or (isinstance(unwrapped(value), ast.Name) and text_of(value) in models)
            for value in returned
        )

    def is_model(self, value: ast.expr) -> bool:
        """Whether an expression makes a model: the graded class, or a function that returns one."""
        call = unwrapped(value)
        if not isinstance(call, ast.Call):
            return False
        if isinstance(call.func, ast.Attribute):
            return text_of(call.func) in self._constructors
        return isinstance(call.func, ast.Name) and call.func.id in self._makers

    def makes(self, value: ast.expr, *prefixes: str) -> bool:
        """Whether an expression calls something whose dotted name begins with one of `prefixes`."""
        if not isinstance(value, ast.Call):
            return False
        return any(name.startswith(prefixes) for name in self._aliases.names_of(value.func))

    def _makes_sampler(self, value: ast.expr) -> bool:
        maker = text_of(value).partition("(")[0].lower()
        return self.makes(value, "torch.utils.data.") and maker.endswith("sampler")

    def role(self, name: str, value: ast.expr, earlier_roles: Mapping[str, str]) -> str | None:
        """The role of a name that is bound to the value of an expression.

        Args:
            name: The name.
            value: The expression.
            earlier_roles: The roles of names that are bound earlier.
        """
        if self.is_model(value):
            return "model"
        if self.makes(value, *SCHEDULES):
            return "scheduler"
        if self.makes(value, "torch.optim.") and not self.makes(value, "torch.optim.swa_utils."):
            return "optimizer"
        if isinstance(value, ast.Call) and is_loader(value):
            return f"{self._loader_side(name, value)}_loader"
        if self._makes_sampler(value):
            return None
        if self.makes(value, "torch.utils.data.") or self.makes(value, "torchvision.datasets."):
            return f"{split_side(name) or split_side(text_of(value)) or 'train'}_dataset"
        if _is_class_names(value, earlier_roles):
            return "class_names"
        match value:
            case ast.Call(func=ast.Name(id="len"), args=[inner]) if _is_class_names(inner, earlier_roles):
                return "num_classes"
        return None

    def bound_roles(
        self,
        unit: Unit,
        effects: Effects,
        earlier_roles: Mapping[str, str],
        unavailable: Collection[str] = (),
    ) -> dict[str, str]:
        """The roles of the names that a statement binds.

        The role follows from the value that a name is bound to. If the value does not show it, the name
        itself does, but only in statements that are not executed on loading: those with effects, and those
        that use a name with a role. A name that says loader always makes one.

        Args:
            unit: The statement.
            effects: What the program's calls do.
            earlier_roles: The roles of names that are bound earlier.
            unavailable: Names that are bound by statements that are not executed, and have no role.
        """
        if unit.is_definition or unit.is_import:
            return {}
        new_roles: dict[str, str] = {}
        # a loop variable may be anything: a size, a rate, a name
        loop_variables = {
            name
            for node in statements_within(unit.node)
            if isinstance(node, ast.For)
            for name in _names(node.target)
        }
        not_executed = effects.of(unit.references.used) & BLOCKING or unit.eager & earlier_roles.keys()
        for name, value in bindings(unit.node):
            role = self.role(name, value, {**earlier_roles, **new_roles}) if value is not None else None
            name_role = role_by_name(name)
            if (
                role is None
                and not _is_number(value)
                and not isinstance(value, COLLECTIONS_AND_LAMBDAS)
                and (name not in loop_variables or name_role == "epoch")
            ):
                made_elsewhere = value is None or isinstance(value, ast.Call)
                is_loader = made_elsewhere and name_role in ("train_loader", "test_loader")
                lacks_something = name_role == "class_names" and not unit.eager.isdisjoint(unavailable)
                if not_executed or is_loader or lacks_something:
                    role = name_role
            if role is not None:
                new_roles[name] = role
        return new_roles

    def _loader_side(self, name: str, value: ast.expr) -> str:
        known_side = split_side(name)
        if known_side is not None:
            return known_side
        assert isinstance(value, ast.Call)  # see `role`
        data = value.args[0] if value.args else None
        known_side = split_side(text_of(data)) if data is not None else None
        if known_side is not None:
            return known_side
        return "train" if may_shuffle(value) else "test"


def _class_methods(node: ast.ClassDef) -> Iterator[str]:
    """The class methods that return an object of the class, as far as the source shows: `from_config`."""
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef) and "classmethod" in map(text_of, inner.decorator_list):
            own = inner.args.args[0].arg if inner.args.args else ""
            made = (call.func for call in walk(inner) if isinstance(call, ast.Call))
            if any(isinstance(function, ast.Name) and function.id in (own, node.name) for function in made):
                yield inner.name


def roles(units: Iterable[Unit], effects: Effects, reader: RoleReader) -> dict[str, str]:
    """Top-level names that are bound by role: the statements that bind them are not executed.

    Args:
        units: The statements of the program.
        effects: What the program's calls do.
        reader: Finds the roles of the program's expressions.
    """
    new_roles: dict[str, str] = {}
    unavailable: set[str] = set()
    for unit in units:
        found = reader.bound_roles(unit, effects, new_roles, unavailable)
        new_roles |= found
        is_left_out = effects.of(unit.references.used) & BLOCKING or not unit.eager.isdisjoint(unavailable)
        if is_left_out and not unit.is_definition and not unit.is_import:
            unavailable |= unit.binds - found.keys()
    return new_roles


def _is_class_names(node: ast.expr, earlier_roles: Mapping[str, str]) -> bool:
    """Whether an expression is the list of the classes: `train_set.classes`, or a name for it."""
    if isinstance(node, ast.Name):
        return earlier_roles.get(node.id) == "class_names"
    return isinstance(node, ast.Attribute) and node.attr == "classes"


def may_shuffle(loader: ast.Call) -> bool:
    """Whether a loader may give its images in another order each time: as far as the call shows."""
    if any(keyword.arg is None for keyword in loader.keywords):
        return True  # `**options`
    given = [argument_of_loader(loader, name) for name in ("shuffle", "sampler", "batch_sampler")]
    return any(value is not None and not _is_false(value) for value in given)


def is_loader(call: ast.Call) -> bool:
    """Whether a call makes a loader, by its name."""
    return called_name(call.func) == "DataLoader"


def begun_call(call: ast.Call) -> ast.Call | None:
    """The call that `partial(ImageFolder, "data/train")` begins; None for any other call."""
    if called_name(call.func) != "partial" or not call.args:
        return None
    return ast.copy_location(ast.Call(call.args[0], call.args[1:], call.keywords), call)


def argument_of_loader(loader: ast.Call, name: str) -> ast.expr | None:
    """What a `DataLoader(...)` is given for one of its first parameters, by position or by keyword."""
    for keyword in loader.keywords:
        if keyword.arg == name:
            return keyword.value
    position = LOADER_PARAMETERS.index(name)
    if position < len(loader.args) and not any(isinstance(arg, ast.Starred) for arg in loader.args):
        return loader.args[position]
    return None


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and not value.value


def _is_number(value: ast.expr | None) -> bool:
    """Whether an expression makes a number from what it needs: `len(train_loader) * EPOCHS`."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in (
            "len",
            "int",
            "float",
            "sum",
            "max",
            "min",
        )
    return isinstance(value, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Constant)


def bindings(node: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """(name, value) for every name that a statement binds, also in its blocks.

    The value is None if it is not a single expression.
    """
    for inner in statements_within(node):
        if isinstance(inner, ast.For | ast.AsyncFor):
            yield from ((name, None) for name in _names(inner.target))
        pair = assigned(inner)
        if pair is None:
            continue
        for target in pair[0]:
            yield from _target_values(target, pair[1])


def _target_values(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
            for inner, part in zip(target.elts, value.elts, strict=True):
                yield from _target_values(inner, part)
        else:
            yield from ((name, None) for name in _names(target))


def _names(target: ast.expr) -> Iterator[str]:
    return (node.id for node in walk(target) if isinstance(node, ast.Name))
