"""What a package holds: the engine as a wheel, one assignment with its checks, a key, scripts and settings.

The key is derived from the course's secret and stands in its place: nobody can work the secret out from it.
It decides which files of a course travel: no work of students, and hidden labels only where it trains.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from grader.course.locate import FILE as COURSE_FILE
from grader.course.locate import SECRET_VARIABLE, Course
from grader.course.student_template import student_wheel
from grader.course.toml_file import listing
from grader.domain.assignment import Assignment
from grader.domain.assignment_files import PROVIDED
from grader.domain.assignment_versions import PackedValues, students_key
from grader.domain.errors import UsageError
from grader.files.known_folders import visible
from grader.packages.failed_run import NOT_FINISHED, out_of_memory, out_of_time
from grader.packages.package_settings import FILE as SETTINGS_FILE
from grader.packages.package_settings import PackageSettings
from grader.reports.typesetting import language_of
from grader.sandbox.attestation import STRICT

PINS = "constraints.txt"
_ENGINE = "vit-grader"
_FOLDERS = ("checks", "mistakes", "oracle", "language", "handin", PROVIDED)
_FROM_INDEX_OF_TORCH = ("torch", "torchvision")


def assignment_key(secret: str, assignment_id: str) -> str:
    """What stands in the place of the course's secret, in the package of one assignment.

    Args:
        secret: The course's.
        assignment_id: The assignment's.
    """
    purpose = f"package\0{assignment_id}"
    return hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def require_packable(course: Course, assignment: Assignment, kind: str) -> None:
    """Refuse what a package cannot grade as `grader grade` does.

    Args:
        kind: `gradescope`, `container` or `prairielearn`.

    Raises:
        UsageError: The secret is public, the course wants more isolation, or students have values of their
            own where nothing tells whose a submission is.
    """
    if course.secret_is_public:
        raise UsageError(
            f"{COURSE_FILE}: 'secret' is still the one that the course was handed out with, so everybody "
            f"could derive a package's key. Put a long random text there, or into ${SECRET_VARIABLE}."
        )
    if course.minimum_level == STRICT and kind != "container":
        raise UsageError(
            f"{COURSE_FILE}: [sandbox] asks for '{STRICT}', which no other grader's container gives. Grade "
            "with `grader grade`, take that line out, or run your own container: grader package container."
        )
    own = [value.name for value in assignment.variant if value.per_student]
    if own and kind == "prairielearn":
        raise UsageError(
            f"{assignment.id}: [variant] draws {listing(own)} for each student, and PrairieLearn does not "
            "tell a grader whose a submission is. Grade it with `grader grade`, or draw the values for the "
            'term: leave out per = "student".'
        )


def packed_values(course: Course, assignment: Assignment) -> PackedValues:
    """What a package has in place of the secret that values are drawn from."""
    of_term = course.values(assignment.id, assignment.variant)
    each = any(value.per_student for value in assignment.variant)
    return PackedValues(of_term, students_key(course.secret, assignment.id, course.term) if each else "")


def package_files(
    course: Course, assignment: Assignment, settings: PackageSettings
) -> Iterator[tuple[str, bytes]]:
    """(name, content) of what a package of any kind holds, without the data of a reduced run.

    Raises:
        UsageError: The running grader was not installed.
    """
    yield SETTINGS_FILE, settings.text().encode()
    yield PINS, pinned_versions().encode()
    yield student_wheel()
    yield f"course/{COURSE_FILE}", _course_settings(course, assignment).encode()
    for path in _files_below(course.root / "language"):
        yield f"course/language/{path.relative_to(course.root / 'language').as_posix()}", path.read_bytes()
    for path in _assignment_files(assignment):
        name = path.relative_to(assignment.folder).as_posix()
        yield f"course/reference/{assignment.id}/{name}", path.read_bytes()


def _course_settings(course: Course, assignment: Assignment) -> str:
    values = {
        "title": course.title,
        "secret": assignment_key(course.secret, assignment.id),
        "language": course.language,
    }
    # a JSON string is a TOML string
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
    if course.course_late_days:
        lines += ["[late]", f"tokens = {course.course_late_days}"]
    lines += ["[sandbox]", f'minimum = "{course.minimum_level}"']
    return "\n".join([f"# Of a package: the key is derived for {assignment.id} alone.", *lines, ""])


def _assignment_files(assignment: Assignment) -> Iterator[Path]:
    """What judging takes: not the forms, which only `grader validate` needs."""
    yield from (path for path in visible(assignment.folder, "*.py", "*.toml") if path.is_file())
    for name in _FOLDERS:
        yield from _files_below(assignment.folder / name)


def _files_below(folder: Path) -> Iterator[Path]:
    return (path for path in visible(folder, "**/*") if path.is_file())


def words_of_failures(assignment: Assignment, minutes: float, memory_mb: int) -> dict[str, str]:
    """What a package says of a run that was not completed: English -> the language of the course.

    Args:
        minutes: That a run may take.
        memory_mb: That a run may use.
    """
    language = language_of(assignment)
    sentences = (NOT_FINISHED, out_of_time(minutes), out_of_memory(memory_mb))
    return {} if language.is_english else {each: language.translated(each) for each in sentences}


# --- versions --------------------------------------------------------------------------------------------


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def pinned_versions() -> str:
    """The versions of all libraries that the engine needs, as they are installed here: pip's constraints."""
    pins = {name: version(name).partition("+")[0] for name in _needed_libraries()}
    return "".join(f"{name}=={pin}\n" for name, pin in sorted(pins.items()))


def torch_requirements() -> str:
    """PyTorch's libraries with their versions, as pip's arguments."""
    return " ".join(f'"{name}=={version(name).partition("+")[0]}"' for name in _FROM_INDEX_OF_TORCH)


def _needed_libraries() -> set[str]:
    """What is installed of what the engine needs, of what that needs, and so on; extras of others are not."""
    needed: set[str] = set()
    waiting = [_ENGINE]
    while waiting:
        try:
            requirements = distribution(waiting.pop()).requires or []
        except PackageNotFoundError:
            continue  # of another system
        for requirement in requirements:
            matched = _NAME.match(requirement)
            name = re.sub(r"[-_.]+", "-", matched[0]).lower() if matched else ""
            if name and name not in needed and "extra ==" not in requirement and _is_installed(name):
                needed.add(name)
                waiting.append(name)
    return {name for name in needed if not name.startswith(("nvidia-", "cuda-", "triton"))}


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
