"""Data is counted wherever it is written out; homework as it is stays far below what is noted."""

import base64
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grader.analysis import program
from grader.analysis.suspicious_code import MUCH, WORDS, data_held
from grader.course import homework_versions
from grader.course.assignment_file import read_assignment
from grader.course.reference_solution import solved_source
from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.domain.errors import SubmissionError

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "reference" / "vit_defects"
IMAGES = 1800
RANDOM = random.Random(4)
LABELS = [RANDOM.randrange(6) for _ in range(IMAGES)]
BYTES = bytes(RANDOM.randrange(256) for _ in range(3 * IMAGES // 8))  # three bits for each image
HEX = BYTES.hex()
HASHES = bytes(RANDOM.randrange(256) for _ in range(840 * 67 // 8))  # 64 bits and a label for each of 840


@pytest.fixture(scope="module")
def assignment() -> Assignment:
    return read_assignment(REFERENCE)


@pytest.fixture(scope="module")
def solution() -> str:
    """The reference, as a student would hand it in."""
    return solved_source((REFERENCE / "solution.py").read_text(encoding="utf-8"), "solution.py")


@pytest.fixture(scope="module")
def of(assignment: Assignment) -> Callable[[str], Program]:
    """The program of a text."""
    return lambda text: program("homework.py", text.encode(), assignment.program_rules)


def chunks(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def spread(parts: list[str], line: str) -> str:
    """A line for each part."""
    return "\n".join(line.format(number=number, part=part) for number, part in enumerate(parts))


def words(count: int) -> list[str]:
    return RANDOM.choices(sorted(WORDS - {""}), k=count)


TABLES = {  # three bits for each of 1800 images
    "text": f"TABLE = '{''.join(map(str, LABELS))}'",
    "base64": f"TABLE = '{base64.b64encode(BYTES).decode()}'",
    "base85": f"TABLE = {base64.b85encode(BYTES).decode()!r}",
    "bytes": f"TABLE = {BYTES!r}",
    "hexadecimal": f"TABLE = 0x{HEX}",
    "one number": f"TABLE = {int.from_bytes(BYTES)}",
    "five constants": spread(chunks(HEX, 270), "PART_{number} = '{part}'"),
    "forty constants in functions": spread(chunks(HEX, 34), "def f{number}():\n    return '{part}'"),
    "list": f"TABLE = {LABELS}",
    "nested tuples": f"TABLE = {tuple((n, (m,)) for n, m in zip(LABELS[:900], LABELS[900:], strict=True))}",
    "empty containers": "TABLE = ["
    + ",".join(["[]", "()", "{}", "''", "0", "None"][n] for n in LABELS)
    + "]",
    "numbers in many functions": spread(
        [",".join(map(str, LABELS[n : n + 20])) for n in range(0, IMAGES, 20)],
        "def f{number}():\n    return ({part})",
    ),
    "list of names": "a = b = c = d = e = f = 0\nTABLE = [" + ",".join("abcdef"[n] for n in LABELS) + "]",
    "names in many functions": spread(
        [",".join("abcdef"[label] for label in LABELS[n : n + 20]) for n in range(0, IMAGES, 20)],
        "def f{number}():\n    return ({part})",
    ),
    "identifiers": spread(chunks(HEX, 30), "x_{part} = 1"),
    "keywords": f"TABLE = dict({', '.join(f'k{part}=1' for part in chunks(HEX, 30))})",
    "attributes": "def f(x):\n    return " + ", ".join(f"x.a{part}" for part in chunks(HEX, 30)),
    "arguments": f"def f({', '.join(f'a{part}' for part in chunks(HEX, 30))}):\n    pass",
    "defaults": f"def f({', '.join(f'a{n}={label}' for n, label in enumerate(LABELS))}):\n    pass",
    "annotations": f"def f({', '.join(f'a{n}: {label}' for n, label in enumerate(LABELS))}):\n    pass",
    "global names": f"def f():\n    global {', '.join(f'g{part}' for part in chunks(HEX, 30))}",
    "deleted names": f"def f(x):\n    del {', '.join(f'x.d{part}' for part in chunks(HEX, 30))}",
    "imports": f"from math import {', '.join(f'pi as p{part}' for part in chunks(HEX, 30))}",
    "patterns": f"def f(x):\n    match x:\n        case {' | '.join(map(str, LABELS))}:\n            pass",
    "class patterns": "def f(x):\n    match x:\n        case object("
    + ", ".join(f"k{part}=1" for part in chunks(HEX, 30))
    + "):\n            pass",
    "f-strings": "def f(x):\n    return f'" + "".join(f"{{x}}{label}" for label in LABELS) + "'",
    "format specifications": "def f(x):\n    return f'" + "".join(f"{{x:{label}}}" for label in LABELS) + "'",
    "operators": "f = lambda x: " + " ".join(f"x {'+-*/%@'[label]}" for label in LABELS[:700]) + " x\n"
    "g = lambda x: " + " ".join(f"x {'+-*/%@'[label]}" for label in LABELS[700:1400]) + " x",
    "statements": "def f():\n" + "\n".join(f"    {'abcdef'[label]}()" for label in LABELS),
    "blank lines": "def f(x):\n" + "\n".join("    x()" + "\n" * (label + 1) for label in LABELS),
    "lines within a list": "a = 0\nTABLE = [" + ",".join("\n" * (label + 1) + "a" for label in LABELS) + "]",
    "brackets that nothing needs": "a = 0\nTABLE = ["
    + ",".join("(" * label + "a" + ")" * label for label in LABELS)
    + "]",
    "words": f"TABLE = '{' '.join(words(450))}'",
    "words as names": "\n".join(
        f"{one}_{other} = 1" for one, other in zip(words(225), words(225), strict=True)
    ),
    "other alphabets": "TABLE = '" + "".join(chr(0x4E00 + 256 * (n // 3) + n) for n in BYTES[:500]) + "'",
    "types": "def f():\n    x: (" + ", ".join(map(str, LABELS)) + ") = 1",
    "64 bits for each of 840 images": f"TABLE = '{base64.b64encode(HASHES).decode()}'",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_noted_however_it_is_written(
    name: str, solution: str, of: Callable[[str], Program]
) -> None:
    made = of(f"{solution}\n{TABLES[name]}\n")
    notes = [note for note in made.notes if "written out" in note.text]
    assert notes and all(note.ask_person for note in notes), sum(each.bits for each in data_held(made))


def test_what_the_model_is_made_of_counts_too(solution: str, of: Callable[[str], Program]) -> None:
    """The expressions of the recipe stand in no statement that is executed by itself."""
    made = of(solution.replace("dim=64, depth=6", f"dim=len('{base64.b64encode(BYTES).decode()}'), depth=6"))
    assert made.recipe.model is not None and "len(" in made.recipe.model
    [note] = [note for note in made.notes if "written out" in note.text]
    line = next(n for n, text in enumerate(solution.split("\n"), start=1) if "dim=64, depth=6" in text)
    assert note.text.startswith(f"homework.py:{line}: ")


def test_a_note_names_the_line_and_the_amount(of: Callable[[str], Program]) -> None:
    made = of("class ViT:\n    pass\n\n\n" + TABLES["64 bits for each of 840 images"])
    [note] = [note for note in made.notes if "written out" in note.text]
    assert note.text.startswith("homework.py:5: the program's constants and names hold about 8.")
    assert "kB of data, of which 8." in note.text


@pytest.mark.parametrize(
    "text",
    [
        "# {table}",
        "'''{table}'''",
        "print('{table}')",
        "def f():\n    x = 1\n    '''{table}'''\n    return x  # {table}",
        "if __name__ == '__main__':\n    print('{table}')",
    ],
)
def test_what_no_worker_gets_does_not_count(text: str, solution: str, of: Callable[[str], Program]) -> None:
    """Comments, texts that nothing uses, statements that are not executed: a report printed, answers."""
    table = base64.b64encode(HASHES).decode()
    made = of(f"{solution}\n{text.format(table=table)}\n")
    assert not any("written out" in note.text for note in made.notes)
    assert not any(table in each for each in made.executed_texts)


def test_a_docstring_counts_as_far_as_a_worker_gets_it(of: Callable[[str], Program]) -> None:
    """A thousand letters in all, wherever they stand, cannot hold a table."""
    docstrings = "\n".join(
        f"class C{number}:\n    '''{part}'''" for number, part in enumerate(chunks(HASHES.hex(), 490))
    )
    held = sum(each.bits for each in data_held(of(docstrings)))
    assert 3000 < held < MUCH


def test_the_name_of_a_file_counts(assignment: Assignment) -> None:
    """A program can read it."""

    def held(name: str) -> float:
        made = program(name, b"LABELS = __file__", assignment.program_rules)
        return sum(each.bits for each in data_held(made))

    assert held("400101201_Lab8_Homework.py") < 100
    assert held(f"{HEX[:200]}.py") > held("homework.py") + 800


def honest() -> Iterator[tuple[str, str]]:
    """All complete homeworks that there are: name, text."""
    solution = solved_source((REFERENCE / "solution.py").read_text(encoding="utf-8"), "solution.py")
    yield "solution", solution
    yield "template", (ROOT / "template" / "vit_defects" / "homework.py").read_text(encoding="utf-8")
    for path in sorted((ROOT / "reference" / "vit_defects" / "forms").glob("*.py")):
        yield path.stem, homework_versions.composed(solution, path.read_text(encoding="utf-8"))
    for path in sorted((REFERENCE / "mistakes").glob("*.py")):
        yield path.stem, homework_versions.composed(solution, path.read_text(encoding="utf-8"), after=True)
    for path in sorted((ROOT / "tests" / "training" / "styles").glob("*.py")):
        yield path.stem, path.read_text(encoding="utf-8")
    for path in sorted((REFERENCE / "recipes").glob("*.py")):
        yield path.stem, path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "tests" / "submissions").rglob("homework.py")):
        yield path.parent.name, path.read_text(encoding="utf-8")


@pytest.mark.parametrize("step", [60, pytest.param(1, marks=pytest.mark.slow)])
def test_homework_holds_less_than_half_of_what_is_noted(of: Callable[[str], Program], step: int) -> None:
    """The solution, the template, all forms, mistakes, styles of training, recipes and submissions."""
    held = {}
    for name, text in list(honest())[::step]:
        try:
            held[name] = sum(each.bits for each in data_held(of(text)))
        except SubmissionError:
            continue
    assert len(held) > 200 / step
    assert {name: bits for name, bits in held.items() if bits > MUCH / 2} == {}


LONG = """
def plot_everything(history, names):
    colors = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f"]
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    print("The training is over. The loss on the test images has not become smaller for some epochs now,")
    print("so that the learning rate should be reduced, or the training be ended: see question 7.")
    plt.title("Verlauf der Genauigkeit auf den Trainings- und Testdaten (Lernrate 3e-4, Stapelgröße 64)")
    plt.xlabel("تعداد دوره‌های آموزش"); plt.ylabel("دقت مدل روی داده‌های آزمون (درصد)")
    plt.plot([0.412, 0.533, 0.601, 0.655, 0.702, 0.731, 0.754, 0.768, 0.779, 0.783, 0.791, 0.794])
    path = "/content/drive/MyDrive/Deep Learning/HW3/NEU-CLS.zip"
    link = "https://drive.google.com/uc?id=1qrdZbSqSqPIgBWvzkBqDk0sx5dOY2x0b"
"""


def test_what_students_write_besides_is_no_table(solution: str, of: Callable[[str], Program]) -> None:
    """Colors, links, values from papers, sentences in their own language, figures of an earlier run."""
    made = of(solution + LONG)
    assert not any("written out" in note.text for note in made.notes)
    assert sum(each.bits for each in data_held(made)) < 0.9 * MUCH
