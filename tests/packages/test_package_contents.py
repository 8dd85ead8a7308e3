"""What is in a package, and what never is."""

import json
import re
import shutil
import subprocess
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from grader.cli import cli
from grader.course.assignment_file import read_assignment
from grader.course.locate import located_course
from grader.domain.assignment import Assignment, CheckSpec, Component
from grader.domain.assignment_versions import students_key
from grader.domain.errors import SandboxError, UsageError
from grader.domain.evidence import Attestation
from grader.domain.submission import Role
from grader.grading.run import require_level
from grader.packages.classroom_files import classroom_workflow
from grader.packages.failed_run import NOT_FINISHED
from grader.packages.install_scripts import Sources
from grader.packages.package_contents import assignment_key

LETTERS = Path(__file__).parents[1] / "courses" / "letters"
SECRET = "a secret of the tests: 5e0c1b7f"
KINDS = ("gradescope", "container", "prairielearn", "github")
_HOST = re.compile(rb"https?://([a-z0-9.-]+)")


def run(*arguments: str, secret: str = SECRET) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["package", *arguments], env={"GRADER_SECRET": secret})
    return done.exit_code, done.output


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_small_and_holds_no_secret(made: Callable, kind: str) -> None:
    package = made(kind)
    assert package.path.stat().st_size < 5_000_000
    for name, content in package.files().items():
        assert SECRET.encode() not in content, name


def test_gradescope_finds_its_two_scripts_at_the_root(made: Callable) -> None:
    package = made("gradescope")
    assert {"setup.sh", "run_autograder", "package.json"} <= package.files().keys()
    with zipfile.ZipFile(package.path) as archive:
        for name in ("setup.sh", "run_autograder"):
            assert archive.getinfo(name).external_attr >> 16 & 0o777 == 0o755
    assert "3000 MB, time-out 10 minutes" in package.said
    assert "training, report_quality, q6" in package.said


@pytest.mark.parametrize("kind", ["gradescope", "container", "prairielearn"])
def test_it_holds_what_judging_takes_and_nothing_of_the_class(made: Callable, kind: str) -> None:
    names = [name.split("reference/vit_defects/")[-1] for name in made(kind).files()]
    assert {"solution.py", "assignment.toml", "checks/test_attention.py", "mistakes/missing_scale.py"} <= set(
        names
    )
    assert not [name for name in names if name.startswith(("forms/", "datasets", "template", "trained/"))]
    assert not [name for name in names if name.endswith((".sqlite", ".pth", ".npz", ".pyc"))]


def test_the_key_is_of_this_assignment_alone(made: Callable) -> None:
    course = tomllib.loads(made("gradescope").files()["course/course.toml"].decode())
    assert course["secret"] == assignment_key(SECRET, "vit_defects")
    keys = {assignment_key(secret, name) for secret in (SECRET, "another") for name in ("a", "b")}
    assert len(keys) == 4 and all(re.fullmatch("[0-9a-f]{64}", key) for key in keys)


@pytest.mark.parametrize("kind", ["gradescope", "container", "prairielearn"])
def test_its_scripts_are_shell_and_name_public_indexes_only(
    made: Callable, kind: str, tmp_path: Path
) -> None:
    files = {name.rpartition("/")[2]: content for name, content in made(kind).files().items()}
    for name in ("setup.sh", "run_autograder"):
        (tmp_path / name).write_bytes(files[name])
        subprocess.run(["sh", "-n", str(tmp_path / name)], check=True)
    assert set(_HOST.findall(files["setup.sh"])) == {b"pypi.org", b"download.pytorch.org"}
    assert re.search(rb'PYTHON_VERSION="3\.\d+"', files["setup.sh"])
    pins = files["constraints.txt"].decode().splitlines()
    assert {"torch", "pydantic", "numpy"} <= {pin.partition("==")[0] for pin in pins}
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", pin) for pin in pins)


def test_another_index_can_be_named(made: Callable) -> None:
    files = made("gradescope", "--index", "https://mirror.example.org/simple").files()
    assert b'PACKAGE_INDEX="https://mirror.example.org/simple"' in files["setup.sh"]


def test_the_same_course_gives_the_same_bytes(made: Callable, tmp_path: Path, course_root: Path) -> None:
    again = tmp_path / "again.zip"
    code, said = run(
        "gradescope", "--assignment", "vit_defects", "--course", str(course_root), "--out", str(again)
    )
    assert code == 0, said
    assert again.read_bytes() == made("gradescope").path.read_bytes()


def test_prairielearn_gets_a_question_and_an_image(made: Callable) -> None:
    files = made("prairielearn", "--minutes", "5").files()
    described = json.loads(files["question/info.json"])
    options = described["externalGradingOptions"]
    assert described["gradingMethod"] == "External" and options["enabled"]
    assert options["timeout"] == 300 and options["enableNetworking"] is False
    assert options["entrypoint"] == "/grader/source/run_autograder"
    assert "image/Containerfile" in files and "question/tests/course/course.toml" in files
    # whoever gets the image gets no answer
    assert not [name for name in files if name.startswith("image/") and "course" in name]


def test_prairielearn_asks_for_every_file_that_checks_read(made: Callable) -> None:
    """What the question's page does not take, nobody can hand in, and its checks would fail."""
    page = made("prairielearn", assignment="letter_survey", course=LETTERS).files()["question/question.html"]
    asked = re.search(r'optional-file-names="([^"]*)"', page.decode())
    assert asked is not None
    names = asked[1].split(",")
    assert all(f">{name}</code>" in page.decode() for name in names)
    assignment = read_assignment(LETTERS / "reference" / "letter_survey")
    roles = [file.role for name in names if (file := assignment.asked_file(name)) is not None]
    assert len(roles) == len(names) and set(roles) == {Role.CODE, *assignment.own_roles}
    assert names[0] == "homework.py" and not [name for name in names if name.endswith((".pth", ".npz"))]


def test_an_image_has_a_name_that_docker_takes(tmp_path: Path) -> None:
    folder = tmp_path / "course"
    shutil.copytree(LETTERS, folder)
    (folder / "reference" / "letter_survey").rename(folder / "reference" / "Lab_A_")
    settings = folder / "reference" / "Lab_A_" / "assignment.toml"
    settings.write_text(settings.read_text("utf-8").replace('"letter_survey"', '"Lab_A_"'), "utf-8")
    out = str(tmp_path / "a.zip")
    code, said = run("prairielearn", "--assignment", "Lab_A_", "--course", str(folder), "--out", out)
    assert code == 0 and "docker build -t grader-lab-a ." in said, said


def test_parts_of_one_name_in_other_letters_have_steps_of_their_own(assignment: Assignment) -> None:
    """GitHub tells no small letters from large ones in the names of steps, and knows no others."""
    names = ("attention", "Attention", "aufmerksamkeit_für_alle")
    parts = tuple(Component(name, "class", "") for name in names)
    checks = tuple(CheckSpec(f"check_{name}", name, "A check.", 1.0, public=True) for name in names)
    workflow = yaml.safe_load(
        classroom_workflow(replace(assignment, components=parts, checks=checks), Sources(), "a.whl")
    )
    steps = [step for step in workflow["jobs"]["public-checks"]["steps"] if "id" in step]
    assert [step["with"]["test-name"] for step in steps] == list(names)
    ids = [step["id"] for step in steps]
    assert len(set(ids)) == 3 and all(re.fullmatch("[a-z_][a-z0-9_]*", name) for name in ids)
    results = workflow["jobs"]["public-checks"]["steps"][-1]
    assert results["with"]["runners"].split(",") == ids
    assert set(results["env"]) == {f"{name.upper()}_RESULTS" for name in ids}


def test_a_workflow_that_would_check_nothing_is_refused(assignment: Assignment) -> None:
    hidden = tuple(replace(check, public=False) for check in assignment.checks)
    with pytest.raises(UsageError, match="no part has public checks"):
        classroom_workflow(replace(assignment, checks=hidden), Sources(), "a.whl")


def test_github_gets_public_checks_only(made: Callable) -> None:
    files = made("github").files()
    assert sorted(name.rpartition("/")[2].partition("-")[0] for name in files) == [
        "classroom.yml",
        "constraints.txt",
        "vit_grader",
    ]
    workflow = yaml.safe_load(files[".github/workflows/classroom.yml"])
    steps = workflow["jobs"]["public-checks"]["steps"]
    commands = [step["with"]["command"] for step in steps if "command" in step.get("with", {})]
    assert "python -m grader check Attention --no-try --no-warm" in commands
    results = steps[-1]
    assert len(results["env"]) == len(commands) == len(results["with"]["runners"].split(","))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("gradescope", "--assignment", "nothing"), "There is no assignment 'nothing'"),
        (
            ("gradescope", "--assignment", "vit_defects", "--out", "/no/such/folder/a.zip"),
            "there is no folder",
        ),
        (("gradescope", "--assignment", "vit_defects", "--index", "ftp://x"), "is not the address"),
        (
            ("gradescope", "--assignment", "vit_defects", "--index", 'https://x/"; rm -rf /'),
            "is not the address",
        ),
        (
            ("prairielearn", "--assignment", "vit_defects", "--minutes", "11"),
            "PrairieLearn allows 10 at most",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    arguments: tuple[str, ...],
    sentence: str,
    course_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = run(*arguments, "--course", str(course_root))
    assert code == 2 and sentence in said and "Traceback" not in said
    assert not list(tmp_path.iterdir())


DRAWN = Path(__file__).parents[1] / "courses" / "drawn"


def test_values_of_each_student_are_drawn_with_a_key_of_their_own(made: Callable) -> None:
    """It gives everybody's values of this assignment and term, and nothing else."""
    described = json.loads(made("gradescope", assignment="heads", course=DRAWN).files()["package.json"])
    assert described["students_key"] == students_key(SECRET, "heads", "2026-fall")
    assert described["values"]["heads"] == 2  # nobody's: the first choice
    assert json.loads(made("gradescope").files()["package.json"])["students_key"] == ""


def test_values_of_each_student_are_refused_where_nothing_tells_who_it_is(tmp_path: Path) -> None:
    out = tmp_path / "a.zip"
    code, said = run("prairielearn", "--assignment", "heads", "--course", str(DRAWN), "--out", str(out))
    assert code == 2 and not out.exists()
    assert "draws 'heads' for each student" in " ".join(said.split()) and "grader grade" in said


def test_a_course_that_wants_more_isolation_gets_a_container_alone(
    small_course: Path, tmp_path: Path
) -> None:
    """It asks for the level again where it runs; the containers of the others never give it."""
    shutil.copytree(small_course, tmp_path / "course")
    settings, out = tmp_path / "course" / "course.toml", tmp_path / "a.zip"
    settings.write_text(settings.read_text("utf-8").replace('"standard"', '"strict"'), "utf-8")
    options = ("--course", str(tmp_path / "course"), "--out", str(out))
    for kind in ("gradescope", "prairielearn"):
        code, said = run(kind, "--assignment", "heads", *options)
        assert (
            code == 2 and "no other grader's container gives" in " ".join(said.split()) and not out.exists()
        )
    code, said = run("container", "--assignment", "heads", *options)
    assert code == 0, said
    with zipfile.ZipFile(out) as archive:
        archive.extractall(tmp_path)
    course = located_course(tmp_path / "course", environment={})
    assert course.minimum_level == "strict"
    require_level(course, Attestation("strict"))
    for level in ("standard", "container"):
        require_level(replace(course, minimum_level="standard"), Attestation(level))
        with pytest.raises(SandboxError, match=f"'strict', and this machine gives '{level}'. No namespaces."):
            require_level(course, Attestation(level, {}, ("No namespaces.",)))


def test_a_run_that_fails_says_so_in_the_language_of_the_course(small_course: Path, tmp_path: Path) -> None:
    """The parent of a run reads no catalogs, and the script starts before Python does."""
    pytest.importorskip("babel")
    shutil.copytree(small_course, tmp_path / "course")
    settings, out = tmp_path / "course" / "course.toml", tmp_path / "a.zip"
    text = settings.read_text("utf-8")
    settings.write_text(f'language = "fa"\n{text}', "utf-8")
    options = ("--course", str(tmp_path / "course"), "--out", str(out), "--minutes", "2.5")
    code, said = run("gradescope", "--assignment", "heads", *options)
    assert code == 0, said
    with zipfile.ZipFile(out) as archive:
        script, described = (archive.read(name).decode() for name in ("run_autograder", "package.json"))
    words = json.loads(described)["words"]
    assert len(words) == 3 and all(re.search("[\u0600-\u06ff]", each) for each in words.values())
    assert any("2.5" in each or "۲٫۵" in each for each in words.values())
    first = json.loads(script.partition("<<'END'\n")[2].partition("\nEND")[0])
    assert first["output"] == words[NOT_FINISHED]


def test_a_public_secret_is_refused(course_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.zip"
    code, said = run(
        "gradescope",
        "--assignment",
        "vit_defects",
        "--course",
        str(course_root),
        "--out",
        str(out),
        secret="change-me",
    )
    assert code == 2 and "everybody could derive" in " ".join(said.split()) and not out.exists()
