"""The channel by which sealed code reports to the judge at once, in frames of a few plain fields.

It decides for whom a frame works: the first of the student's or of sealed code, outward through libraries. A
pipe that leads elsewhere ends the process. `telling` and `prying` decide what is reported.

Tests: tests/worker/test_watch.py
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from grader.protocol.frames import HEADER, MAGIC
from grader.worker.sealed import FILE, sealed

TAMPERED = 70  # the status with which a worker leaves whose pipe is not the one that it was given


def voice(descriptor: int) -> FunctionType:
    """A sealed function that writes a document, bytes of JSON, to the judge.

    What is written is in the pipe when it returns; else it raises, and what was to be told does not happen.
    A descriptor that leads elsewhere by now ends the process.
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
    found = status(descriptor)
    if found.st_ino != "sealed:node" or found.st_dev != "sealed:device":
        leave("sealed:code")
    write(descriptor, pack("sealed:magic", size(document), 0) + document)


@dataclass(frozen=True)
class Lines:
    """How the lines of frames are told apart and told.

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
        """What the names of files begin with that are no student's."""
        return (*self.folders, FILE, "<frozen ")


def asker(lines: Lines) -> FunctionType:
    """A sealed function that finds for whom a frame works: `(frame, watched) -> (inside, file, line)`.

    It goes outward through libraries' frames to the first of the student's or of sealed code. `watched` says
    what is told of sealed code by the name of its file; `inside` is that, or None, and the file is JSON.
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
    while frame is not None:
        name = frame.f_code.co_filename
        inside = watched(name)
        if inside is not None:
            return inside, nobody, 0
        if name.startswith("sealed:students"):
            return None, file_of(name, nobody), frame.f_lineno or 0
        if not name.startswith(libraries):
            break
        frame = frame.f_back
    return None, nobody, 0
