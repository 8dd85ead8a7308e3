"""The archive of a package, for each grader that it is made for.

It puts the contents, the scripts and the description that the other grader reads together, under the names
that it expects. It decides nothing about what a package holds of a course.
"""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from grader.course.locate import Course
from grader.course.student_template import student_wheel
from grader.domain.assignment import Assignment
from grader.files import atomic
from grader.files.zip_archive import EARLIEST
from grader.packages.classroom_files import WORKFLOW, classroom_workflow
from grader.packages.install_scripts import PLACES, Sources, container_file, run_script, setup_script
from grader.packages.package_contents import (
    PINS,
    assignment_key,
    package_files,
    pinned_versions,
    require_packable,
)
from grader.packages.package_data import FILE as DATA_FILE
from grader.packages.package_data import PackedData, ReducedRequest, packed_data
from grader.packages.package_settings import FILE as SETTINGS_FILE
from grader.packages.package_settings import PackageSettings, ReducedRun
from grader.packages.question_files import question_description, question_page

SETUP, RUN, CONTAINER_FILE = "setup.sh", "run_autograder", "Containerfile"
_SCRIPTS = (SETUP, RUN)
_INSTALLED = (
    ".whl",
    PINS,
)  # of PrairieLearn's package: what the image gets; all else changes with the course
_QUESTION, _IMAGE = "question", "image"
MOST_BYTES = 5_000_000  # beyond which uploading and building are slow
_OVERHEAD = 20_000  # bytes, at most, of what a reduced run adds besides its images


@dataclass(frozen=True)
class WrittenPackage:
    """A package that was written.

    Attributes:
        path: The zip.
        size: In bytes.
        names: What it holds.
        data: What a reduced run trains on; None: nothing is trained.
    """

    path: Path
    size: int
    names: tuple[str, ...]
    data: PackedData | None = None


def write_package(
    path: Path,
    course: Course,
    assignment: Assignment,
    settings: PackageSettings,
    sources: Sources,
    *,
    image: str = "",
    reduced: ReducedRequest | None = None,
) -> WrittenPackage:
    """Write the zip of a package.

    Args:
        path: The zip; its folder exists.
        settings: For which grader, and what it allows.
        sources: Where the image gets its libraries from.
        image: For PrairieLearn: the name of the image.
        reduced: The reduced run of the training; None: checks only.

    Raises:
        UsageError: The assignment cannot be packed, or the zip cannot be written.
    """
    if settings.kind == "github":
        return _written(path, _for_classroom(assignment, sources))
    require_packable(course, assignment, settings.kind)
    places = PLACES[settings.kind]
    files = dict(package_files(course, assignment, settings))
    scripts = {SETUP: setup_script(sources, places).encode(), RUN: run_script(settings).encode()}
    if settings.kind != "gradescope":
        scripts[CONTAINER_FILE] = container_file(places, RUN).encode()
    data = None
    if reduced is not None:
        own_course = replace(course, secret=assignment_key(course.secret, assignment.id))
        room = MOST_BYTES - len(_archive(files | scripts)) - _OVERHEAD
        data = packed_data(own_course, assignment, reduced, room)
        run = ReducedRun(data.train, data.test, reduced.decides)
        files[SETTINGS_FILE] = replace(settings, reduced=run).text().encode()
        files[DATA_FILE] = data.content
    if settings.kind != "prairielearn":
        return replace(_written(path, files | scripts), data=data)
    installed = {name: content for name, content in files.items() if name.endswith(_INSTALLED)}
    read = {name: content for name, content in files.items() if name not in installed}
    entry = f"{places.home}/{places.package}/{RUN}"
    description = question_description(assignment, settings, image=image, entry=entry, secret=course.secret)
    question = {
        "info.json": description.encode(),
        "question.html": question_page(assignment).encode(),
        **{f"tests/{name}": content for name, content in read.items()},
    }
    written = _written(path, _below(_QUESTION, question) | _below(_IMAGE, installed | scripts))
    return replace(written, data=data)


def _for_classroom(assignment: Assignment, sources: Sources) -> dict[str, bytes]:
    """What is put into the repository that students receive, beside the template."""
    name, content = student_wheel()
    return {
        WORKFLOW: classroom_workflow(assignment, sources, name).encode(),
        f".github/{PINS}": pinned_versions().encode(),
        name: content,
    }


def _below(folder: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"{folder}/{name}": content for name, content in files.items()}


def _written(path: Path, files: Mapping[str, bytes]) -> WrittenPackage:
    content = _archive(files)
    atomic.write(path, content, remedy="Choose another place: --out")
    return WrittenPackage(path, len(content), tuple(files))


def _archive(files: Mapping[str, bytes]) -> bytes:
    """A zip whose scripts can be executed, and whose bytes follow from what is in them."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3  # Unix, on every system
            mode = 0o755 if Path(name).name in _SCRIPTS else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, content)
    return held.getvalue()
