"""The process that makes a kernel's checks: what it answers, request by request."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.analysis.notebook import OWN_CHECK
from grader.files.known_folders import public_checks
from grader.jupyter import check_service
from grader.jupyter.check_service import CheckRequest, CheckService

Serve = Callable[..., list[list[dict[str, Any]]]]
IMPORTS = "import torch\nfrom torch import nn\nfrom einops import rearrange"


@pytest.fixture
def serve(warm_workers: object) -> Serve:
    """What is answered to each of the requests."""

    def served(*requests: CheckRequest) -> list[list[dict[str, Any]]]:
        answers: list[dict[str, Any]] = []
        CheckService(iter(requests), answers.append).serve()
        assert json.loads(json.dumps(answers)) == answers
        split: list[list[dict[str, Any]]] = [[]]
        for answer in answers:
            split[-1].append(answer)
            if answer["last"]:
                split.append([])
        assert split.pop() == []
        return split

    return served


def request(working: Path, *texts: str, part: str = "", folder: Path | None = None) -> CheckRequest:
    executions = tuple((number, text, "") for number, text in enumerate(texts, start=1))
    return CheckRequest(executions, str(working), part, str(folder) if folder is not None else None)


def text(answers: list[dict[str, Any]]) -> str:
    """What is shown in the end."""
    shown: str = answers[-1]["shown"]["text/plain"]
    return shown


def part_of(solved: str, name: str) -> str:
    """A class of the solution, with what it imports."""
    begin = solved.index(f"class {name}(")
    return f"{IMPORTS}\n\n{solved[begin : solved.index('# %%', begin)]}"


def test_one_part_after_another_is_checked_as_it_was_executed_last(serve, handed_out, solved):
    good = part_of(solved, "PreNorm")
    bad = good.replace("return self.fn(", "return 0 * self.fn(")
    assert bad != good
    first, second, third = serve(
        request(handed_out, bad, part="PreNorm"),
        request(handed_out, bad, "x = 1", good, part="PreNorm"),
        request(handed_out, bad, good, part="Atention"),
    )
    assert second[-1]["passed"] and {one["component"] for one in second[-1]["findings"]} == {"PreNorm"}
    assert not any(answer["passed"] for answer in second[:-1]), "nothing has passed before the end"
    assert first[-1]["findings"] and not first[-1]["passed"]
    assert "Is `Attention` meant?" in text(third) and third[-1]["findings"] == []


def test_progress_is_one_line_below_what_is_known(serve, handed_out):
    [answers] = serve(request(handed_out, "x = 1", part="Attention"))
    lines = [answer["shown"]["text/plain"].splitlines()[-1] for answer in answers]
    total = len(answers) - 1
    assert lines[: total - 1] == [f"{done} of {total} checks done" for done in range(1, total)]
    assert lines[total - 1] == "Looking at the model"
    assert lines[-1] == f"✗ 0 of {total} public checks of `Attention` pass."
    assert all(answer["metadata"] == {OWN_CHECK: True} for answer in answers)


@pytest.mark.slow
def test_all_of_it_is_checked_and_what_would_be_trained_is_told(serve, handed_out, solved):
    cells = [cell for cell in solved.split("# %%\n") if not cell.startswith("# %% [markdown]")]
    [answers] = serve(request(handed_out, "import grader", *cells, "grader.check()"))
    last = answers[-1]
    assert last["passed"], text(answers)
    assert "\nWhat would be trained\n" in text(answers) and "grader.check" not in text(answers)
    assert "Parts that are not allowed" not in text(answers) and "grader check" not in text(answers)


def test_a_place_is_that_of_the_execution(serve, handed_out):
    stub = "class PreNorm:\n    def __init__(self, dim, fn):\n        raise NotImplementedError('TODO')"
    [answers] = serve(request(handed_out, "x = 1", "y = 2", stub, part="PreNorm"))
    assert answers[-1]["findings"][0]["where"] == "In [3], line 3"
    assert "In [3], line 3" in text(answers)


def test_without_an_assignment_the_sentence_says_what_to_do(serve, tmp_path, handed_out):
    (tmp_path / "elsewhere").mkdir()
    none, named = serve(
        request(tmp_path / "elsewhere", "x = 1", part="ViT"),
        request(tmp_path / "elsewhere", "x = 1", part="ViT", folder=handed_out),
    )
    assert f"is not where the notebook works ({tmp_path / 'elsewhere'})" in text(none)
    assert '`grader.check(assignment="FOLDER")`' in text(none) and len(none) == 1
    assert "public check" in text(named)


def test_what_cannot_be_read_is_a_sentence_and_the_next_one_is_answered(serve, handed_out):
    nothing, broken = serve(
        request(handed_out, part="ViT"), request(handed_out, "class ViT(:\n    pass", part="ViT")
    )
    assert text(nothing).startswith("✗ notebook.ipynb: has no cell with code")
    assert "is not correct Python" in text(broken)


def test_an_assignment_that_changes_is_read_again(serve, handed_out, tmp_path):
    folder = tmp_path / "mine"
    shutil.copytree(handed_out, folder)
    wait = request(folder, "x = 1", part="ViT")

    def requests():
        yield wait
        for path in public_checks(folder):
            path.unlink()
        yield wait

    answers: list[dict[str, Any]] = []
    CheckService(requests(), answers.append).serve()
    assert "has no test_public.py" in answers[-1]["shown"]["text/plain"]


def test_it_ends_with_the_kernel_or_when_nobody_asks(monkeypatch):
    line = json.dumps({"executions": [[1, "x", ""]], "working": "w", "part": "", "folder": None})
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{line}\n{line}\n"))
    assert list(check_service._requests()) == [CheckRequest(((1, "x", ""),), "w")] * 2

    class NoAnswer:
        def __iter__(self):
            import threading

            threading.Event().wait(5)
            return iter(())

    monkeypatch.setattr("sys.stdin", NoAnswer())
    monkeypatch.setattr(check_service, "IDLE_SECONDS", 0.01)
    assert list(check_service._requests()) == []
