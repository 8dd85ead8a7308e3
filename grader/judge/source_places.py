"""Places and names in the student's source: the line of a mistake, and hints that can be pasted.

Code patterns are kinds of code (`softmax()`, `loop`, a name), matched by names and by the shape of the syntax
tree. The first pattern that is found at one place only gives the line, in the component, else in what it
uses. Otherwise the start of `forward` or of the component is shown, since a wrong line is worse. Imports and
assignments give the student's own names for a hint. It decides no points, no diagnosis and no hint: the
checks do.

Tests: tests/checks/test_lines_of_mistakes.py, tests/judge/test_own_names.py, tests/judge/test_place.py
"""

import ast
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.domain.analyzed_program import Place, Program, Statement
from grader.domain.errors import CourseError

ANYTHING = "_"
_STATEMENTS: dict[str, tuple[type[ast.stmt], ...]] = {
    "return": (ast.Return,),
    "break": (ast.Break,),
    "continue": (ast.Continue,),
    "for": (ast.For,),
    "while": (ast.While,),
    "with": (ast.With,),
    "if": (ast.If,),
    "raise": (ast.Raise,),
}
BODY, END, LOOP, LOOP_END = (
    "body",
    "end",
    "loop",
    "loop_end",
)  # the first and last statement of it, of its loop
_PLACES = (BODY, END, LOOP, LOOP_END)


@dataclass(frozen=True)
class CodePattern:
    """Kinds of code, one of which is searched for.

    Attributes:
        words: Kinds of statements (`return`), `body`, `end`, `loop` and `loop_end`.
        names: Variables, attributes and arguments.
        shapes: Expressions in which `_` stands for anything, and a call without arguments for any call.
    """

    words: frozenset[str]
    names: frozenset[str]
    shapes: tuple[ast.expr, ...]

    def lines(self, part: ast.stmt, entry: ast.FunctionDef | None) -> frozenset[int]:
        """The lines of a definition at which the pattern is found.

        A name is found where it is assigned, or everywhere if it never is. If the definition itself keeps an
        object (`self.softmax = ...`), the pattern matches where it is made, not where it is called.

        Args:
            part: A class, a function or another statement.
            entry: The part of it that is executed when it is used, in which words are searched for.
        """
        nodes = list(ast.walk(part))
        words = _within(entry, self.words) if entry is not None else ()
        return frozenset({*words, *self._named(nodes), *self._shaped(nodes)})

    def _named(self, nodes: list[ast.AST]) -> set[int]:
        mentions = [(node, name) for node in nodes if (name := _mentioned(node)) in self.names]
        bound = {
            node.lineno
            for node, _ in mentions
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
        return bound or {_line(node) for node, _ in mentions}

    def _shaped(self, nodes: list[ast.AST]) -> set[int]:
        matching = [node for node in nodes if any(_fits(shape, node) for shape in self.shapes)]
        made = {
            target.attr
            for node in nodes
            if isinstance(node, ast.Assign) and any(part in matching for part in ast.walk(node.value))
            for target in node.targets
            if isinstance(target, ast.Attribute)
        }
        return {_line(node) for node in matching if _own_attribute(node) not in made}


@functools.cache
def code_pattern(text: str) -> CodePattern:
    """A pattern as instructors write it: `softmax() | Softmax()`, `_ ** -0.5 | sqrt()`, `loop`, `scale`.

    Raises:
        ValueError: It is not a pattern; the sentence says what is wrong.
    """
    words, names, shapes = set(), set(), []
    for part in (piece.strip() for piece in text.split("|")):
        if part in _STATEMENTS or part in _PLACES:
            words.add(part)
            continue
        try:
            shape = ast.parse(part, mode="eval").body
        except (SyntaxError, ValueError) as error:
            raise ValueError(f"`{part}` is not a name, call or expression") from error
        if isinstance(shape, ast.Name) and shape.id != ANYTHING:
            names.add(shape.id)
        elif isinstance(shape, ast.Name):
            raise ValueError("`_` alone would be found everywhere")
        else:
            shapes.append(shape)
    return CodePattern(frozenset(words), frozenset(names), tuple(shapes))


def looked_for(paragraph: str, source: str) -> tuple[str, ...]:
    """The patterns that a paragraph lists, the likeliest first; commas within brackets do not separate.

    Args:
        source: Who lists them, for messages.

    Raises:
        CourseError: One of them is not a pattern.
    """
    pieces, depth = [""], 0
    for sign in re.sub(r"`|\.\s*$", "", paragraph):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += sign
    patterns = tuple(piece.strip() for piece in pieces if piece.strip())
    for pattern in patterns:
        try:
            code_pattern(pattern)
        except ValueError as error:
            raise CourseError(
                f"{source}: it cannot be looked for: {error}. Write names, calls (`softmax()`), expressions "
                f"with `_` for anything, or {', '.join([*_STATEMENTS, *_PLACES])}."
            ) from error
    return patterns


def bound_names(source: str, pattern: CodePattern) -> set[str]:
    """The variables and attributes to which a statement assigns an expression of a pattern."""
    return {
        name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assign) and any(_fits(shape, node.value) for shape in pattern.shapes)
        for target in node.targets
        if (name := _mentioned(target)) is not None
    }


def _within(entry: ast.FunctionDef, words: frozenset[str]) -> Iterator[int]:
    kinds = tuple(kind for word in words for kind in _STATEMENTS.get(word, ()))
    yield from (node.lineno for node in ast.walk(entry) if kinds and isinstance(node, kinds))
    if BODY in words:
        yield _first_statement(entry).lineno
    if END in words:
        yield entry.body[-1].lineno
    for loop in _outer_loops(entry):
        if LOOP in words:
            yield loop.body[0].lineno
        if LOOP_END in words:
            yield loop.body[-1].lineno


def _first_statement(entry: ast.FunctionDef) -> ast.stmt:
    """The first statement of a function after its docstring."""
    first, *rest = entry.body
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return rest[0] if rest and is_docstring else first


def _outer_loops(node: ast.AST) -> Iterator[ast.For | ast.While]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.For | ast.While):
            yield child
        else:
            yield from _outer_loops(child)


def _mentioned(node: ast.AST) -> str | None:
    """The name that a node mentions: a variable's, an attribute's or an argument's."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.arg if isinstance(node, ast.keyword) else None


def _line(node: ast.AST) -> int:
    """The line where a person looks for it: of a call or an attribute, the line of its name."""
    named = node.func if isinstance(node, ast.Call) else node
    if isinstance(named, ast.Attribute):
        return named.end_lineno or named.lineno
    return node.lineno  # type: ignore[attr-defined, no-any-return]


def _own_attribute(node: ast.AST) -> str | None:
    """`softmax` of `self.softmax(x)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    holder = node.func.value
    return node.func.attr if isinstance(holder, ast.Name) and holder.id == "self" else None


def _fits(shape: ast.AST, node: ast.AST) -> bool:
    """Whether a node matches an expression of a pattern."""
    if isinstance(shape, ast.Name):
        return shape.id == ANYTHING or _mentioned(node) == shape.id
    if isinstance(shape, ast.Call):
        return isinstance(node, ast.Call) and _calls(shape, node)
    return type(shape) is type(node) and all(
        _fields_match(value, getattr(node, field))
        for field, value in ast.iter_fields(shape)
        if field != "ctx"
    )


def _fields_match(shape: object, value: object) -> bool:
    """Whether a field of a node matches that of a pattern."""
    if isinstance(shape, ast.AST):
        return isinstance(value, ast.AST) and _fits(shape, value)
    if isinstance(shape, list):
        return isinstance(value, list) and len(shape) == len(value) and all(map(_fields_match, shape, value))
    return type(shape) is type(value) and shape == value


def _calls(shape: ast.Call, node: ast.Call) -> bool:
    """Whether a call has the pattern's name and at least its arguments."""
    name = _mentioned(shape.func)
    if name != ANYTHING and _mentioned(node.func) != name:
        return False
    if isinstance(shape.func, ast.Attribute):
        holder = node.func.value if isinstance(node.func, ast.Attribute) else None
        if holder is None or not _fits(shape.func.value, holder):
            return False
    if len(node.args) < len(shape.args):
        return False
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    return all(map(_fits, shape.args, node.args)) and all(
        keyword.arg in keywords and _fits(keyword.value, keywords[keyword.arg]) for keyword in shape.keywords
    )


# --- place -----------------------------------------------------------------------------------------------


FORWARD = "forward"
_NEAR = 4  # lines: code that is so close together counts as one place, such as two layers of one list


def place_of(program: Program, component: str, look_for: Sequence[str] = ()) -> str:
    """The place of a mistake in a component: the line of its kind of code, if there is just one.

    Args:
        look_for: Kinds of code that mark the mistake's line (see `code_pattern`), the likeliest first. Each
            is searched for in the component and, if it is not there, one step further: in the student's own
            code that the component uses and that is not a component itself.

    Returns:
        The first line of the first kind that is found at one place only. If there is none, the line where
        `forward` begins, else where the component does: a wrong line is worse. Empty if it is not defined.
    """
    place = (program.defined or {}).get(component)
    if place is None:
        return ""
    statement = _definition(program, component, place)
    if statement is None:
        return str(place)
    tree = _tree(statement.source)
    if tree is None:
        return str(place)
    further = functools.cache(lambda: tuple(_used_statements(program, statement, tree)))  # rarely needed
    for text in look_for:
        for scope in (lambda: (statement,), further):
            places = [place for searched in scope() for place in _places(searched, code_pattern(text))]
            if places:
                if _are_one(places):
                    return str(places[0])
                break
    return _begin(statement, tree, place)


def _begin(statement: Statement, tree: ast.stmt, place: Place) -> str:
    entry = _executed_part(tree)
    return str(_place(statement, entry.lineno)) if entry is not None and entry is not tree else str(place)


def _places(statement: Statement, pattern: CodePattern) -> list[Place]:
    """The places in a statement at which a kind of code is found, from top to bottom."""
    tree = _tree(statement.source)
    if tree is None:
        return []
    return [_place(statement, line) for line in sorted(pattern.lines(tree, _executed_part(tree)))]


def _are_one(places: Sequence[Place]) -> bool:
    """Whether these places are so close that a reader who is shown the first sees them all."""
    return len({place.file for place in places}) == 1 and places[-1].line - places[0].line < _NEAR


def _executed_part(tree: ast.stmt) -> ast.FunctionDef | None:
    """The part of a definition that is executed when it is used: `forward`, or the function itself."""
    if isinstance(tree, ast.FunctionDef):
        return tree
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    return next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == FORWARD), None)


def _used_statements(program: Program, statement: Statement, tree: ast.stmt) -> Iterator[Statement]:
    """The student's other statements that a definition uses, without graded ones."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - set(program.defined or {})
    for other in program.statements:
        if other is not statement and other.kind != "import" and not names.isdisjoint(other.binds):
            yield other


def _place(statement: Statement, line: int) -> Place:
    """The place of a statement's line, 1-based within the statement."""
    return Place(statement.place.file, statement.place.line + line - 1)


def _definition(program: Program, component: str, place: Place) -> Statement | None:
    """The statement that defines the component, even under another name."""
    for statement in program.statements:
        same_file = statement.place.file == place.file
        lines = statement.source.count("\n") + 1
        if same_file and 0 <= place.line - statement.place.line < lines:
            return statement
    return next((binding for binding in program.statements if component in binding.binds), None)


@functools.lru_cache(maxsize=64)  # every check of a component asks for it, and a source may be long
def _tree(source: str) -> ast.stmt | None:
    """A statement, parsed; None when it cannot be parsed."""
    try:
        return ast.parse(source).body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return None


# --- own names -------------------------------------------------------------------------------------------


_PLACEHOLDER = re.compile(r"\{(?P<usual>\w+) = (?P<what>[^{}]+)\}")


def with_own_names(text: str, program: Program, component: str) -> str:
    """A text whose placeholders are filled with the student's own names.

    `{F = torch.nn.functional}` becomes the name that the file gives to that module. `{stopping =
    EarlyStopping()}` becomes the name to which such an expression is assigned in the component, if it is one
    name only. If the file says neither, the usual name before the sign stays.

    Args:
        component: The component whose assignments are searched.
    """
    return _PLACEHOLDER.sub(
        lambda match: _own_name(match["what"], program, component) or match["usual"], text
    )


def _own_name(what: str, program: Program, component: str) -> str:
    if re.fullmatch(r"\w+(\.\w+)*", what):
        return _modules(
            tuple(statement.source for statement in program.statements if statement.kind == "import"), what
        )
    sources = [statement.source for statement in program.statements if component in statement.binds]
    names = {name for source in sources for name in bound_names(source, code_pattern(what))}
    return names.pop() if len(names) == 1 else ""


@functools.lru_cache(maxsize=64)
def _modules(imports: tuple[str, ...], module: str) -> str:
    """The shortest expression for a module, by the imports; empty if they do not give it."""
    expressions = [
        alias + module[len(full) :]
        for full, alias in _imported(imports)
        if f"{module}.".startswith(f"{full}.")
    ]
    return min(expressions, key=len, default="")


def _imported(imports: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(Module, its name in the file) of import statements."""
    for node in (child for source in imports for child in ast.walk(ast.parse(source))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield (alias.name, alias.asname) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield f"{node.module}.{alias.name}", alias.asname or alias.name
