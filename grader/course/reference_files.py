"""What the reference hands in besides its code: `handin/metrics.csv`, named by the role."""

from grader.domain.assignment import Assignment
from grader.domain.errors import CourseError

HANDIN = "handin"  # a folder of an assignment


def reference_files(assignment: Assignment) -> dict[str, bytes]:
    """The files with which the solution, forms and mistakes are validated, by role.

    Raises:
        CourseError: A file is of no role that the assignment names, has another suffix, or cannot be read.
    """
    asked = {file.role: file.suffixes for file in assignment.files if file.role in assignment.own_roles}
    found: dict[str, bytes] = {}
    for path in sorted((assignment.folder / HANDIN).glob("*")):
        if path.stem in assignment.edition.left_out:
            continue
        if path.suffix.lower() not in asked.get(path.stem, ()):
            wanted = [f"{role}{suffix}" for role, suffixes in asked.items() for suffix in suffixes]
            there = f"It holds {' and '.join(wanted)}" if wanted else "[files] names no further role"
            raise CourseError(f"{HANDIN}/{path.name} is not a file that is handed in. {there}.")
        try:
            found[path.stem] = path.read_bytes()
        except OSError as error:
            raise CourseError(f"{HANDIN}/{path.name} cannot be read ({error.strerror}). Fix it.") from None
    return found
