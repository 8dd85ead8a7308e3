"""`grader check` in a student's folder."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from grader.cli.check_watch import ctrl_c
from grader.files.known_folders import public_checks
from grader.students.check_on_save import saves_of

STUBS = ("PreNorm", "FeedForward", "Attention", "Transformer", "ViT", "train_epoch", "evaluate")


@pytest.mark.slow
def test_the_solved_notebook_passes_in_a_real_process(handout, desk, solved_notebook):
    (desk / "homework.ipynb").write_text(solved_notebook, encoding="utf-8")
    command = [sys.executable, "-m", "grader", "check", "homework.ipynb", "--json"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, encoding="utf-8", env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["passed"] and found["file"] == "homework.ipynb" and found["parameters"] == 499_462
    assert len(found["findings"]) >= 50 and {one["status"] for one in found["findings"]} == {"passed"}
    assert ("epochs", "30") in [(tuned["name"], tuned["value"]) for tuned in found["tuned"]]
    assert any(left["line"].startswith("plt.show") for left in found["left_out"])
    left = {path.name for path in desk.iterdir()}
    assert left == {path.name for path in handout.iterdir()}, "checking leaves nothing behind in the folder"


@pytest.mark.skipif(sys.platform == "win32", reason="a closed pipe is another error there")
@pytest.mark.slow
def test_a_reader_that_has_seen_enough_ends_it_quietly(desk, solved):
    """`grader check | head -3`: no fault is made of it, and what nobody read did not pass."""
    (desk / "homework.py").write_text(solved, encoding="utf-8")
    command = [sys.executable, "-m", "grader", "check"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith("homework.py: ")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 1


def test_the_bare_template_fails_kindly(desk, run):
    result = run("check")
    assert result.exit_code == 1, result.output
    for name in STUBS:
        assert f"\n{name}\n" in result.output and f"`{name}" in result.output
    assert "is not implemented yet." in result.output
    assert "Try: Replace the `raise NotImplementedError` line with your code." in result.output
    assert "      homework.py:" in result.output
    assert re.search(r'      > +\d+  +raise NotImplementedError\(\n +\d+  +"TODO Attention', result.output)
    attention = result.output.partition("\nAttention\n")[2].partition("\nTransformer\n")[0]
    assert attention.count("is not implemented yet.") == 1, "a reason is told once for each part"
    assert "7 more checks fail for this reason:\n        Attention never mixes" in attention
    assert "Traceback" not in result.output
    last = result.output.strip().splitlines()[-1]
    assert last.startswith("✗ 2 of 50 public checks pass. Begin with `PreNorm` (homework.py:")


@pytest.mark.slow
def test_what_else_a_student_should_know(desk, run, solved):
    text = solved.replace("Attention", "Atention").replace("import shutil\n", "import shutil\nimport timm\n")
    (desk / "homework.py").write_text(text, encoding="utf-8")
    result = run("check", "homework.py")
    assert result.exit_code == 1
    assert "`Atention` was taken for `Attention`" in result.output
    assert "`timm` is there, but no graded part uses it, so it costs nothing." in result.output
    trained = result.output.partition("What would be trained")[2].partition("Left out")[0]
    for piece in (
        "499,462 parameters",
        "patch_size 4",
        "AdamW, learning rate 0.001",
        "30",
        "Resize((28, 28))",
        "30 epochs in the loop at line",
    ):
        assert piece in trained
    left_out = result.output.partition("Left out on loading: ")[2]
    assert "it reads or writes files (lines " in left_out
    assert "49 of 50 public checks pass. Begin with the file (homework.py:" in left_out


def test_a_part_under_another_name_is_told_at_the_end(desk, run, solved):
    """By its capitals, `VisionTransformer` may be what `ViT` is short for."""
    text = solved.replace("ViT(", "VisionTransformer(").replace("super(ViT", "super(VisionTransformer")
    (desk / "homework.py").write_text(text, encoding="utf-8")
    result = run("check", "homework.py")
    assert "There is a `VisionTransformer`: is that the one you mean?" in " ".join(result.output.split())
    last = result.output.strip().splitlines()[-1]
    assert "Begin with this: " in last and "`ViT`" in last


@pytest.mark.slow
def test_details_list_every_statement(desk, run):
    result = run("check", "--details")
    assert "torch.manual_seed(42)" in result.output and "Line by line" not in result.output


@pytest.mark.slow
def test_in_a_course_the_template_of_its_only_assignment_is_meant(course_of_one, run, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("class Attention:\n    pass\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    result = run("--course", course_of_one, "check", "mine.py", "--json")
    assert result.exit_code == 1, result.output
    assert json.loads(result.output)["assignment"] == "vit_defects"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("homework.py", b"class ViT(:\n    pass\n", "homework.py:1"),
        ("homework.py", b"", "homework.py"),
        ("homework.ipynb", b"{not json", "homework.ipynb"),
        ("homework.txt", b"x = 1\n", "homework.txt is not a code file"),
    ],
)
def test_a_file_that_cannot_be_read_gets_a_sentence(desk, run, name, content, told):
    (desk / name).write_bytes(content)
    result = run("check", name)
    assert result.exit_code == 2, result.output
    last = result.output.strip().splitlines()[-1]
    assert last.startswith("error: ") and told in last and "Traceback" not in result.output


def test_a_missing_file_and_a_missing_folder_are_said(desk, run, tmp_path, monkeypatch):
    assert "nothing.py does not exist" in run("check", "nothing.py").output
    for path in public_checks(desk):
        path.unlink()
    assert "has no test_public.py" in run("check").output
    monkeypatch.chdir(tmp_path)
    assert "There is no homework.py or homework.ipynb" in run("check").output
    (tmp_path / "homework.py").write_text("x = 1\n", encoding="utf-8")
    result = run("check")
    assert result.exit_code == 2 and "--assignment-folder" in result.output


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C of another process")
def test_a_watched_file_is_checked_again_until_ctrl_c(desk):
    (desk / "homework.py").write_text("class (", encoding="utf-8")
    command = [sys.executable, "-m", "grader", "check", "--watch"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    surroundings = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
    with subprocess.Popen(command, **pipes, text=True, encoding="utf-8", env=surroundings) as running:
        try:
            wait_for(running, "Check 1 took")
            (desk / "new.py").write_text("class [", encoding="utf-8")
            (desk / "new.py").replace(desk / "homework.py")
            assert "is not correct Python" in wait_for(running, "Check 2 took")
            running.send_signal(signal.SIGINT)
            told, _ = running.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGABRT)  # it prints where it stands
            pytest.fail(running.communicate(timeout=60)[0])
        finally:
            running.kill()
    assert running.returncode == 0 and told.strip().splitlines()[-1] == "homework.py is no longer watched."


class PressesOnCleanup:
    """An object that Ctrl-C meets while Python cleans it up."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_is_not_lost_when_python_swallows_the_interrupt(tmp_path, monkeypatch):
    # else the pytest that holds the checks for other tests of this process takes it for an error of theirs
    swallowed = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: swallowed.append(told.exc_type))
    path = tmp_path / "homework.py"
    path.write_text("x = 1\n", encoding="utf-8")
    before = signal.getsignal(signal.SIGINT)
    with ctrl_c() as pressed:
        saves = saves_of(path, pressed)
        path.write_text("x = 2\n", encoding="utf-8")
        PressesOnCleanup()
        assert pressed.is_set() and next(saves, "ended") == "ended"
    assert swallowed == [KeyboardInterrupt]
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_interrupts():
    with pytest.raises(KeyboardInterrupt), ctrl_c() as pressed:
        signal.raise_signal(signal.SIGINT)
    assert pressed.is_set()


def wait_for(running, text):
    """What a command prints until a text is there."""
    said = ""
    for line in running.stdout:
        said += line
        if text in line:
            return said
    raise AssertionError(said)


def test_watching_is_for_people(desk, run):
    result = run("check", "--watch", "--json")
    assert result.exit_code == 2 and "--watch is for people" in result.output
