"""Where nothing of a submission ran, nobody is alarmed about isolation: the parser's was proved."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from grader.domain.evidence import Attestation

Say = Callable[..., str]

CODE = """from torch import nn


class Doubler(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return 2 * x
"""
UPLOADS = {
    "400101201": ("homework.py", CODE),
    "400101202": ("report.pdf", "%PDF-1.4 no pages"),
    "400101203": ("all.rar", "Rar! of which nothing is opened"),
    "400101204": ("homework.py", ""),
    "400101205": ("homework.py", "class Doubler(:\n"),
    "400101206": ("homework.py", "x = 1\n"),
    "400101207": ("onlinetext.html", "<p>I am ill.</p>"),
}


@pytest.fixture
def say(grader: Callable[..., Result]) -> Say:
    """Run a command; what it prints."""

    def run(*words: str | Path) -> str:
        done = grader(*words)
        assert done.exit_code == 0, done.output
        return done.output.replace("\xa0", " ")

    return run


@pytest.fixture(scope="module")
def uploads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("uploads")
    for student_id, (name, text) in UPLOADS.items():
        (folder / student_id).mkdir()
        (folder / student_id / f"{student_id}_{name}").write_text(text, encoding="utf-8")
    return folder


def graded(say: Say, uploads: Path, course: Path, out: Path, *more: str) -> dict[str, Any]:
    """What results.json says of each, once the rule on missing files is applied."""
    common = ("--course", course)
    say("grade", uploads, "--assignment", "tiny", "--no-train", "--out", out, *common, *more)
    say("rule", out, "--all", "--why", "No code, no grade.", *common)
    document = json.loads((out / "results.json").read_text("utf-8"))
    return {entry["student_id"]: entry for entry in document["submissions"]}


def test_what_was_not_run_raises_no_alarm(say: Say, uploads: Path, tiny_course: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = graded(say, uploads, tiny_course, out)
    assert found.keys() == UPLOADS.keys()
    assert {entry["sandbox"]["level"] for entry in found.values()} <= {"strict", "standard"}
    assert all(entry["sandbox"]["layers"] for entry in found.values()), "and it was observed"
    assert sum(entry["total"] is not None and not entry["findings"] for entry in found.values()) > 1
    told = [say("export", "moodle-gradebook", out, "--partial", "--course", tiny_course)]
    told += [say("export", "gradescope", out, "--partial", "--course", tiny_course)]
    told += [path.read_text("utf-8") for path in (out / "exports").rglob("*.*") if path.is_file()]
    told += [path.read_text("utf-8") for path in out.rglob("*.html")]
    assert not [text for text in told if "isolation that official grades require" in text]
    assert not [text for text in told if "nofficial" in text]
    again = say("grade", uploads, "--assignment", "tiny", "--no-train", "--out", out, "--course", tiny_course)
    assert f"0 submissions to grade, {len(UPLOADS)} unchanged" in again
    assert f"{len(UPLOADS)} unchanged submissions not run again" in again


@pytest.mark.slow
def test_what_was_only_read_without_isolation_is_unofficial(
    say: Say, uploads: Path, tiny_course: Path, tmp_path: Path
) -> None:
    """Reading a hostile file is something, too: where the operator accepted less, it is told."""
    out = tmp_path / "out"
    found = graded(say, uploads, tiny_course, out, "--unofficial")
    assert {entry["sandbox"]["level"] for entry in found.values()} == {"unofficial"}
    told = say("export", "gradescope", out, "--partial", "--course", tiny_course)
    assert "was made without the isolation" in told and "400101202" in told


@pytest.mark.parametrize(
    ("found", "weak"),
    [
        (Attestation("unofficial"), False),  # what older versions kept where nothing ran
        (Attestation("unofficial", {}), True),
        (Attestation("unofficial", {"uid": "0"}, ("No Landlock.",)), True),
        (Attestation("unofficial", None, ("No Landlock.",)), True),
        (Attestation("strict", {}), False),
        (Attestation("local"), False),
    ],
)
def test_nothing_observed_is_no_weakness(found: Attestation, weak: bool) -> None:
    assert found.weak is weak
