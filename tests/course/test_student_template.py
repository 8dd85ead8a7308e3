"""What students receive: complete, kind, and without a line of the solution."""

import ast
import json
import tomllib
from pathlib import Path

import nbformat
import pytest

from grader.course.locate import located_course
from grader.course.reference_solution import homework_source, regions, solved_source
from grader.course.student_template import (
    handed_out_copy,
    notebook,
    public_settings,
    student_files,
    write_template,
)
from grader.domain.errors import CourseError

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "reference" / "vit_defects"
NAME = "reference/vit_defects/solution.py"
COMMON_LINES = {"with torch.no_grad():"}

TINY_SOLUTION = """\
# >>> INSTRUCTORS
# not for students
# <<<
# %% [markdown]
# # Title
#
# Text.

# %%
import math

# >>> SOLUTION
def helper():
    return math.pi


# <<<
class Part:
    \"\"\"A part.\"\"\"

    def __init__(self, dim):
        super().__init__()
        # >>> TODO Part.__init__: keep the "dim"
        # hint: an attribute does.
        self.width = dim
        # <<<

    def forward(self, x):
        # >>> TODO Part.forward: return x
        return x + 0
        # <<<


# >>> INSTEAD rate = 1
# >>> INSTEAD
# >>> INSTEAD epochs = 2
rate = helper()
epochs = 50
# <<<
"""

TINY_HOMEWORK = """\
# %% [markdown]
# # Title
#
# Text.

# %%
import math

class Part:
    \"\"\"A part.\"\"\"

    def __init__(self, dim):
        super().__init__()
        # Hint: an attribute does.
        raise NotImplementedError("TODO Part.__init__: keep the \\"dim\\"")

    def forward(self, x):
        raise NotImplementedError("TODO Part.forward: return x")


rate = 1

epochs = 2
"""


@pytest.fixture
def solution() -> str:
    return (REFERENCE / "solution.py").read_text(encoding="utf-8")


@pytest.fixture
def tiny_course(tmp_path: Path) -> Path:
    """A course of one small assignment; returns the assignment's folder."""
    folder = tmp_path / "reference" / "tiny"
    (folder / "checks").mkdir(parents=True)
    (tmp_path / "datasets").mkdir()
    (folder / "solution.py").write_text(TINY_SOLUTION)
    (folder / "student_readme.md").write_text("# Read this\n")
    (folder / "checks" / "test_public.py").write_text('"""Public checks."""\n')
    (folder / "assignment.toml").write_text(
        'id = "tiny"\n\n# >>> instructors only\n[secret]\nanswer = 42\n# <<<\n\n'
        '[data]\nreal = "photos"\nsynthetic = "drawings"\n'
    )
    for name in ("photos", "drawings"):
        (tmp_path / "datasets" / f"{name}.py").write_text(f"NAME = {name!r}\n")
    return folder


def solution_lines(solution: str) -> set[str]:
    """The lines, stripped, that only the solution has (short ones like `)` say nothing)."""
    marked = {line.strip() for region in regions(solution, NAME) for line in region.body}
    given = solution.split("\n")
    for region in reversed(regions(solution, NAME)):
        del given[region.line - 1 : region.end]
    shared = {line.strip() for line in given} | COMMON_LINES
    return {line for line in marked - shared if len(line) > 12}


def functions(source: str) -> dict[str, ast.FunctionDef]:
    """Qualified name -> definition, of the top-level functions and of the methods."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{sub.name}": sub for sub in node.body if isinstance(sub, ast.FunctionDef)}
    return found


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def files_in(folder: Path) -> dict[str, str]:
    """Name -> text, byte for byte: a changed line ending is seen."""
    paths = (
        path
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".whl"
    )
    return {path.relative_to(folder).as_posix(): path.read_bytes().decode("utf-8") for path in paths}


def committed_files() -> dict[str, str]:
    """What the committed template holds: this term's values, where the assignment draws any."""
    copy = handed_out_copy(located_course(ROOT, environment={}), "vit_defects")
    return student_files(REFERENCE, copy=copy)


def test_template_is_what_the_reference_makes() -> None:
    present, made = files_in(ROOT / "template" / "vit_defects"), committed_files()
    differing = sorted(name for name in present.keys() | made if present.get(name) != made.get(name))
    assert not differing, f"run: make template (or remove what the reference does not make): {differing}"


def test_no_line_of_the_solution_reaches_students(solution: str) -> None:
    secret = solution_lines(solution)
    assert len(secret) > 80  # or the test looks at nothing
    files = {
        path.name: path.read_text(encoding="utf-8")
        for path in (ROOT / "template" / "vit_defects").glob("*.*")
        if path.suffix != ".whl"  # tests/distribution unpacks it
    }
    files["homework.py made now"] = homework_source(solution, NAME)
    files["student_readme.md"] = (REFERENCE / "student_readme.md").read_text(encoding="utf-8")
    for name, text in files.items():
        if name.endswith(".ipynb"):
            text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
        leaked = secret.intersection(line.strip() for line in text.splitlines())
        assert not leaked, f"{name} gives the solution away"


def test_every_component_is_a_stub_with_its_signature_and_docstring(solution: str) -> None:
    homework = homework_source(solution, NAME)
    stubs, originals = functions(homework), functions(solution)
    components = tomllib.loads((REFERENCE / "assignment.toml").read_text())["component"]
    assert len(components) == 9
    for component in components:
        kind, name = component["kind"], component["name"]
        tree = next(node for node in ast.parse(homework).body if getattr(node, "name", "") == name)
        assert isinstance(tree, ast.ClassDef | ast.FunctionDef)
        assert len(ast.get_docstring(tree) or "") > 80
        for method in (f"{name}.__init__", f"{name}.forward") if kind == "class" else (name,):
            stub = stubs[method]
            assert ast.dump(stub.args) == ast.dump(originals[method].args)
            *before, last = stub.body
            assert {ast.unparse(node) for node in before if not is_text(node)} <= {"super().__init__()"}
            assert isinstance(last, ast.Raise)
            assert ast.unparse(last).startswith(f"raise NotImplementedError('TODO {method}: ")
        declared = ast.parse(f"def stub({component['signature']}): ...").body[0]
        assert isinstance(declared, ast.FunctionDef)
        entrance = stubs[f"{name}.__init__" if kind == "class" else name].args
        if kind == "class":
            entrance.args = entrance.args[1:]  # without self
        assert ast.unparse(entrance).replace(" ", "") == ast.unparse(declared.args).replace(" ", "")


def test_template_keeps_the_defaults_of_the_handout(solution: str) -> None:
    homework = homework_source(solution, NAME)
    lines = homework.splitlines()
    assert "optimizer = optim.Adam(model.parameters(), lr=0.003)" in lines
    assert "N_EPOCHS = 1" in lines
    assert (
        "model = ViT(image_size=28, patch_size=4, num_classes=6, channels=1, "
        "dim=64, depth=6, heads=4, mlp_dim=128)" in lines
    )
    for word in ("scheduler", "augment", "AdamW", "label_smoothing", "INSTRUCTORS", ">>>", "<<<"):
        assert word not in homework


def test_the_slips_of_the_handout_are_repaired(solution: str) -> None:
    homework = homework_source(solution, NAME)
    assert "transforms.Resize((28, 28))" in homework
    assert "import time\n" in homework
    for name in ("train_loader = ", "test_loader = ", "BATCH_SIZE = ", "sorted("):
        assert name in homework
    assert 'f"{STUDENT_ID}_Lab8_Homework.pth"' in homework


def test_notebook_is_valid_and_says_the_same_as_the_script(solution: str) -> None:
    homework = homework_source(solution, NAME)
    text = notebook(homework, "vit_defects", NAME)
    assert text == notebook(homework, "vit_defects", NAME)
    read = nbformat.reads(text, as_version=4)
    nbformat.validate(read)
    assert (read.nbformat, read.nbformat_minor) == (4, 5)
    code = [cell for cell in read.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert read.cells[0].cell_type == "markdown" and read.cells[0].source.startswith("# Vision Transformer")
    joined = "\n".join(cell.source for cell in code)
    assert ast.dump(ast.parse(joined)) == ast.dump(ast.parse(homework))


def test_solved_source_is_the_solution_without_marks(solution: str) -> None:
    solved = solved_source(solution, NAME)
    assert ast.dump(ast.parse(solved)) == ast.dump(ast.parse(solution))
    for mark in ("# >>>", "# <<<", "# hint:", "Reference solution"):
        assert mark not in solved


def test_each_kind_of_mark_gives_what_it_says() -> None:
    assert homework_source(TINY_SOLUTION, "s") == TINY_HOMEWORK


def test_a_long_todo_goes_over_three_lines() -> None:
    long = "write " + "x" * 80
    source = f"def part():\n    # >>> TODO part: {long}\n    return 1\n    # <<<\n"
    assert homework_source(source, "s") == (
        f'def part():\n    raise NotImplementedError(\n        "TODO part: {long}"\n    )\n'
    )


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = 1\n# <<<\n", 2, "closes no mark"),
        ("# >>> SOLUTION\nx = 1\n", 1, "never closed"),
        ("# >>> SOLUTION", 1, "never closed"),
        ("# >>> INSTEAD x", 1, "never closed"),
        ("# >>> SOLUTION\n# >>> SOLUTION\nx = 1\n# <<<\n", 2, "opens inside the one of line 1"),
        ("# >>> HIDE\nx = 1\n# <<<\n", 1, "not a mark that we know"),
        ("# >>>TODO f: x\nx = 1\n# <<<\n", 1, "stands in the top level"),
        ("def f():\n    # >>> TODO f\n    return 1\n    # <<<\n", 2, "names the place"),
        ("def f():\n    # >>> TODO g: return 1\n    return 1\n    # <<<\n", 2, "stands in f"),
        ("def f():\n    # >>> TODO f: return 1\n    return 1\n# <<<\n", 4, "indented differently"),
        ("# >>> SOLUTION\n\n# <<<\n", 1, "nothing between"),
        ("x = (\n", 1, "not Python"),
    ],
)
def test_a_malformed_mark_is_reported_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(CourseError, match=words) as raised:
        homework_source(text, "solution.py")
    assert str(raised.value).startswith(f"solution.py:{line}: ")


def test_marks_that_tear_a_statement_apart_are_reported() -> None:
    with pytest.raises(CourseError, match="whole statements"):
        homework_source("x = [\n    # >>> SOLUTION\n    1,\n]\n    # <<<\n", "solution.py")


def test_code_in_a_text_cell_is_reported() -> None:
    with pytest.raises(CourseError, match="'x = 1'"):
        notebook("# %% [markdown]\n# text\nx = 1\n", "tiny", "solution.py")


def test_student_files_of_a_small_course(tiny_course: Path) -> None:
    files = student_files(tiny_course)
    assert sorted(files) == [
        "README.md",
        "assignment.toml",
        "datasets/drawings.py",
        "datasets/photos.py",
        "homework.ipynb",
        "homework.py",
        "test_public.py",
    ]
    assert files["homework.py"] == TINY_HOMEWORK
    assert files["datasets/photos.py"] == "NAME = 'photos'\n"
    header, rest = files["test_public.py"].split("\n", 1)
    assert "Generated" in header and rest == '"""Public checks."""\n'
    assert files["assignment.toml"] == 'id = "tiny"\n\n[data]\nreal = "photos"\nsynthetic = "drawings"\n'


def test_public_checks_of_several_files_take_the_place_of_one(tiny_course: Path, tmp_path: Path) -> None:
    """What was generated before goes; what a student wrote under such a name stays."""
    write_template(tiny_course, tmp_path)
    (tmp_path / "test_public_own.py").write_text("# Mine.\n")
    old = tiny_course / "checks" / "test_public.py"
    for name in ("test_public_vit.py", "test_public_plots.py"):
        (tiny_course / "checks" / name).write_text(f'"""Checks of {name}."""\n')
    old.unlink()
    written = {path.name for path in write_template(tiny_course, tmp_path)}
    found = {path.name for path in tmp_path.glob("test_*")}
    assert found == {"test_public_vit.py", "test_public_plots.py", "test_public_own.py"}
    assert found - written == {"test_public_own.py"}


@pytest.mark.parametrize(
    "name",
    [
        "solution.py",
        "student_readme.md",
        "assignment.toml",
        "checks/test_public.py",
        "../../datasets/photos.py",
    ],
)
def test_a_missing_file_is_named_and_nothing_is_written(tiny_course: Path, tmp_path: Path, name: str) -> None:
    (tiny_course / name).unlink()
    with pytest.raises(CourseError, match=f"{Path(name).name} is missing"):
        write_template(tiny_course, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("id = \n", "not TOML"),
        ('[data]\nreal = "../secret"\nsynthetic = "drawings"\n', "does not name the data sets"),
    ],
)
def test_unusable_settings_are_reported(tiny_course: Path, settings: str, words: str) -> None:
    (tiny_course / "assignment.toml").write_text(settings)
    with pytest.raises(CourseError, match=words):
        student_files(tiny_course)


def test_a_file_that_is_not_text_is_reported(tiny_course: Path) -> None:
    (tiny_course / "solution.py").write_bytes(b"x = '\xff'\n")
    with pytest.raises(CourseError, match=r"reference/tiny/solution\.py is not UTF-8"):
        student_files(tiny_course)


def test_a_file_that_cannot_be_read_is_reported(tiny_course: Path) -> None:
    (tiny_course / "student_readme.md").unlink()
    (tiny_course / "student_readme.md").mkdir()
    with pytest.raises(CourseError, match=r"student_readme\.md cannot be read"):
        student_files(tiny_course)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = 1\n# <<<\n", ":2: .* closes no mark"),
        ("# >>> instructors only\na = 1\n", ":1: .* never closed"),
        ("# >>> instructors only\n# >>> instructors only\n# <<<\n", ":2: .* not a mark that can stand here"),
        ("# >>> TODO\n# <<<\n", ":1: .* not a mark that can stand here"),
        ("a = [\n# >>> instructors only\n]\n# <<<\n", "no longer TOML"),
    ],
)
def test_malformed_settings_marks_are_reported(text: str, words: str) -> None:
    with pytest.raises(CourseError, match=words):
        public_settings(text, "assignment.toml")


def test_settings_without_marks_are_copied_as_they_are() -> None:
    text = "# a\n\n\n[data]  # b\nx = 1\n"
    assert public_settings(text, "assignment.toml") == text


def test_what_we_did_not_write_is_not_ours_to_delete(tiny_course: Path, tmp_path: Path) -> None:
    folder = tmp_path / "template" / "tiny"
    assert len(write_template(tiny_course, folder)) == 8
    (folder / "README.md").unlink()
    (folder / "homework.py").write_text(TINY_HOMEWORK.replace("rate = 1", "rate = 3"))
    (folder / "notes.txt").write_text("")
    write_template(tiny_course, folder)
    assert files_in(folder) == {**student_files(tiny_course), "notes.txt": ""}
