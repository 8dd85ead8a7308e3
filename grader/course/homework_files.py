"""The files of a homework: those that students get, and those that they hand in.

It reads `[provided]` and `[files]` of `assignment.toml`. It decides which names and roles are allowed,
and computes the digest of each provided file. It never opens a file that a student handed in.
"""

import hashlib
import keyword
import pkgutil
import re
import sys
import sysconfig
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from grader.course.assignment_tables import (
    FilesTable,
    OptionalTable,
    ProvidedTable,
    RequiredTable,
    SubmittedFileTable,
)
from grader.course.toml_file import fault, listing, remedy, require_different
from grader.domain.assignment_files import (
    HUB,
    PROVIDED,
    TORCH,
    ProvidedFile,
    SubmittedFile,
)
from grader.domain.limits import MEGABYTE
from grader.domain.submission import Role
from grader.files.known_folders import is_public_checks

# other files of a student's folder, and names that tools would take for their own
_TAKEN = {
    *("homework.py", "homework.ipynb", "readme.md", "assignment.toml", "course.toml"),
    *("dataset.zip", "datasets", "handin", "pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg"),
}
_PROVIDED_CODE = (".ipynb", ".whl", ".pyc", ".so")
_MODULE = ".py"
CACHES = (TORCH, HUB)
MOST_MB = 1000  # of a file: each host of workers has a copy


def provided_files(table: ProvidedTable | None, folder: Path | None) -> tuple[ProvidedFile, ...]:
    """The files that students get with an assignment.

    Args:
        table: `[provided]`, if there is one.
        folder: Where they lie, to compare them with their digests; None: they are not compared.

    Raises:
        CourseError: A name or a place cannot be used, or a file is missing or does not have its digest.
    """
    if table is None:
        return ()
    for name in table.files:
        _require_name(name)
    require_different((name.lower() for name in table.files), "[provided]: the file", "Name it once.")
    for name in table.sha256:
        if name not in table.files:
            advice = remedy(name, table.files, "Add it to 'files', or remove it.")
            raise fault(f"[provided.sha256] has '{name}', which is not in 'files'. {advice}")
    if folder is not None:
        _require_no_clash(table.files)
    for name in table.files:
        _require_digest(name, table.sha256.get(name), folder)
    for place, name in table.cache.items():
        _require_place(place, name, table.files)
    return tuple(
        ProvidedFile(
            name,
            table.sha256[name].lower(),
            tuple(place for place, cached in table.cache.items() if cached == name),
            (folder / name).read_bytes() if folder is not None and name.endswith(_MODULE) else b"",
        )
        for name in table.files
    )


def file_digest(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _require_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", name):
        raise fault(
            f"[provided]: '{name}' is not the name of a file in {PROVIDED}/. Use letters, digits, '_', '-' "
            "and dots, and no folder."
        )
    if name.lower() in _TAKEN or is_public_checks(name.lower()):
        raise fault(f"[provided]: '{name}' is the name of another file that students have. Rename it.")
    if name.lower().endswith(_PROVIDED_CODE):
        raise fault(
            f"[provided]: '{name}' cannot be provided: of code, only modules can. Give it as a .py file."
        )
    module = name.removesuffix(_MODULE)
    if name.endswith(_MODULE) and (not module.isidentifier() or keyword.iskeyword(module)):
        raise fault(f"[provided]: '{name}' cannot be imported: that is not a name in Python. Rename it.")


def _require_no_clash(names: Sequence[str]) -> None:
    """Check that homework that imports a provided module does not get another one."""
    modules = [name for name in names if name.endswith(_MODULE)]
    if not modules:
        return
    folders = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    module_names = sys.stdlib_module_names | {module.name for module in pkgutil.iter_modules(folders)}
    for name in modules:
        if name.removesuffix(_MODULE) in module_names:
            raise fault(f"[provided]: Python or a library has a module of the name of '{name}'. Rename it.")


def _require_digest(name: str, stated: str | None, folder: Path | None) -> None:
    path = folder / name if folder is not None else None
    if path is not None and (path.is_symlink() or not path.is_file()):
        raise fault(
            f"[provided]: {PROVIDED}/{name} is missing, or not a plain file. Put it there, or remove "
            "its name."
        )
    if path is not None and path.stat().st_size > MOST_MB * MEGABYTE:
        raise fault(
            f"[provided]: {PROVIDED}/{name} has over {MOST_MB} MB. Provide a smaller one: half precision, or "
            "without the state of an optimizer."
        )
    line = f'"{name}" = "{file_digest(path) if path is not None else "..."}"'
    if stated is None:
        raise fault(f"[provided]: '{name}' has no SHA-256. Write {line} below [provided.sha256].")
    if not re.fullmatch(r"[0-9A-Fa-f]{64}", stated):
        raise fault(f"[provided.sha256]: that of '{name}' is not 64 hexadecimal digits. Write {line}.")
    if path is not None and file_digest(path) != stated.lower():
        raise fault(
            f"[provided]: {PROVIDED}/{name} is not the file that [provided.sha256] describes. Put the "
            f"right one there, or write {line}."
        )


def _require_place(place: str, name: str, names: list[str]) -> None:
    if name not in names:
        advice = remedy(name, names, f"There are {listing(names)}.")
        raise fault(f"[provided.cache]: '{name}' is not in 'files'. {advice}")
    parts = PurePosixPath(place).parts
    plain = all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.=+-]*", part) for part in parts)
    if not plain or len(parts) < 2 or parts[0] not in CACHES or place != "/".join(parts):
        raise fault(
            f"[provided.cache]: '{place}' is not a place in a cache. Write torch/hub/checkpoints/FILE or "
            "huggingface/OWNER/NAME/FILE, as in torch/hub/checkpoints/vit.pth."
        )
    if parts[0] == HUB and parts[1] != "hub" and len(parts) < 4:
        raise fault(
            f"[provided.cache]: '{place}' lacks the owner, the name or the file. Write "
            "huggingface/OWNER/NAME/FILE, as in huggingface/timm/vit_tiny_patch16_224/model.safetensors."
        )


# --- submitted files -------------------------------------------------------------------------------------


# intake unpacks these: what counts as handed in is their content
_ARCHIVES = {".zip", ".rar", ".7z", ".tar", ".gz", ".tgz", ".bz2", ".xz"}
_CODE_SUFFIXES = {".py", ".ipynb"}


def file_stem(table: FilesTable) -> str:
    """How the names of all files begin.

    Raises:
        CourseError: It does not hold the student's id exactly once, or has characters that no name can have.
    """
    return _stem(table.stem, "[files]: 'stem'")


def submitted_files(table: FilesTable) -> tuple[SubmittedFile, ...]:
    """The files that are handed in: those of the engine's roles first, then of the assignment's own.

    Raises:
        CourseError: A role, a suffix or a stem cannot be used, or two files cannot be distinguished.
    """
    required, optional = _values(table.required), _values(table.optional)
    if Role.CODE in optional:
        raise fault(f"[files.optional] has '{Role.CODE}', which is always required. Move it there.")
    if in_both := [role for role in required if role in optional]:
        raise fault(f"[files]: '{in_both[0]}' is required and optional. Keep it in one of the two tables.")
    files = [_file(role, value, "[files.required]", required=True) for role, value in required.items()]
    files += [_file(role, value, "[files.optional]", required=False) for role, value in optional.items()]
    order = {role.value: place for place, role in enumerate(Role)}
    files.sort(key=lambda file: order.get(file.role, len(order)))
    for index, file in enumerate(files):
        for other in files[:index]:
            _require_distinguishable(other, file)
    return tuple(files)


def _values(table: RequiredTable | OptionalTable) -> dict[str, Any]:
    values = {role.value: getattr(table, role.value, None) for role in Role}
    return {
        role: value for role, value in {**values, **(table.model_extra or {})}.items() if value is not None
    }


def _stem(stem: str, what: str) -> str:
    rest = stem.replace("{student_id}", "", 1)
    if rest == stem or re.search(r"[{}/\\]", rest):
        raise fault(f"{what} is '{stem}'. It must have {{student_id}} once, and no other braces or slashes.")
    return stem


def _require_role(role: str, where: str) -> None:
    engine_roles = [role_of_engine.value for role_of_engine in Role]
    if role in engine_roles:
        return
    if close := get_close_matches(role, engine_roles, n=1, cutoff=0.75):
        raise fault(
            f"{where} has '{role}', which is nearly '{close[0]}'. Write that, or give it another name."
        )
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", role):
        raise fault(
            f"{where}: the role '{role}' is not a word of small letters such as 'metrics'. Rename it."
        )


def _file(role: str, value: Any, where: str, *, required: bool) -> SubmittedFile:
    _require_role(role, where)
    try:
        table = SubmittedFileTable.model_validate(
            {"suffixes": value} if isinstance(value, list) else value, strict=True
        )
    except ValidationError:
        raise fault(
            f"{where}: '{role}' is neither a list of suffixes nor a table with them. Write {role} = "
            f'[".csv"], or {role} = {{ suffixes = [".csv"], stem = "{{student_id}}_{role}" }}.'
        ) from None
    _require_suffixes(role, table.suffixes, where)
    stem = _stem(table.stem, f"{where}: 'stem' of '{role}'") if table.stem is not None else ""
    return SubmittedFile(role, tuple(table.suffixes), stem, required)


def _require_suffixes(role: str, suffixes: Sequence[str], where: str) -> None:
    for suffix in suffixes:
        if not re.fullmatch(r"\.[a-z0-9]+", suffix):
            raise fault(
                f"[files]: '{suffix}' of '{role}' is not a small-letter suffix such as '.py'. Fix it."
            )
        if suffix in _ARCHIVES:
            raise fault(f"{where}: '{suffix}' of '{role}' is an archive, which is unpacked. Ask for a file.")
        if suffix in _CODE_SUFFIXES and role != Role.CODE:
            raise fault(f"{where}: '{suffix}' of '{role}' is code. Ask for it as 'code'.")
    repeated = [suffix for suffix in suffixes if suffixes.count(suffix) > 1]
    if repeated:
        raise fault(f"[files]: the suffix '{repeated[0]}' is there twice. Keep it for one kind of file.")


def _require_distinguishable(file: SubmittedFile, other: SubmittedFile) -> None:
    shared = [suffix for suffix in file.suffixes if suffix in other.suffixes]
    if shared and file.stem.casefold() == other.stem.casefold():
        raise fault(
            f"[files]: the suffix '{shared[0]}' is there twice. Keep it for one kind of file, or give "
            f"{listing([file.role, other.role])} a 'stem' each."
        )
