"""The wheel that students install: the running grader, and nothing of the course.

It is made from the package as it is installed here, without a build tool and without the repository, so that
a grader hands out exactly itself. The same package gives the same bytes: dates and modes are fixed.
"""

import base64
import hashlib
import io
import zipfile
from importlib.metadata import Distribution, distributions
from pathlib import Path

import grader
from grader.domain.errors import UsageError
from grader.files import atomic

DISTRIBUTION = "vit-grader"
_NAME = "vit_grader"
_TAG = "py3-none-any"
_KINDS = {
    ".py",
    ".typed",
    ".txt",
    ".j2",
    ".css",
    ".po",
}  # of what else lies in the folder, nothing is handed out
_BEGINNINGS = "beginnings"
_METADATA = ("METADATA", "entry_points.txt", "top_level.txt")
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # the first date that a ZIP archive can hold
_MODE = 0o100644 << 16


def is_student_wheel(name: str) -> bool:
    """Whether a file of this name is a wheel of the grader, of whatever version."""
    return name.startswith(f"{_NAME}-") and name.endswith(".whl")


def write_student_wheel(folder: Path, wheel: tuple[str, bytes] | None = None) -> Path:
    """Put the wheel into a folder, in the place of those of other versions, and return its path.

    Args:
        folder: The students' folder, which exists.
        wheel: What `student_wheel` gives, where it is there already.

    Raises:
        UsageError: The running grader was not installed, or the folder cannot be written.
    """
    name, content = wheel or student_wheel()
    path = folder / name
    atomic.write(path, content)
    for other in folder.iterdir():
        if is_student_wheel(other.name) and other.name != name:
            other.unlink()
    return path


def student_wheel() -> tuple[str, bytes]:
    """The wheel's file name, and its content (format 1.0).

    Source: https://packaging.python.org/en/latest/specifications/binary-distribution-format/

    Raises:
        UsageError: The running grader was not installed, or its version has changed since.
    """
    installed = _installed()
    information = f"{_NAME}-{installed.version}.dist-info"
    files = _package_files(Path(grader.__file__).parent)
    for name in _METADATA:
        files[f"{information}/{name}"] = (installed.read_text(name) or "").encode()
    files[f"{information}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: {DISTRIBUTION} ({installed.version})\n"
        f"Root-Is-Purelib: true\nTag: {_TAG}\n"
    ).encode()
    record = f"{information}/RECORD"
    lines = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in files.items()]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    return f"{_NAME}-{installed.version}-{_TAG}.whl", _archive(files)


def _installed() -> Distribution:
    """What was installed as the running grader."""
    # an .egg-info that building left beside the source has the name as well, and not all that a wheel needs
    found = distributions(name=DISTRIBUTION)
    installed = next((each for each in found if each.read_text("METADATA")), None)
    if installed is None:
        raise UsageError(
            f"This grader was not installed, so it cannot be handed out. Install it: "
            f"python -m pip install {Path(grader.__file__).parents[1]}"
        )
    if installed.version != grader.__version__:
        raise UsageError(
            f"This grader is version {grader.__version__}, and was installed as {installed.version}. "
            f"Install it again: python -m pip install --editable {Path(grader.__file__).parents[1]}"
        )
    return installed


def _package_files(package: Path) -> dict[str, bytes]:
    """The files of the package: name in the wheel -> content, sorted by name."""
    return {
        path.relative_to(package.parent).as_posix(): path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.is_file()
        and path.suffix in _KINDS
        and not path.name.startswith(".")
        # what assignments begin with has solutions
        and _BEGINNINGS not in path.parts
    }


def _digest(content: bytes) -> str:
    """As RECORD writes it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, wherever it is made
            entry.external_attr = _MODE
            archive.writestr(entry, content)
    return buffer.getvalue()
