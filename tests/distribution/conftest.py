"""The distributions, built offline from a copy of the course whose secret is known to the tests."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

SECRET = "4be1c9-a-secret-of-this-course-9d07"
_LEFT_OUT = {".git", ".venv", "demo", "build", "dist", "__pycache__"}
_BUILD = """
import sys
from setuptools import build_meta
folder = sys.argv[1]  # the builds change the arguments
build_meta.build_wheel(folder)
build_meta.build_sdist(folder)
"""


@dataclass(frozen=True)
class Distributions:
    """What was built.

    Attributes:
        course: The copy of the repository that it was built from.
        wheel: Name in the archive -> content.
        sdist: The same, without the folder that holds everything.
    """

    course: Path
    wheel: dict[str, bytes]
    sdist: dict[str, bytes]


@pytest.fixture(scope="session")
def distributions(course_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """The wheel and the source distribution as setuptools makes them."""
    course = tmp_path_factory.mktemp("built") / "course"
    shutil.copytree(
        course_root,
        course,
        ignore=lambda _, names: [name for name in names if name in _LEFT_OUT or name.startswith(".")],
    )
    settings = course / "course.toml"
    text = settings.read_text("utf-8")
    text, count = re.subn(r'^secret = ".*"$', f'secret = "{SECRET}"', text, flags=re.MULTILINE)
    assert count == 1
    settings.write_text(text, encoding="utf-8")
    out = course.parent / "dist"
    out.mkdir()
    environment = os.environ | {"GRADER_SECRET": SECRET, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, str(out)],
        cwd=course, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [wheel], [sdist] = out.glob("*.whl"), out.glob("*.tar.gz")
    return Distributions(course, unpacked_wheel(wheel.read_bytes(), out / "copy.whl"), _unpacked_sdist(sdist))


def unpacked_wheel(content: bytes, path: Path) -> dict[str, bytes]:
    """Name in a wheel -> content; the wheel is put at `path`."""
    path.write_bytes(content)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {entry.filename: archive.read(entry) for entry in archive.infolist() if not entry.is_dir()}


def _unpacked_sdist(path: Path) -> dict[str, bytes]:
    files = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is not None:
                files[member.name.partition("/")[2]] = file.read()
    return files
