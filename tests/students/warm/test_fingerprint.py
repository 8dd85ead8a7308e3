"""What must be the same for a warm process to find what a new one would."""

import os
import sys

import pytest

import grader
from grader.students.warm import address as module
from grader.students.warm.address import fingerprint

ENVIRONMENT = {"PATH": "/bin", "TERM": "xterm", "PYTHONPATH": "/a"}


@pytest.fixture
def folder(tmp_path):
    for name in ("assignment.toml", "test_public_vit.py", "homework.py"):
        (tmp_path / name).write_text(f"{name}\n")
    return tmp_path


def test_what_is_not_read_on_loading_makes_no_difference(folder):
    before = fingerprint(folder, ENVIRONMENT)
    (folder / "homework.py").write_text("class ViT: ...\n")
    other = {"TERM": "dumb", "COLUMNS": "40", "NO_COLOR": "1", "PYTHONPATH": "/a", "GRADER_WARM": "1"}
    assert fingerprint(folder, other) == before


@pytest.mark.parametrize(
    "name", ["assignment.toml", "test_public_vit.py", "test_public_new.py", "conftest.py", "variant.json"]
)
def test_a_file_of_the_assignment_does(folder, name):
    before = fingerprint(folder, ENVIRONMENT)
    (folder / name).write_text("another\n")
    assert fingerprint(folder, ENVIRONMENT) != before


@pytest.mark.parametrize(
    "name",
    [
        "PYTHONPATH",
        "PYTHONHASHSEED",
        "OMP_NUM_THREADS",
        "CUDA_VISIBLE_DEVICES",
        "LANG",
        "HOME",
        "GRADER_CACHE",
    ],
)
def test_a_variable_that_is_read_on_loading_does(folder, name):
    assert fingerprint(folder, {**ENVIRONMENT, name: "/b"}) != fingerprint(folder, ENVIRONMENT)


def test_another_grader_python_or_library_does(folder, tmp_path, monkeypatch):
    packages = tmp_path / "site-packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(packages)
    found = [fingerprint(folder, ENVIRONMENT)]

    def another():
        found.append(fingerprint(folder, ENVIRONMENT))
        assert len(set(found)) == len(found)

    (packages / "timm").mkdir()
    os.utime(packages, (1, 1))
    another()
    monkeypatch.setattr(module, "__version__", "0.0.0")
    another()
    monkeypatch.setattr(sys, "executable", "/another/python")
    another()
    # the same version, installed anew
    wheel = tmp_path / "grader"
    (wheel / "cli").mkdir(parents=True)
    for file in (wheel / "__init__.py", wheel / "cli" / "check.py"):
        file.write_text("")
    monkeypatch.setattr(grader, "__file__", str(wheel / "__init__.py"))
    another()
    os.utime(wheel / "cli" / "check.py", (5, 5))
    another()
