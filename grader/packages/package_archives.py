"""The archive of a package, for each grader that it is made for.

It puts the contents, the scripts and the description that the other grader reads together, under the names
that it expects. It decides nothing about what a package holds of a course.
"""

import io
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from grader.course.locate import Course
from grader.domain.assignment import Assignment
from grader.files import atomic
from grader.files.zip_archive import EARLIEST
from grader.packages.install_scripts import Sources, container_file, run_script, setup_script
from grader.packages.package_contents import package_files
from grader.packages.package_settings import PackageSettings

SETUP, RUN, CONTAINER_FILE = "setup.sh", "run_autograder", "Containerfile"
_SCRIPTS = (SETUP, RUN)
_ROOTS = {"gradescope": ("/autograder", "source"), "container": ("/autograder", "source")}


@dataclass(frozen=True)
class WrittenPackage:
    """A package that was written.

    Attributes:
        path: The zip.
        size: In bytes.
        names: What it holds.
    """

    path: Path
    size: int
    names: tuple[str, ...]


def write_package(
    path: Path, course: Course, assignment: Assignment, settings: PackageSettings, sources: Sources
) -> WrittenPackage:
    """Write the zip of a package.

    Args:
        path: The zip; its folder exists.
        settings: For which grader, and what it allows.
        sources: Where the image gets its libraries from.

    Raises:
        UsageError: The assignment cannot be packed, or the zip cannot be written.
    """
    files = dict(package_files(course, assignment, settings))
    root, package = _ROOTS[settings.kind]
    files[SETUP] = setup_script(sources, root, package).encode()
    files[RUN] = run_script(settings.kind, root).encode()
    if settings.kind == "container":
        files[CONTAINER_FILE] = container_file(root, package, RUN).encode()
    content = _archive(files.items())
    atomic.write(path, content, remedy="Choose another place: --out")
    return WrittenPackage(path, len(content), tuple(files))


def _archive(files: Iterable[tuple[str, bytes]]) -> bytes:
    """A zip whose scripts can be executed, and whose bytes follow from what is in them."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3  # Unix, on every system
            mode = 0o755 if Path(name).name in _SCRIPTS else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, content)
    return held.getvalue()
