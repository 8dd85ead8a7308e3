"""What the intake tests share: an assignment, folders of files, zips."""

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from grader.domain.assignment import Assignment, DataUse
from grader.domain.assignment_files import SubmittedFile
from grader.domain.limits import Limits
from grader.domain.submission import Role


@pytest.fixture(scope="session")
def assignment() -> Assignment:
    """Three required files and small limits."""
    files = (
        SubmittedFile(Role.CODE, (".py", ".ipynb")),
        SubmittedFile(Role.CHECKPOINT, (".pth",)),
        SubmittedFile(Role.REPORT, (".pdf",)),
    )
    return Assignment(
        id="vit_defects",
        title="ViT",
        folder=Path(),
        file_stem="{student_id}_Lab8_Homework",
        files=files,
        components=(),
        checks=(),
        rubric=(),
        forbidden=(),
        limits=Limits(source_kb=2, notebook_mb=1, checkpoint_mb=1, file_mb=1, archive_mb=2),
        data=DataUse("real", "synthetic", ()),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[Mapping[str, bytes | str]], Path]:
    """A folder with the given files; names may have folders."""

    def of(files: Mapping[str, bytes | str]) -> Path:
        root = tmp_path / "class"
        root.mkdir(exist_ok=True)
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return root

    return of


@pytest.fixture(scope="session")
def zipped() -> Callable[[Mapping[str, bytes | str]], bytes]:
    """A zip with the given entries."""

    def of(files: Mapping[str, bytes | str]) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return stream.getvalue()

    return of
