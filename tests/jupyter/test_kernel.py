"""A shell with checks: what it sends to be checked, what it shows, and what stays Jupyter's own."""

import dataclasses
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import grader
from grader.domain.errors import EngineError
from grader.domain.evidence import Blame, Finding, FindingKind, Status
from grader.jupyter import kernel
from grader.jupyter.kernel import CheckResult, KernelChecks, result_of, without_magic

FINDING = {
    "check": "a",
    "component": "ViT",
    "title": "A.",
    "status": "failed",
    "blame": "student",
    "kind": "hangs",
    "message": "It hangs.",
}


def answer(text: str, *, last: bool, findings: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    """What the process that makes the checks tells."""
    shown = {"text/plain": text, "text/html": f"<p>{text}</p>"}
    return {"shown": shown, "metadata": {"own": True}, "passed": False, "findings": findings, "last": last}


class FakeProcess:
    """Answers at once, and keeps what it was asked."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.fails: BaseException | None = None
        self.closed = False

    def answers(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self.requests.append(request)
        yield answer("1 of 2", last=False)
        if self.fails is not None:
            raise self.fails
        yield answer("done", last=True, findings=(FINDING,))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """A shell that keeps no history on the disk, and is the running one."""
    config = Config()
    config.HistoryManager.enabled = False
    monkeypatch.setattr(kernel, "_activated", [])
    made = InteractiveShell.instance(config=config)
    yield made
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


@pytest.fixture
def process(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> FakeProcess:
    """What answers the shell's checks, which are activated."""
    fake = FakeProcess()
    monkeypatch.setattr(kernel, "CheckProcess", lambda: fake)
    grader.load_ipython_extension(shell)
    return fake


def run(shell: InteractiveShell, text: str, cell: str | None = None) -> Any:
    """Execute a cell as a front end has it executed."""
    return shell.run_cell(text, store_history=True, cell_id=cell)


def test_what_was_executed_is_sent_with_the_cells_ids(shell, process, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(shell, "x = 1", "a")
    run(shell, "1 / 0")
    run(shell, "%%check ViT\nx = 2", "a")
    [request] = process.requests
    assert request == {
        "executions": [(1, "x = 1", "a"), (2, "1 / 0", ""), (3, "%%check ViT\nx = 2", "a")],
        "working": str(tmp_path),
        "part": "ViT",
        "folder": None,
    }
    assert shell.user_ns["x"] == 2


def test_a_check_is_shown_and_returned(shell, process, capsys):
    assert run(shell, "import grader; found = grader.check('ViT')").success
    assert capsys.readouterr().out == "done\n", "a shell on a terminal prints the end alone"
    found = shell.user_ns["found"]
    kinds = (Status.FAILED, Blame.STUDENT, FindingKind.HANGS)
    [finding] = found.findings
    assert isinstance(finding, Finding) and (finding.status, finding.blame, finding.kind) == kinds
    assert not found.passed and repr(found) == "done" and found._repr_html_() == "<p>done</p>"


def test_a_result_is_not_shown_twice_below_its_check(shell, process, capsys):
    run(shell, "import grader; grader.check()")
    assert capsys.readouterr().out.count("done") == 1
    run(shell, "_found = grader.check(); 0")
    capsys.readouterr()
    run(shell, "_found")
    assert "done" in capsys.readouterr().out, "asked for later, it is shown"


def test_a_cell_that_raises_is_not_checked(shell, process, capsys):
    assert not run(shell, "%%check ViT\n1 / 0").success
    assert not run(shell, "%%check ViT\n1 /").success
    assert process.requests == []
    told = capsys.readouterr().out
    assert "ZeroDivisionError" in told and "line 2" in told, "the cell's own lines are counted"


def test_a_check_of_all_needs_no_name(shell, process):
    run(shell, "%%check\nx = 1")
    run(shell, "%%check   ViT  \nx = 1")
    assert [request["part"] for request in process.requests] == ["", "ViT"]


def test_below_another_magic_the_cell_is_executed_and_checked(shell, process, capsys):
    run(shell, "%%capture out\n%%check ViT\nx = 5")
    assert shell.user_ns["x"] == 5 and [request["part"] for request in process.requests] == ["ViT"]


def test_a_part_may_be_named_by_what_is_checked(shell, process):
    run(shell, "class ViT: pass\ndef fit(): pass\nimport grader, pathlib")
    run(shell, "grader.check(ViT, assignment=pathlib.Path('~', 'homework')); grader.check(fit)")
    home = str(Path.home() / "homework")
    asked = [(request["part"], request["folder"]) for request in process.requests]
    assert asked == [("ViT", home), ("fit", home)]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("grader.check(3)", 'takes the name of a part, as in grader.check("Attention"), and got 3.'),
        ("grader.check('ViT', assignment=3)", "takes the path of the folder"),
    ],
)
def test_what_names_nothing_is_told_and_not_asked(shell, process, capsys, call, told):
    assert run(shell, f"import grader; {call}").success
    assert told in capsys.readouterr().out and process.requests == []


def test_the_assignments_folder_is_remembered(shell, process):
    run(shell, "import grader; grader.check('ViT', assignment='handed out')")
    run(shell, "%%check ViT\nx = 1")
    assert [request["folder"] for request in process.requests] == ["handed out", "handed out"]


def test_a_fault_is_a_sentence(shell, process, capsys):
    process.fails = EngineError("The process ended. Check again.")
    assert run(shell, "import grader; found = grader.check()").success
    assert capsys.readouterr().out == "The process ended. Check again.\n"
    assert shell.user_ns["found"].findings == () and not shell.user_ns["found"].passed


def test_an_interrupt_ends_the_checks(shell, process, capsys):
    process.fails = KeyboardInterrupt()
    found = run(shell, "import grader; grader.check()")
    assert isinstance(found.error_in_exec, KeyboardInterrupt) and process.closed


def test_importing_it_activates_it_once(shell, process):
    assert without_magic in shell.input_transformers_cleanup
    before = len(shell.input_transformers_cleanup)
    grader.load_ipython_extension(shell)
    assert len(shell.input_transformers_cleanup) == before


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("%%check ViT\nx = 1", "# %%check ViT\nx = 1"),
        ("\n  %%check\nx = 1", "\n# %%check\nx = 1"),
        ("%%check?", "%%check?"),
        ("%%checked\nx", "%%checked\nx"),
        ("x = 1\n%%check", "x = 1\n%%check"),
        ("", ""),
    ],
)
def test_the_magic_becomes_a_remark(text, changed):
    assert "".join(without_magic(text.splitlines(keepends=True))) == changed


def test_what_is_not_last_is_no_end():
    found = result_of(answer("1 of 2", last=False), 3)
    assert isinstance(found, CheckResult) and found.shown_in == 3 and found.metadata == {"own": True}


def test_outside_of_a_notebook_it_is_instant_and_says_so():
    script = (
        "import sys, grader; before = set(sys.modules); print(grader.check('ViT'));"
        "print(sorted({'torch', 'click', 'IPython', 'rich', 'pydantic', 'pytest'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "None\n[]\n"
    assert done.stderr == f"{kernel.ELSEWHERE}\n"


def test_checks_know_a_shell_without_ids_of_cells(shell):
    """As Colab's is, which is older."""
    checks = KernelChecks(shell)
    checks._before(type("Info", (), {"store_history": True})())
    assert checks._request("")["executions"] == []


def test_the_documented_cells_are_checked(shell, process, course_root):
    text = (course_root / "docs" / "student.md").read_text(encoding="utf-8")
    section = text.partition("\n## Check in the notebook\n")[2].partition("\n## ")[0]
    run(shell, "class nn:\n    Module = object")
    for cell in re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
        assert run(shell, cell).success, cell
    asked = [(request["part"], request["folder"]) for request in process.requests]
    assert asked == [("Attention", None), ("PreNorm", None), ("Attention", "/content/homework")]
    [attributes] = re.findall(r"each finding has (.*?)\.\s", section, re.DOTALL)
    fields = re.findall(r"`\.(\w+)`", attributes)
    assert len(fields) == 4 and set(fields) <= {one.name for one in dataclasses.fields(Finding)}
