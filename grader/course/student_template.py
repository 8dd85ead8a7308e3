"""Makes what students receive, the template and the wheel, which are never edited by hand.

The template is made from the reference, as a notebook and other files, with a student's own values. The
wheel is the running grader without the course, made from the package as it is installed here. The same
package gives the same bytes, because dates and modes are fixed. `grader.course.reference_solution` decides
what a mark in the solution hides.
"""

import base64
import hashlib
import io
import json
import re
import shutil
import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict

import grader
from grader.course.assignment_tables import ProvidedTable
from grader.course.check_files import PUBLIC_FILE, checks
from grader.course.editions import edition_of, edition_text, without_left_out
from grader.course.homework_files import provided_files
from grader.course.locate import Course
from grader.course.measures import MEASURES_FILE, measures_file
from grader.course.reference_solution import homework_source
from grader.course.rubric import hidden_checks_text
from grader.course.toml_file import Table, toml_table
from grader.course.variant_values import (
    VALUES_FILE,
    filled_text,
    own_values_text,
    values_stated_in,
    written_id,
)
from grader.domain.assignment_files import PROVIDED
from grader.domain.assignment_versions import ONE_EDITION, DrawnValue, Edition, Value, python_text
from grader.domain.errors import CourseError, UsageError
from grader.files import atomic

if TYPE_CHECKING:
    from nbformat import NotebookNode


DISTRIBUTION = "vit-grader"
_NAME = "vit_grader"
_TAG = "py3-none-any"
_KINDS = {
    ".py",
    ".typed",
    ".txt",
    ".j2",
    ".js",
    ".css",
    ".po",
}  # no other files of the package are handed out
_BEGINNINGS = "beginnings"
_METADATA = ("METADATA", "entry_points.txt", "top_level.txt")
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # the first date that a ZIP archive can hold
_MODE = 0o100644 << 16


def is_student_wheel(name: str) -> bool:
    """Whether a file of this name is a wheel of the grader, of any version."""
    return name.startswith(f"{_NAME}-") and name.endswith(".whl")


def write_student_wheel(folder: Path, wheel: tuple[str, bytes] | None = None) -> Path:
    """Put the wheel into a folder, in place of those of other versions, and return its path.

    Args:
        folder: The students' folder, which exists.
        wheel: The result of `student_wheel`, if it is already known.

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
    """The distribution that was installed as the running grader."""
    # an .egg-info that a build left beside the source has the same name, but lacks some of a wheel's files
    candidates = distributions(name=DISTRIBUTION)
    installed = next((candidate for candidate in candidates if candidate.read_text("METADATA")), None)
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
        # the beginnings of assignments contain solutions
        and _BEGINNINGS not in path.parts
    }


def _digest(content: bytes) -> str:
    """The digest as RECORD writes it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, on whatever system it is made
            entry.external_attr = _MODE
            archive.writestr(entry, content)
    return buffer.getvalue()


# --- student template ------------------------------------------------------------------------------------


_CELL = re.compile(r"# %%\s*(?P<markdown>\[markdown\])?\s*$")
_PRIVATE_BEGIN = "# >>> instructors only"
_PRIVATE_END = "# <<<"


class _WithProvided(Table):
    """Of the whole file, the table of provided files."""

    model_config = ConfigDict(extra="ignore")

    provided: ProvidedTable | None = None


@dataclass(frozen=True)
class HandedOutCopy:
    """Says whose copy of an assignment is made, and with which values.

    Attributes:
        stated: The values that the assignment states.
        values: The drawn values: see `Course.values`.
        student_id: Empty: nobody's, in which values that differ between students have their first choice.
    """

    stated: tuple[DrawnValue, ...] = ()
    values: dict[str, Value] = field(default_factory=dict)
    student_id: str = ""

    @property
    def per_student(self) -> Sequence[DrawnValue]:
        """The values that are drawn for each student."""
        return [value for value in self.stated if value.per_student]


NOBODYS = HandedOutCopy()  # for an assignment that draws no values


def handed_out_copy(course: Course, assignment_id: str, student_id: str = "") -> HandedOutCopy:
    """The copy of an assignment that a student gets this term.

    Args:
        student_id: Empty: nobody's.

    Raises:
        CourseError: `[variant]` of the assignment is malformed.
        UsageError: There is no such assignment.
    """
    stated = values_stated_in(course.reference(assignment_id))
    return HandedOutCopy(stated, course.values(assignment_id, stated, student_id), student_id)


def student_files(
    assignment_folder: Path, datasets_folder: Path | None = None, copy: HandedOutCopy = NOBODYS
) -> dict[str, str]:
    """The files of the student's folder: relative name (with `/`) -> text.

    Args:
        assignment_folder: `reference/<id>` of a course.
        datasets_folder: Where the course's data sets are; None: `datasets` beside `reference`.
        copy: Whose copy it is, if values are drawn.

    Raises:
        CourseError: A file is missing, or a mark in one is malformed.
    """
    shown = f"reference/{assignment_folder.name}"
    datasets = datasets_folder or assignment_folder.parent.parent / "datasets"
    edition = edition_of(assignment_folder)
    solution = _text(assignment_folder / "solution.py", shown, edition)
    homework = homework_source(solution, f"{shown}/solution.py", copy.values)
    readme = without_left_out(_text(assignment_folder / "student_readme.md", shown, edition))
    settings = without_left_out(_text(assignment_folder / "assignment.toml", shown, edition))
    public_checks = without_left_out(
        _text(assignment_folder / "checks" / PUBLIC_FILE, f"{shown}/checks", edition)
    )
    names = _component_names(settings, f"{shown}/assignment.toml")
    tables_for_students = _handed_out(homework, copy) + hidden_checks_text(
        checks(assignment_folder, names, left_out=edition.left_out)
    )
    files = {
        "homework.py": homework,
        "homework.ipynb": notebook(homework, assignment_folder.name, f"{shown}/solution.py"),
        "README.md": _with_note(filled_text(readme, copy.values, f"{shown}/student_readme.md"), copy),
        PUBLIC_FILE: (
            f"# Generated by `grader template` from the checks of {assignment_folder.name}. "
            f"Changes are overwritten.\n{public_checks}"
        ),
        "assignment.toml": public_settings(settings, f"{shown}/assignment.toml") + tables_for_students,
    }
    if (functions := measures_file(assignment_folder, public_only=False)).is_file():
        files[MEASURES_FILE] = without_left_out(_text(functions, f"{shown}/checks", edition))
    for name in _dataset_names(settings, f"{shown}/assignment.toml"):
        files[f"datasets/{name}.py"] = _text(datasets / f"{name}.py", "datasets", ONE_EDITION)
    if copy.stated:
        files[VALUES_FILE] = own_values_text(copy.values, copy.student_id)
    return files


def write_template(
    assignment_folder: Path,
    destination: Path,
    datasets_folder: Path | None = None,
    copy: HandedOutCopy = NOBODYS,
    wheel: tuple[str, bytes] | None = None,
) -> list[Path]:
    """Write the student's folder, over any existing files, and return the files written.

    Besides the files of `student_files` it gets the provided files, and the grader itself, as a wheel for
    students to install. Wheels of other versions are removed; files of other names are left alone.

    Args:
        assignment_folder: `reference/<id>` of a course.
        destination: The folder to write; it is created.
        datasets_folder: Where the course's data sets are; None: `datasets` beside `reference`.
        copy: Whose copy it is, if values are drawn.
        wheel: The result of `student_wheel`, if it is already known.

    Raises:
        CourseError: As in `student_files`; nothing is written then.
        UsageError: The running grader was not installed.
    """
    written = []
    texts, provided = student_files(assignment_folder, datasets_folder, copy), provided_in(assignment_folder)
    for name, text in texts.items():
        path = destination / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        written.append(path)
    for name, path in provided.items():
        shutil.copyfile(path, destination / name)
        written.append(destination / name)
    return [*written, write_student_wheel(destination, wheel)]


def provided_in(assignment_folder: Path) -> dict[str, Path]:
    """The files of `[provided]`: name -> path.

    Raises:
        CourseError: One is missing, or does not have its digest.
    """
    settings = toml_table(assignment_folder / "assignment.toml", _WithProvided, edition_of(assignment_folder))
    folder = assignment_folder / PROVIDED
    return {file.name: folder / file.name for file in provided_files(settings.provided, folder)}


def notebook(source: str, assignment_id: str, name: str) -> str:
    """A notebook (format 4.5, JSON, without outputs) from a script whose cells begin with `# %%`.

    Args:
        source: The script.
        assignment_id: Part of the cells' ids, which depend on nothing else but their order.
        name: The file that the script is made from, for messages.

    Raises:
        CourseError: A line of a text cell is not a comment.
    """
    from nbformat import v4  # imported here, so that reading a course does not wait for it

    cells: list[NotebookNode] = []
    lines: list[str] = []
    is_text = False

    def close_cell() -> None:
        text = "\n".join(lines).strip("\n")
        lines.clear()
        cell_id = f"{assignment_id}-{len(cells) + 1:02d}"
        if text and is_text:
            cells.append(v4.new_markdown_cell(text, id=cell_id))
        elif text:
            cells.append(v4.new_code_cell(text, id=cell_id))

    for line in source.split("\n"):
        if marker := _CELL.match(line):
            close_cell()
            is_text = marker["markdown"] is not None
        elif is_text:
            lines.append(_uncommented(line, name))
        else:
            lines.append(line)
    close_cell()
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    written: str = v4.writes(v4.new_notebook(cells=cells, metadata=metadata, nbformat_minor=5))
    return f"{written}\n"


def public_settings(text: str, name: str) -> str:
    """assignment.toml without the lines between `# >>> instructors only` and `# <<<`.

    Args:
        text: The file's text.
        name: Its name, for messages.

    Raises:
        CourseError: A mark is malformed, or what is left is not TOML.
    """
    kept: list[str] = []
    opened = 0
    after_removal = False
    for number, line in enumerate(text.split("\n"), start=1):
        mark = line.strip()
        if mark.startswith("# >>>"):
            if mark != _PRIVATE_BEGIN or opened:
                raise CourseError(
                    f"{name}:{number}: '{mark}' is not a mark that can stand here. Write "
                    f"'{_PRIVATE_BEGIN}', and close it with '{_PRIVATE_END}' before the next one."
                )
            opened = number
        elif mark == _PRIVATE_END:
            if not opened:
                raise CourseError(f"{name}:{number}: '{_PRIVATE_END}' closes no mark. Remove it.")
            opened = 0
            after_removal = True
        elif opened:
            continue
        elif after_removal and not line.strip() and not (kept and kept[-1].strip()):
            continue  # so that the blank lines around removed ones are not doubled
        else:
            kept.append(line)
            after_removal = False
    if opened:
        raise CourseError(f"{name}:{opened}: this mark is never closed. Add '{_PRIVATE_END}' below it.")
    public = "\n".join(kept).strip("\n") + "\n"
    try:
        tomllib.loads(public)
    except tomllib.TOMLDecodeError as error:
        raise CourseError(
            f"{name}: without the instructors' part it is no longer TOML ({error}). "
            f"Put whole tables between the marks."
        ) from None
    return public


def _with_note(readme: str, copy: HandedOutCopy) -> str:
    """The README with a sentence on whose copy it is, if values are drawn for each student."""
    if not copy.per_student:
        return readme
    names = ", ".join(f"`{value.name}`" for value in copy.per_student)
    if copy.student_id:
        values = ", ".join(
            f"`{value.name} = {python_text(copy.values[value.name])}`" for value in copy.per_student
        )
        note = f"This is the copy of student {copy.student_id}: {values}. Work with no other values."
    else:
        note = (
            f"This copy is nobody's: each student has other values of {names}, and here stands the first "
            "choice. Work in the copy that was made for you."
        )
    return f"{readme.rstrip()}\n\n> {note}\n"


def _uncommented(line: str, name: str) -> str:
    if line.startswith("# "):
        return line[2:]
    if line.strip() in ("", "#"):
        return ""
    raise CourseError(
        f"{name}: in a text cell ('# %% [markdown]') every line is a comment, but one is {line.strip()!r}. "
        f"Put '# %%' before the code."
    )


def _handed_out(homework: str, copy: HandedOutCopy) -> str:
    """The `[handed_out]` table for the student's file: the id in the code, if it is only an example."""
    example = written_id(homework)
    if example is None or example[0] == copy.student_id:
        return ""
    return f"\n\n[handed_out]\nstudent_id = {json.dumps(example[0])}  # in the homework, and nobody's\n"


def _settings(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CourseError(f"{name}: not TOML: {error}. Correct the file.") from None


def _component_names(settings: str, name: str) -> list[str]:
    """The names of what students write; other faults in the tables are left to the file's reader."""
    tables = _settings(settings, name).get("component", [])
    return [str(table["name"]) for table in tables if isinstance(table, dict) and "name" in table]


def _dataset_names(settings: str, name: str) -> list[str]:
    """The file names (without `.py`) of the assignment's data sets, each once; none if it has no data."""
    data = _settings(settings, name).get("data")
    if data is None:
        return []
    names = [data.get(key) for key in ("real", "synthetic")] if isinstance(data, dict) else [None]
    if not all(isinstance(name_of_set, str) and re.fullmatch(r"\w+", name_of_set) for name_of_set in names):
        raise CourseError(
            f"{name}: [data] does not name the data sets. "
            f"Give it 'real' and 'synthetic', each a file name under datasets/ without '.py'."
        )
    return list(dict.fromkeys(str(name_of_set) for name_of_set in names))


def _text(path: Path, shown_folder: str, edition: Edition) -> str:
    shown = f"{shown_folder}/{path.name}"
    try:
        return edition_text(path.read_text(encoding="utf-8"), edition, shown)
    except FileNotFoundError:
        raise CourseError(f"{shown} is missing: the students' folder is made from it. Write it.") from None
    except UnicodeDecodeError:
        raise CourseError(f"{shown} is not UTF-8 text. Save it in that encoding.") from None
    except OSError as error:
        raise CourseError(f"{shown} cannot be read: {error.strerror}. Fix the file.") from None
