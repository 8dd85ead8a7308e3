"""Whatever becomes of a run, its parent leaves a valid file, and nobody else writes it."""

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from grader.packages import parent_process, run_processes
from grader.packages.failed_run import NOT_FINISHED, is_result, out_of_time
from grader.packages.package_settings import PackageSettings

GOOD = {"score": 3, "tests": []}


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """The results after a run whose grading process executes a text; `OUTCOME` names its file."""

    def results(
        code: str,
        *,
        minutes: float = 1.0,
        memory_mb: int = 2500,
        kind: str = "gradescope",
        words: Mapping[str, str] | None = None,
    ) -> Any:
        package = tmp_path / ("tests" if kind == "prairielearn" else "source")
        package.mkdir(exist_ok=True)
        settings = PackageSettings(kind, "any", minutes, memory_mb, words=words or {})
        (package / "package.json").write_text(settings.text())

        def command(_kind: str, _tree: object, outcome: Path) -> list[str]:
            return [sys.executable, "-c", f"OUTCOME = {str(outcome)!r}\nROOT = {str(tmp_path)!r}\n{code}"]

        monkeypatch.setattr(parent_process, "grading_command", command)
        monkeypatch.setattr(run_processes, "_GRACE_SECONDS", 0.5)  # no host is among them that needs more
        parent_process.supervised_run(kind, tmp_path)
        document = json.loads((tmp_path / "results" / "results.json").read_text("utf-8"))
        assert is_result(kind, document)
        return document

    return results


def said(document: dict[str, Any]) -> str:
    return document.get("output") or document["message"]


def test_what_the_grading_process_wrote_is_taken_over(left: Callable) -> None:
    assert left(f"open(OUTCOME, 'w').write({json.dumps(GOOD)!r})") == GOOD


@pytest.mark.parametrize("kind", ["gradescope", "container", "prairielearn"])
@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit(0)",
        "import os; os._exit(3)",
        "1 / 0",
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        "open(OUTCOME, 'w').write('{')",
        "open(OUTCOME, 'w').write('[]')",
        "open(OUTCOME, 'w').write('{\"tests\": []}')",
        "open(OUTCOME, 'w').write('{\"score\": \"full\"}')",
        "open(OUTCOME, 'w').write('{\"score\": 1, \"x\": \"' + 'x' * 2_000_000 + '\"}')",
    ],
)
def test_a_crash_and_nonsense_leave_a_valid_file(left: Callable, kind: str, code: str) -> None:
    document = left(code, kind=kind)
    assert "did not finish" in said(document)
    if kind == "prairielearn":
        assert document["gradable"] is False and document["score"] == 0.0
    else:
        assert "score" not in document and document["tests"][0]["max_score"] == 0


@pytest.mark.slow
def test_a_run_that_takes_too_long_is_ended(left: Callable) -> None:
    assert "longer than the 0.02 minutes" in said(left("import time; time.sleep(600)", minutes=0.02))


@pytest.mark.slow
@pytest.mark.parametrize(
    "then",
    [
        "import time; time.sleep(600)",
        "import os; os._exit(3)",
        "import time; held = bytearray(300_000_000); time.sleep(600)",
    ],
)
def test_what_it_wrote_before_it_was_ended_is_taken_over(left: Callable, then: str) -> None:
    """What the checks found, if the training goes wrong."""
    code = f"open(OUTCOME, 'w').write({json.dumps(GOOD)!r}); {then}"
    assert left(code, minutes=0.05, memory_mb=200) == GOOD


@pytest.mark.slow
def test_what_it_started_ends_with_it(left: Callable, tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "command = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "child = subprocess.Popen(command, start_new_session=True)\n"
        "open(ROOT + '/pid', 'w').write(str(child.pid)); time.sleep(600)"
    )
    left(code, minutes=0.05)
    pid = int((tmp_path / "pid").read_text())
    status = Path(f"/proc/{pid}/stat")
    deadline = time.monotonic() + 10
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline, "it goes on"
        time.sleep(0.1)


def test_what_left_its_parent_ends_with_it(left: Callable, tmp_path: Path) -> None:
    """As the child of a student's process does, where nothing keeps that from forking."""
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        open(ROOT + '/pid', 'w').write(str(os.getpid())); time.sleep(600)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "while not os.path.exists(ROOT + '/pid') or not open(ROOT + '/pid').read(): time.sleep(0.05)\n"
        f"open(OUTCOME, 'w').write({json.dumps(GOOD)!r})"
    )
    assert left(code) == GOOD
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()


@pytest.mark.slow
def test_what_forks_share_counts_once(left: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forks of a process of 100 MB, some without their parent; in a container they hide what they share."""
    monkeypatch.setattr(run_processes, "_proportional_share", lambda pid: None)
    forking = (
        "import os, time\n"
        "held = bytearray(b'1') * 100_000_000\n"
        "for number in range(10):\n"
        "    if os.fork() == 0:\n"
        "        if number % 2 and os.fork():\n"
        "            os._exit(0)\n"
        "        {then}time.sleep(60)\n"
        "        os._exit(0)\n"
        "time.sleep(2)\n"
        f"open(OUTCOME, 'w').write({json.dumps(GOOD)!r})"
    )
    assert left(forking.replace("{then}", ""), memory_mb=300) == GOOD
    more = forking.replace("{then}", "mine = bytearray(b'1') * 30_000_000; ").replace("sleep(2)", "sleep(60)")
    assert "more than the 300 MB" in said(left(more, memory_mb=300))


@pytest.mark.slow
def test_it_says_so_in_the_language_of_the_course(left: Callable) -> None:
    words = {out_of_time(0.02): "Zu lange.", NOT_FINISHED: "Nicht fertig."}
    assert said(left("import time; time.sleep(600)", minutes=0.02, words=words)) == "Zu lange."
    assert said(left("1 / 0", words=words)) == "Nicht fertig."


def test_a_run_that_takes_too_much_memory_is_ended(left: Callable) -> None:
    code = "import time; held = bytearray(300_000_000); time.sleep(600)"
    assert "more than the 200 MB" in said(left(code, memory_mb=200))


def test_so_is_one_that_the_kernel_ended(left: Callable) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert "more than the 2500 MB" in said(left(code))


def test_a_valid_file_is_there_before_anything_else(left: Callable, tmp_path: Path) -> None:
    code = (
        "import json, shutil\n"
        "shutil.copy(ROOT + '/results/results.json', ROOT + '/first.json')\n"
        f"open(OUTCOME, 'w').write({json.dumps(GOOD)!r})"
    )
    left(code)
    first = json.loads((tmp_path / "first.json").read_text())
    assert is_result("gradescope", first) and "did not finish" in said(first)


def test_a_link_in_its_place_is_replaced_and_not_followed(left: Callable, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("untouched")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "results.json").symlink_to(target)
    left("pass")
    assert target.read_text() == "untouched"
    assert not (tmp_path / "results" / "results.json").is_symlink()


def test_a_damaged_package_leaves_a_valid_file(left: Callable, tmp_path: Path, capsys: Any) -> None:
    left("pass")
    (tmp_path / "source" / "package.json").write_text("{}")
    parent_process.supervised_run("gradescope", tmp_path)
    document = json.loads((tmp_path / "results" / "results.json").read_text())
    assert is_result("gradescope", document) and "did not finish" in said(document)
    assert "is not the description of a package" in capsys.readouterr().out


def test_the_surroundings_are_not_handed_on(left: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_SECRET", "of the surroundings")
    monkeypatch.setenv("PYTHONSTARTUP", "x")
    code = (
        "import os, json\n"
        "there = [name for name in os.environ if name.startswith(('GRADER', 'PYTHON'))]\n"
        f"json.dump({{**{GOOD!r}, 'there': there}}, open(OUTCOME, 'w'))"
    )
    assert left(code)["there"] == []
