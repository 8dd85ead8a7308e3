"""What a person says of warm processes on the command line."""

import shutil

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.files.known_folders import public_checks
from grader.students.warm import asking


def run(*words):
    return CliRunner().invoke(cli, ["check", *words], prog_name="grader")


@pytest.mark.parametrize(("ended", "told"), [(0, "No warm processes were"), (1, "One warm process was")])
def test_stop_ends_them_and_does_nothing_else(tmp_path, monkeypatch, runtime_folder, ended, told):
    monkeypatch.chdir(tmp_path)  # where there is no homework
    monkeypatch.setattr(asking, "stop", lambda: ended)
    done = run("--stop")
    assert done.exit_code == 0 and done.output == f"{told} ended.\n"


def test_where_none_was_ever_started_none_is_ended(runtime_folder):
    assert asking.stop() == 0


@pytest.mark.parametrize(("words", "warm"), [((), True), (("--no-warm",), False)])
def test_a_check_does_without_where_that_is_asked_for(
    course_root, tmp_path, monkeypatch, runtime_folder, words, warm
):
    asked = []

    class SeenError(Exception):
        pass

    def seen(path, local, **options):
        asked.append(options["warm"])
        raise SeenError

    monkeypatch.setattr(asking, "quick_check", seen)
    monkeypatch.setattr("grader.students.warm.question.Question.asked", lambda *a, **o: asked.append("early"))
    folder = tmp_path / "vit"
    folder.mkdir()
    template = course_root / "template" / "vit_defects"
    for path in (template / "assignment.toml", template / "homework.py", *public_checks(template)):
        shutil.copy(path, folder)
    monkeypatch.chdir(folder)
    assert run(*words, "--json").exit_code == 3
    assert asked == (["early", True] if warm else [False])
