"""What students can install holds the engine and no answers: wheel and source distribution, unpacked."""

import re
import sys
from email.parser import BytesParser
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from distribution.answers import Answers
from distribution.conftest import SECRET, Distributions, unpacked_wheel

from grader.course import student_template as student_wheel_module
from grader.course.student_template import is_student_wheel, student_wheel, write_student_wheel
from grader.domain.errors import UsageError

# what the engine and a course say alike, and which gives nothing away
_SHARED = (
    "Counts, (true classes, predicted classes).",
    "raise Mismatch(run.message, hint=run.hint, diagnosis=run.diagnosis, where=run.where)",
    "LABEL_SMOOTHING = 0.1  # without label smoothing: 0.0",
)
_WHEEL_FILES = re.compile(r"grader/.+|vit_grader-[\d.]+\.dist-info/(METADATA|WHEEL|RECORD|\w+\.txt)")
_SDIST_FILES = re.compile(
    r"grader/.+|vit_grader\.egg-info/.+|PKG-INFO|README\.md|MANIFEST\.in|pyproject\.toml|setup\.cfg"
)
_ENGINE_FILE = re.compile(
    r".+\.(py|j2|css)|grader/language/catalogs/\w+\.po|grader/py\.typed|grader/analysis/words\.txt|.+/beginnings/.+\.txt"
    r"|grader/web/static/(console\.js|htmx-[\w.-]+)"
)
_BEGINNINGS = "grader/course/beginnings/"  # small assignments of nobody's: instructors install them


@pytest.fixture(scope="module")
def answers(course_root: Path) -> Answers:
    found = Answers(course_root, "vit_defects")
    # or the tests look for nothing
    assert len(found.lines) > 1000 and len(found.pairs) > 2000 and len(found.sentences) > 500
    return found


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The wheel that `grader template` puts into the students' folder, unpacked."""
    name, content = student_wheel()
    return unpacked_wheel(content, tmp_path_factory.mktemp("handed_out") / name)


@pytest.fixture(params=["wheel", "sdist", "handed_out"])
def files(request: pytest.FixtureRequest, distributions: Distributions, handed_out: dict[str, bytes]):
    return handed_out if request.param == "handed_out" else getattr(distributions, request.param)


def leaks(answers: Answers, files: dict[str, bytes]) -> list[str]:
    found = answers.given_away(files)
    return [leak for leak in found if not any(shared in leak for shared in _SHARED)]


def test_nothing_but_the_engine_is_in_it(distributions: Distributions, handed_out: dict[str, bytes]) -> None:
    for files in (distributions.wheel, handed_out):
        assert not [name for name in files if not _WHEEL_FILES.fullmatch(name)]
    assert not [name for name in distributions.sdist if not _SDIST_FILES.fullmatch(name)]
    for files in (distributions.wheel, handed_out, distributions.sdist):
        engine = [name for name in files if name.startswith("grader/")]
        assert len(engine) > 250 and not [name for name in engine if not _ENGINE_FILE.fullmatch(name)]


def test_no_answer_is_in_it(answers: Answers, files: dict[str, bytes]) -> None:
    engine = {name: content for name, content in files.items() if not name.startswith(_BEGINNINGS)}
    assert leaks(answers, engine) == []


def test_students_do_not_get_what_assignments_begin_with(handed_out: dict[str, bytes]) -> None:
    assert not [name for name in handed_out if name.startswith(_BEGINNINGS)]


def test_the_secret_is_not_in_it(files: dict[str, bytes]) -> None:
    assert not [name for name, content in files.items() if SECRET.encode() in content]


@pytest.mark.parametrize(
    "leaking",
    [
        "reference/vit_defects/solution.py",
        "reference/vit_defects/checks/test_attention.py",
        "reference/vit_defects/trained/test_trained_model.py",
        "reference/vit_defects/mistakes/missing_scale.py",
        "reference/vit_defects/oracle/around.py",
        "reference/vit_defects/comments.toml",
        "reference/vit_defects/forms/vit_unfold.py",
    ],
)
def test_an_answer_would_be_found(answers: Answers, course_root: Path, leaking: str) -> None:
    """Under whatever name it comes, and also where only a piece of it came along."""
    content = (course_root / leaking).read_bytes()
    assert leaks(answers, {"grader/kit/transformers/layers.py": content})
    lines = content.decode().splitlines()
    for begin in range(0, len(lines) - 30, 30):
        piece = "\n".join(f"        {line.strip()}" for line in lines[begin : begin + 30])
        public = leaking.endswith("solution.py")  # where a piece may hold nothing but what students have
        assert public or leaks(answers, {"grader/x.py": piece.encode()})


def test_the_sentence_of_a_mistake_would_be_found_however_it_is_wrapped(
    answers: Answers, course_root: Path
) -> None:
    text = (course_root / "reference/vit_defects/mistakes/accuracy_mean_of_batches.py").read_text("utf-8")
    sentence = " ".join(text.split('"""')[1].split("\n\n")[0].split())
    first, second = sentence[:50], sentence[50:]
    assert leaks(answers, {"grader/x.py": f'MESSAGE = (\n    "{first}"\n    "{second}"\n)\n'.encode()})


def test_the_wheel_that_is_handed_out_is_the_one_that_setuptools_builds(
    distributions: Distributions, handed_out: dict[str, bytes]
) -> None:
    built = {
        name: content for name, content in distributions.wheel.items() if not name.startswith(_BEGINNINGS)
    }
    assert handed_out.keys() == built.keys()
    [information] = {name.split("/")[0] for name in built if ".dist-info/" in name}
    own = {f"{information}/{name}" for name in ("METADATA", "WHEEL", "RECORD")}
    assert not [name for name in built.keys() - own if built[name] != handed_out[name]]
    headers = BytesParser().parsebytes
    # the description is the README, which changes without an installation
    assert (
        headers(built[f"{information}/METADATA"]).items()
        == headers(handed_out[f"{information}/METADATA"]).items()
    )


def test_the_same_grader_gives_the_same_bytes() -> None:
    assert student_wheel() == student_wheel()


def test_the_wheel_takes_the_place_of_older_ones(tmp_path: Path) -> None:
    for name in ("vit_grader-0.0.1-py3-none-any.whl", "another-1.0-py3-none-any.whl", "notes.txt"):
        (tmp_path / name).write_text("")
    written = write_student_wheel(tmp_path)
    assert is_student_wheel(written.name)
    assert {path.name for path in tmp_path.iterdir()} == {
        written.name,
        "another-1.0-py3-none-any.whl",
        "notes.txt",
    }


def test_a_grader_that_was_not_installed_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(student_wheel_module, "DISTRIBUTION", "vit-grader-of-nobody")
    with pytest.raises(UsageError, match=r"was not installed.*python -m pip install"):
        student_wheel()


def test_a_grader_of_another_version_than_was_installed_is_not_handed_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("grader.__version__", "99.0")
    with pytest.raises(UsageError, match=r"is version 99\.0, and was installed as"):
        student_wheel()


def test_what_else_lies_in_the_package_is_not_handed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "grader"
    names = ("notes.toml", "solution.ipynb", "weights.pth", "a.py~", ".hidden.py", "__pycache__/a.pyc")
    for name in ("__init__.py", "reports/page.css", *names):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("")
    monkeypatch.setattr("grader.__file__", str(package / "__init__.py"))
    files = unpacked_wheel(student_wheel()[1], tmp_path / "a.whl")
    assert {name for name in files if name.startswith("grader/")} == {
        "grader/__init__.py",
        "grader/reports/page.css",
    }


def test_what_building_left_beside_the_source_is_not_taken_for_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handed_out: dict[str, bytes]
) -> None:
    """`pip install --editable` leaves an `.egg-info` there, which Python finds first."""
    left = tmp_path / "vit_grader.egg-info"
    left.mkdir()
    (left / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: vit-grader\nVersion: 0.1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    name, content = student_wheel()
    assert unpacked_wheel(content, tmp_path / name) == handed_out
