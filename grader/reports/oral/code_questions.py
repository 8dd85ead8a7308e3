"""Questions about a student's own lines and the numbers of the model, whatever the assignment is about.

Lines are worth a question if they name an axis, change the order or the shape of a tensor, or compute
something. Questions of the assignment's own about certain parts are filled in as well (`OralQuestion`): one
is asked only if the line, the numbers and the mistake that it speaks of are there.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from grader.course.oral_questions import PART, PLACEHOLDER
from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.formatting import as_code, named, quantity
from grader.domain.oral_check import OralQuestion
from grader.domain.size_formula import SizeFormula
from grader.reports.oral.chosen_questions import QuestionKind, SheetQuestion, rank
from grader.reports.oral.own_code import CodeStatement, OwnPart, beginning, code_beside

# what changes the order or the shape of a tensor, by the names of PyTorch, NumPy and einops
_ORDERING = frozenset(
    {
        *("transpose", "permute", "swapaxes", "movedim", "rearrange", "Rearrange", "reshape", "view"),
        *("flatten", "Flatten", "unflatten", "chunk", "split", "unfold", "einsum"),
    }
)
_COMPUTING = frozenset({"MatMult", "Div", "FloorDiv", "Pow"})
_FEW_NUMBERS = 100  # in a layer: fewer are hardly worth computing

_AXIS_NOTE = (
    "They say what each axis of the tensor stands for at this line, with its size, and whether another axis "
    "would give an error, or a wrong result without an error."
)
_ORDER_NOTE = (
    "They name every axis before and after, with sizes. A reshape keeps the order of the numbers in memory "
    "and cuts it anew; exchanging axes changes which numbers lie side by side."
)
_LINE_NOTE = (
    "They know what each name holds, with its shape or type, and what the rest of the part would do without "
    "the line. Whoever wrote it has usually seen it fail once."
)
_PART_NOTE = (
    "They go through it without reading it aloud, name the shapes on the way, and tell of a decision or a "
    "mistake of their own."
)
_LAYER_NOTE = (
    "A linear layer from a to b features has a * b numbers, and b more with a bias; a convolution its "
    "kernel's area times the channels in and out, and a bias; a normalization two for each feature. The "
    "sizes are in their own code."
)


def line_questions(evidence: Evidence, parts: Sequence[OwnPart], seed: str) -> Iterator[SheetQuestion]:
    """Questions about single lines: at most one of each sort for each part.

    Args:
        parts: What the student wrote.
        seed: Chooses among the lines of a part.
    """
    for part in parts:
        statements = sorted(part.statements, key=lambda line: rank(seed, f"{line.place} {line.text}"))
        for sort, suitable in (
            ("axis", [line for line in statements if line.axes]),
            ("order", [line for line in statements if _ORDERING.intersection(line.calls)]),
            ("line", [line for line in statements if _COMPUTING & line.operators]),
            ("line", [line for line in statements if line.calls]),
        ):
            if suitable:
                yield _about_line(evidence, part, sort, suitable[0])
        text = (
            f"Explain {named(part.name)} from what goes in to what comes out. Which line was the hardest to "
            "get right, and why?"
        )
        yield SheetQuestion(
            QuestionKind.CODE,
            f"part {part.name}",
            part.component,
            text,
            _PART_NOTE,
            beginning(evidence, part),
            str(part.place),
        )


def _about_line(evidence: Evidence, part: OwnPart, sort: str, line: CodeStatement) -> SheetQuestion:
    name = named(part.name)
    if sort == "axis":
        call, axis = line.axes[0]
        text = (
            f"In {name}, over which axis does {as_code(f'{call}({axis})')} run, and what does that axis "
            "stand for? What would change over another one?"
        )
        note = _AXIS_NOTE
    elif sort == "order":
        text = (
            f"In {name}, what is the shape before and after this line, axis by axis? Which numbers would end "
            "up side by side if only the sizes were changed, and no axes exchanged?"
        )
        note = _ORDER_NOTE
    else:
        text = (
            f"In {name}, what does this line compute, and from what? What would happen without it: an error, "
            "or a wrong result without an error?"
        )
        note = _LINE_NOTE
    return SheetQuestion(
        QuestionKind.CODE,
        f"{sort} {line.place} {line.text}",
        part.component,
        text,
        note,
        code_beside(evidence, line.place, line.last_line),
        str(line.place),
    )


def layer_questions(evidence: Evidence) -> Iterator[SheetQuestion]:
    """Questions about the numbers in layers of the model, one for each type and size of layer."""
    seen: set[tuple[str, int]] = set()
    for layer in evidence.layers:
        kind = layer.type, layer.parameters
        if layer.parameters < _FEW_NUMBERS or not layer.path or kind in seen or evidence.parameters is None:
            continue
        seen.add(kind)
        text = (
            f"Your model learns {quantity(evidence.parameters)} numbers. {quantity(layer.parameters)} of "
            f"them are in {named(layer.path)} ({named(layer.type)}). How does this number come about, and "
            "which of your sizes change it?"
        )
        yield SheetQuestion(QuestionKind.SIZE, f"layer {layer.path}", "layers", text, _LAYER_NOTE)


# --- questions of the assignment -------------------------------------------------------------------------


def assigned_questions(
    assignment: Assignment, evidence: Evidence, parts: Sequence[OwnPart], mistakes: Collection[str]
) -> Iterator[SheetQuestion]:
    """The questions that the assignment brings and that fit this work.

    Args:
        parts: What the student wrote.
        mistakes: The ids of those that were found in this work, now or earlier.
    """
    by_component = {part.component: part for part in parts}
    for question in assignment.oral_questions:
        part = by_component.get(question.component)
        if (question.component and part is None) or (
            question.after and not set(question.after) & set(mistakes)
        ):
            continue
        line = _called_line(part, question.calls)
        if question.calls and line is None:
            continue
        defaults = [each.defaults for each in (part, by_component.get(assignment.model)) if each is not None]
        numbers = chosen_numbers(evidence, defaults)
        text, note = (
            _filled(question.text, question, numbers, part),
            _filled(question.note, question, numbers, part),
        )
        if text is None or note is None:
            continue
        place, lines = (
            part.place if part is not None else None,
            beginning(evidence, part) if part is not None else (),
        )
        if line is not None:
            place, lines = line.place, code_beside(evidence, line.place, line.last_line)
        yield SheetQuestion(
            QuestionKind.PART,
            f"assigned {question.id}",
            question.component or question.id,
            text,
            note,
            lines,
            "" if place is None else str(place),
        )


def chosen_numbers(evidence: Evidence, defaults: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Name -> the whole number that the student chose for it, or gives as a default.

    A size that is written for both sides (`28 x 28`) is one number.

    Args:
        defaults: Of the parts in question; later ones stand before earlier ones.
    """
    numbers = {name: number for each in defaults for name, number in each.items()}
    for value in evidence.chosen:
        sides = {side.strip() for side in value.value.split("x")}
        text = sides.pop()
        if not sides and text.isascii() and text.isdecimal() and len(text) < 10:
            numbers[value.name] = int(text)
        else:
            numbers.pop(value.name, None)  # the default is not what was chosen
    return numbers


def _called_line(part: OwnPart | None, calls: Sequence[str]) -> CodeStatement | None:
    """The first line of a part that calls one of these."""
    statements = part.statements if part is not None else ()
    return next((line for line in statements if set(calls) & set(line.calls)), None)


def _filled(
    text: str, question: OralQuestion, numbers: Mapping[str, int], part: OwnPart | None
) -> str | None:
    """A text of the assignment with what its placeholders stand for; None if something is not known."""
    known = {name: str(number) for name, number in numbers.items()}
    for name, formula in question.values:
        value = SizeFormula.read(formula).value(numbers)
        known.pop(name, None)  # what is computed stands before what was chosen
        if value is not None:
            known[name] = str(value)
    if part is not None:
        known[PART] = named(part.name)
    pieces = PLACEHOLDER.split(text)
    if any(name not in known for name in pieces[1::2]):
        return None
    return "".join(known[piece] if index % 2 else piece for index, piece in enumerate(pieces))
