"""Sealed functions, which student code cannot reach unseen, and their channel to the judge.

Other code of the process can find and change what is in a closure, in globals or in an object. Constants of
code cannot be changed, and Python raises an audit event before anybody reads `__code__`, sees a frame or asks
the collector: `audit_hook` hears it. It decides for whom a frame works: for the first frame of the student's
or of sealed code, outward through libraries. A pipe that leads elsewhere ends the process. `forbidden_watch`
and `audit_hook` decide what is sealed and what is reported.

Tests: tests/worker/test_sealed.py, tests/worker/test_watch.py
"""

import builtins
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from grader.protocol.frames import HEADER, MAGIC

MARK = "sealed:"  # begins the constants of a template that are to be replaced
FILE = "watched:"  # begins the file name of sealed code
# sealed code looks nothing up; C code that imports something within it looks for `__import__`
_GLOBALS: dict[str, Any] = {"__builtins__": builtins}


def sealed(template: Callable[..., Any], file: str, **values: Any) -> FunctionType:
    """A function with a template's code.

    Args:
        template: A plain function without free variables, which uses nothing but its arguments, its locals,
            and constants such as `"sealed:write"`.
        file: What comes after `watched:` in the name of its file.
        values: What the constants are replaced by.
    """
    return FunctionType(sealed_code(template, file, **values), _GLOBALS)


def sealed_code(template: Callable[..., Any], file: str, **values: Any) -> CodeType:
    """The code of such a function.

    Raises:
        ValueError: The template looks something up, or its constants have other names.
    """
    code: CodeType = template.__code__  # type: ignore[attr-defined]
    wanted = {value for value in code.co_consts if isinstance(value, str) and value.startswith(MARK)}
    if code.co_freevars or wanted != {MARK + name for name in values}:
        raise ValueError(f"{code.co_name} cannot be sealed with {sorted(values)}")
    constants = tuple(
        values[value.removeprefix(MARK)] if isinstance(value, str) and value in wanted else value
        for value in code.co_consts
    )
    return code.replace(co_consts=constants, co_filename=FILE + file)


# --- voice -----------------------------------------------------------------------------------------------


TAMPERED = 70  # the exit status of a worker whose pipe was replaced


def voice(descriptor: int) -> FunctionType:
    """A sealed function that writes a document, bytes of JSON, to the judge.

    When it returns, the document is in the pipe. Otherwise it raises, and what was to be reported does not
    happen. If the descriptor leads elsewhere by now, the process ends.
    """
    status = os.fstat(descriptor)
    return sealed(
        _tell,
        "voice",
        write=os.write,
        descriptor=descriptor,
        status=os.fstat,
        device=status.st_dev,
        node=status.st_ino,
        leave=os._exit,
        code=TAMPERED,
        pack=HEADER.pack,
        magic=MAGIC,
        size=len,
    )


def _tell(document: bytes) -> None:
    write: Any = "sealed:write"
    descriptor: Any = "sealed:descriptor"
    status: Any = "sealed:status"
    leave: Any = "sealed:leave"
    pack: Any = "sealed:pack"
    size: Any = "sealed:size"
    pipe_status = status(descriptor)
    if pipe_status.st_ino != "sealed:node" or pipe_status.st_dev != "sealed:device":
        leave("sealed:code")
    write(descriptor, pack("sealed:magic", size(document), 0) + document)


@dataclass(frozen=True)
class Lines:
    """How the lines of frames are distinguished and reported.

    Attributes:
        students: What the names of the student's files begin with.
        files: Such a name -> the file's name as JSON.
        folders: Where Python, its libraries and the grader are.
    """

    students: str
    files: Mapping[str, bytes]
    folders: tuple[str, ...]

    @property
    def libraries(self) -> tuple[str, ...]:
        """What the names of files begin with that are not the student's."""
        return (*self.folders, FILE, "<frozen ")


def asker(lines: Lines) -> FunctionType:
    """A sealed function that finds for whom a frame works: `(frame, watched) -> (inside, file, line)`.

    It goes outward through libraries' frames to the first of the student's or of sealed code. `watched` gives
    what is reported of sealed code, by the name of its file. `inside` is that, or None, and the file is JSON.
    Where a library's module is being executed for an import, `inside` is True: it works for itself.
    """
    return sealed(
        _asked_by,
        "asker",
        file_of=dict(lines.files).get,
        libraries=lines.libraries,
        students=lines.students,
    )


def _asked_by(frame: Any, watched: Any) -> Any:
    file_of: Any = "sealed:file_of"
    libraries: Any = "sealed:libraries"
    nobody = b'""'
    executed = ""
    while frame is not None:
        name = frame.f_code.co_filename
        inside = watched(name)
        if inside is not None:
            return inside, nobody, 0
        if name.startswith("sealed:students"):
            return None, file_of(name, nobody), frame.f_lineno or 0
        if executed == "<module>" and name.startswith("<frozen importlib"):
            return True, nobody, 0
        if not name.startswith(libraries):
            break
        executed = frame.f_code.co_name
        frame = frame.f_back
    return None, nobody, 0
