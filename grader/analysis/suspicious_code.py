"""Code that a person should look at: introspection, and more data in the source than code needs.

Introspection is recognized by names: what looks into the running program, resolves computed names or
executes text, unless `reflection` allows it. Data is measured by how many bits constants, names and their
order can hold; words that programs use anyway are free up to an amount. Introspection errs toward pointing
out. Each note asks a person to look and costs nothing by itself. `forbidden_uses` decides what is
forbidden, and `bare_text` how much of the text a worker gets.

Tests: tests/analysis/test_prying.py, tests/analysis/test_written_data.py
"""

import ast
import keyword
import math
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise

from grader.analysis.bare_text import CLOSING, Token, tokens
from grader.analysis.effects import Aliases
from grader.analysis.name_scopes import ANYTHING
from grader.analysis.references import Computed, Reference
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
from grader.analysis.remembered_texts import remembered
from grader.analysis.slicing import KNOWN, Reach
from grader.analysis.units import Unit
from grader.domain.analyzed_program import LOADING, TRAINING, Note, Place, Program
from grader.domain.assignment_rules import ForbiddenRule

is_decoding = any_of(("base64.*decode*", "codecs.decode", "zlib.decompress", "binascii.*"))
# what a library expects programs to set
is_setting = any_of(("torch.backends.*", "torch.multiprocessing.*", "*.__version__"))
HUB_WEIGHTS = "torch.hub.load_state_dict_from_url"
UNBOUND = frozenset({*EXECUTING, "__builtins__", "__loader__", "__spec__", "get_ipython"})


class Prying:
    """Finds introspection in one program."""

    def __init__(
        self,
        units: Sequence[Unit],
        aliases: Aliases,
        rules: Sequence[ForbiddenRule],
        cached: Collection[str] = (),
    ) -> None:
        """Take the program that is searched.

        Args:
            units: The whole program.
            aliases: The same program's.
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
        """Notes on what a person should look at, in the order of the source.

        Args:
            reaches: Graded names, TRAINING and LOADING -> what they depend on.
            loaded: The statements that are executed on loading (of a
                definition, its decorators and defaults).
        """
        users_by_use: dict[tuple[str, Place], list[str]] = {}
        for unit in self._units:
            for what, line, eager in self._uses(unit):
                users = _users(unit, eager and unit.index in loaded, reaches)
                if users:
                    users_by_use.setdefault((what, unit.cell.place(line)), users)
        return [
            Note(
                f"{place}: {what} by {', '.join(users)}; a person should look at what it does.",
                ask_person=True,
            )
            for (what, place), users in users_by_use.items()
        ]

    def _uses(self, unit: Unit) -> Iterator[tuple[str, int, bool]]:
        """(what is done, line, whether it is done when the statement is executed) for each use."""
        for reference in unit.references.used:
            use = self._use_of(reference)
            if use:
                yield use, reference.line, reference.eager
        for computed in unit.references.computed:
            yield self._lookup_of(computed), computed.line, computed.eager

    def _use_of(self, reference: Reference) -> str:
        """The use of a reference that is pointed out; empty for most."""
        path = ".".join(part for part in reference.path if part)
        root = reference.path[0]
        free = root != ANYTHING and not reference.absolute and root not in self._bound
        if (free and root in UNBOUND) or ATTRIBUTES & set(reference.path[1:]):
            return f"{path} is used"
        if free and root in BUILTINS and not reference.called:
            return f"{path} is handed on as a value"
        for name in self._names(reference, free):
            if name == HUB_WEIGHTS and reference.file.rpartition("/")[2] in self._cached:
                continue  # what it would download is already there, and comes from the course
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

    def _is_handed_on(self, name: str, is_value: bool) -> bool:
        """Whether a module that holds forbidden parts or pries, or the names in it, are used as a value."""
        module, names, _ = name.partition(".__dict__")
        return (is_value or bool(names)) and any(
            home in self._homes or home in MODULES for home in homes(module)
        )

    def _names(self, reference: Reference, free: bool) -> Iterable[str]:
        names = self._aliases.dotted(reference, imported_only=True)
        if free and not names and reference.path[0] not in KNOWN:
            return [f"{module}.{'.'.join(reference.path)}" for module in self._stars]
        return names

    def _lookup_of(self, computed: Computed) -> str:
        if any(computed.base):
            return f"a name of {'.'.join(computed.base)} that is computed is resolved ({computed.function})"
        return f"a name that is computed is resolved ({computed.function})"


def _users(unit: Unit, executed: bool, reaches: Mapping[str, Reach]) -> list[str]:
    """Who reaches a use: graded names, or else the training, or else the loading."""
    users = [name for name, reach in reaches.items() if unit.index in reach.units]
    graded_names = [name for name in users if name not in (TRAINING, LOADING)]
    if graded_names or TRAINING in users:
        return graded_names or [TRAINING]
    return [LOADING] if executed or LOADING in users else []


# --- written data ----------------------------------------------------------------------------------------


MUCH = 6000  # bits; docs/security.md says what fits below it
SHOWN = 3  # statements that are pointed out: those that hold the most
WORDS = frozenset(resources.files("grader.analysis").joinpath("words.txt").read_text("utf-8").split("\n")[1:])

# what costs nothing because every homework has it
FREE_WORDS = 500  # known words
FREE_CONSTANTS = 600
FREE_NAMES = 6000  # every use of a name counts
FREE_NODES = 150  # of the syntax tree, in blocks of statements that are alike
FREE_LINES = 2  # from the end of a token or statement to the next
FREE_SPELLINGS = 600  # signs and breaks that change nothing of what is executed

# in bits
WORD = math.log2(len(WORDS))
LETTER, DIGIT, MARK = math.log2(26), math.log2(10), 4.0
CAPITAL, SPACE, SAME, AGAIN = (
    1.0,
    0.5,
    0.5,
    5.0,
)  # `SAME` as the sign before; `AGAIN`: a word that came before
ALPHABET, FOREIGN_LETTER, OTHER = 6.0, 5.0, 12.0  # a change of alphabet, its letter; a sign of no alphabet
TOKEN = 2.5  # what the choice among a few names or constants holds
SPELLING = 2.0  # what a sign or break holds that might as well not be there
UNKNOWN_IN_PROSE = 1 / 3  # the share of an unknown word that counts: people write in many languages

BETWEEN_LINES = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
LONGEST_WORD = 24  # letters
LAST_ALPHABET = "\u2e7f"  # signs after it stand for syllables and words
DIGITS, USUAL_MARKS = "0123456789", ".,:;!?)'-"
SIGNS = (("a-z", 26), ("A-Z", 26), ("0-9", 10), ("!-/:-@[-`{-~", 32))
KINDS = tuple((re.compile(f"[{signs}]"), size) for signs, size in SIGNS)
QUOTES = re.compile(r"^[A-Za-z]{0,2}(?:\"{3}|'{3}|[\"'])|[\"']{1,3}$")
RUNS = re.compile(r"\s|\S+")
PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[A-Z]|[0-9]+|[^\W\d_a-zA-Z]+|.", re.DOTALL)


@dataclass(frozen=True)
class Held:
    """The amount of data that a statement adds to that of the statements before it, in bits."""

    place: Place
    bits: float


def written_data(program: Program) -> tuple[Note, ...]:
    """Notes on the statements that hold the most data, if a program holds much data in all."""
    amounts = data_held(program)
    total = sum(amount.bits for amount in amounts)
    if total <= MUCH:
        return ()
    most, *following = sorted(amounts, key=lambda amount: -amount.bits)[:SHOWN]
    return tuple(
        Note(
            f"{amount.place}: the program's constants and names hold about {_amount(total)} of data, of "
            f"which {_amount(amount.bits)} are written out here; a person should find out why.",
            ask_person=True,
        )
        for amount in (most, *(amount for amount in following if amount.bits > total / 10))
    )


def _amount(bits: float) -> str:
    return f"{bits / 8000:.1f} kB"


def data_held(program: Program) -> tuple[Held, ...]:
    """The amount of data in each statement and expression that a worker gets."""
    counter = _Amount()
    ends: dict[str, int] = {}
    statements = dict.fromkeys((*program.statements, *program.recipe.all_statements))
    # what is executed again, changed in some places, holds no more than before
    places = {statement.place for statement in statements}
    statements |= {
        statement: None for statement in program.script.statements if statement.place not in places
    }
    files = sorted({program.file, *(statement.place.file for statement in statements)})
    amounts = [Held(Place(file, 1), counter.of_name(file)) for file in files]
    for statement in statements:
        place = statement.place
        bits = _of_lines(place.line - ends.get(place.file, place.line)) + counter.of(statement.source)
        ends[place.file] = place.line + statement.source.count("\n")
        amounts.append(Held(place, bits))
    tuned_at = next((value.place for value in program.tuned), Place(program.file, 1))
    expressions = dict.fromkeys(program.recipe.expressions)
    return (*amounts, *(Held(tuned_at, counter.of(expression)) for expression in expressions))


@dataclass(frozen=True)
class _Block:
    """The nodes of a block of statements, without those of blocks within it.

    Attributes:
        kinds: Their types.
        symbols: The type of each, and the names in it.
    """

    kinds: frozenset[type[ast.AST]]
    symbols: tuple[str, ...]


class _Amount:
    """Counts the data that the statements of a program hold, one after the other."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._pieces: set[str] = set()
        self._words = self._constants = self._names = self._spellings = 0
        self._orders: defaultdict[frozenset[type[ast.AST]], Counter[str]] = defaultdict(Counter)

    def of(self, source: str) -> float:
        """What a statement adds, in bits."""
        before: Token | None = None
        blocks, all_tokens = _read(source)
        bits = sum(map(self._of_order, blocks))
        for token, next_token in pairwise([*all_tokens, all_tokens[-1]]):
            begins = before is None or before.kind in BETWEEN_LINES
            is_docstring = begins and next_token.kind == tokenize.NEWLINE
            bits += self._of_token(token, is_docstring=is_docstring)
            bits += self._of_layout(before, token) if before is not None else 0.0
            before = token
        return bits

    def of_name(self, name: str) -> float:
        """What the name of a file adds, in bits."""
        return self._of_text(name, is_prose=False)

    def _of_layout(self, before: Token, token: Token) -> float:
        """What a line or sign between two tokens holds that changes nothing of what is executed."""
        apart = token.line - before.end_line
        spellings = (
            apart > 0 and before.kind not in BETWEEN_LINES,
            token.text in (";", "elif"),
            token.text in CLOSING and before.text == ",",
            token.text == "(" and not before.ends_operand,
        )
        bits = 0.0
        for _ in range(sum(spellings)):
            self._spellings += 1
            bits += SPELLING * (self._spellings > FREE_SPELLINGS)
        return bits + _of_lines(apart)

    def _of_order(self, block: _Block) -> float:
        """What the order of nodes holds in displays, operators, arguments, patterns and statements.

        Blocks of the same kinds of nodes count as one, since a list may be cut into many small ones.
        """
        counts = self._orders[block.kinds]
        bits, number = 0.0, counts.total()
        for symbol in block.symbols:
            number += 1
            if number > FREE_NODES:
                bits += math.log2(number / counts[symbol]) if counts[symbol] else 1
            counts[symbol] += 1
        return bits

    def _of_token(self, token: Token, *, is_docstring: bool) -> float:
        """What a token adds: its text, if it is new, and its position, if there are very many tokens."""
        bits = 0.0
        if token.kind == tokenize.NAME and not keyword.iskeyword(token.text):
            self._names += 1
            bits += TOKEN * (self._names > FREE_NAMES)
        elif token.kind in (tokenize.NUMBER, tokenize.STRING) or token.text in ("True", "False", "None"):
            self._constants += 1
            bits += TOKEN * (self._constants > FREE_CONSTANTS)
        else:
            return 0.0
        if token.text in self._texts:
            return bits
        self._texts.add(token.text)
        return bits + self._of_text(QUOTES.sub("", token.text), is_prose=is_docstring)

    def _of_text(self, text: str, *, is_prose: bool) -> float:
        return sum(self._of_run(run, is_prose=is_prose) for run in RUNS.findall(text))

    def _of_run(self, run: str, *, is_prose: bool) -> float:
        """What signs without a blank between them hold."""
        kinds = [size for kind, size in KINDS if kind.search(run)]
        mixed = math.log2(sum(kinds)) if len(kinds) > 2 else 0.0  # then each sign may be of any kind
        is_prose = is_prose and not any(map(str.isdigit, run))
        bits, before = 0.0, ""
        for piece in PIECES.findall(run):
            if piece.isalpha():
                bits += self._of_word(piece, before, mixed, is_prose=is_prose)
            elif piece[0] in DIGITS:
                bits += max(DIGIT, mixed) * len(piece)
            elif piece == before:
                bits += SAME
            elif piece.isspace() or piece == "_":
                bits += SPACE
            elif before.isalpha() and piece in USUAL_MARKS:
                bits += 1
            else:
                bits += max(MARK, mixed) if piece.isascii() else OTHER
            before = piece
        return bits

    def _of_word(self, word: str, before: str, mixed: float, *, is_prose: bool) -> float:
        lowered = word.lower()
        if lowered in WORDS:
            self._words += not is_prose
            return WORD * (self._words > FREE_WORDS and not is_prose)
        if len(word) > 2 and lowered in self._pieces:
            return AGAIN
        self._pieces.add(lowered)
        if word.isascii():
            bits = max(LETTER, mixed) * len(word) + CAPITAL * (word != lowered)
        else:
            bits = sum(FOREIGN_LETTER if letter <= LAST_ALPHABET else OTHER for letter in word)
            alphabets = [ord(letter) >> 7 for letter in before[-1:] + word]
            bits += ALPHABET * sum(left != right for left, right in pairwise(alphabets))
        return bits * (UNKNOWN_IN_PROSE if is_prose and not mixed and len(word) <= LONGEST_WORD else 1)


@remembered(500)
def _read(source: str) -> tuple[tuple[_Block, ...], tuple[Token, ...]]:
    """The blocks of a text, those within others after them, and its tokens."""
    return tuple(_blocks(ast.parse(source).body)), tuple(tokens(source))


def _blocks(block: Iterable[ast.AST]) -> Iterator[_Block]:
    symbols: list[str] = []
    kinds: set[type[ast.AST]] = set()
    inner: list[list[ast.stmt]] = []
    stack = [*block][::-1]
    while stack:
        node = stack.pop()
        symbol, children, blocks = _parts(node)
        symbols.append(symbol)
        kinds.add(type(node))
        stack += reversed(children)
        inner += blocks
    yield _Block(frozenset(kinds), tuple(symbols))
    for statements in inner:
        yield from _blocks(statements)


def _parts(node: ast.AST) -> tuple[str, list[ast.AST], list[list[ast.stmt]]]:
    """A node's type and names, the nodes in it, and the blocks of statements in it."""
    symbol = [type(node).__name__]
    children: list[ast.AST] = []
    blocks: list[list[ast.stmt]] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if name in ("ctx", "kind") or value is None or value == []:
            continue
        if isinstance(value, list) and isinstance(value[0], ast.stmt):
            blocks.append(value)
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.AST):
                children.append(item)
            else:
                symbol.append(repr(item))
    return " ".join(symbol), children, blocks


def _of_lines(apart: int) -> float:
    return math.log2(apart) if apart > FREE_LINES else 0.0
