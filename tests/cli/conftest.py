"""A student's folder as the course hands it out, and commands run in it with warm workers."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from grader.cli import cli
from grader.course.student_template import notebook, write_template

Run = Callable[..., Result]


@pytest.fixture(scope="session")
def handout(course_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What students receive; not to be written to."""
    folder = tmp_path_factory.mktemp("handout")
    write_template(course_root / "reference" / "vit_defects", folder, course_root / "datasets")
    return folder


@pytest.fixture
def desk(handout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A student's own copy of it, which is the working folder too."""
    folder = tmp_path / "vit"
    shutil.copytree(handout, folder)
    monkeypatch.chdir(folder)
    for name in ("GRADER_COURSE", "GRADER_SECRET", "GRADER_DEBUG", "GRADER_GRADEBOOK", "GRADER_BY"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture(scope="session")
def solved_notebook(solved: str) -> str:
    """The solution as a notebook."""
    return notebook(solved, "vit_defects", "solution.py")


@pytest.fixture(scope="session")
def small_solution(solved: str) -> str:
    """The solution with a model and a training that take a second."""
    text = solved.replace("depth=6,", "depth=1,").replace("N_EPOCHS = 30", "N_EPOCHS = 2")
    assert text.count("depth=1,") == 1 and text.count("N_EPOCHS = 2") == 1
    return text


@pytest.fixture
def run(warm_workers: object, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line in this process: `run("check", "homework.py")`.

    A trial of the training may take long: what is told of it must not depend on who else uses the machine.
    """
    monkeypatch.setattr("grader.students.own_check.CHECK_SECONDS", 120.0)
    return lambda *arguments: CliRunner().invoke(cli, list(map(str, arguments)), prog_name="grader")


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of 60 small images in the six classes; brightness tells them apart."""
    folder = tmp_path_factory.mktemp("images")
    random = np.random.default_rng(0)
    classes = ("crazing", "inclusion", "patches", "pitted_surface", "rolled-in_scale", "scratches")
    for label, name in enumerate(classes):
        (folder / name).mkdir()
        for number in range(10):
            pixels = random.integers(40 * label, 40 * label + 40, (28, 28), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{name}_{number}.png")
    return folder
