"""How a check ended, for whoever writes it: what it raised, where in its own files, and what it printed."""

import traceback
from dataclasses import dataclass
from pathlib import Path

MOST_FRAMES = 8  # of the assignment's own files
MOST_PRINTED = 4000  # characters


@dataclass(frozen=True)
class CheckTrace:
    """What a check did that a finding does not tell.

    Attributes:
        check: Its id.
        raised: `IndexError: list index out of range`; empty: nothing.
        lines: Where: file, line, function and code, the outermost first.
        printed: What it wrote.
    """

    check: str
    raised: str = ""
    lines: tuple[str, ...] = ()
    printed: str = ""


def check_trace(check: str, error: BaseException | None, printed: str, folder: Path) -> CheckTrace:
    """What is to be told of a check.

    Args:
        error: What it raised.
        printed: What it wrote.
        folder: The assignment's: of other files the last frame alone is told.
    """
    text = printed[:MOST_PRINTED].rstrip()
    if error is None:
        return CheckTrace(check, printed=text)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    shown = [*own[-MOST_FRAMES:], *(frames[-1:] if frames[-1:] != own[-1:] else ())]
    return CheckTrace(check, _raised(error), tuple(_line(frame, folder) for frame in shown), text)


def _raised(error: BaseException) -> str:
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _line(frame: traceback.FrameSummary, folder: Path) -> str:
    path = Path(frame.filename)
    name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name
    return f"{name}:{frame.lineno} in {frame.name}: {(frame.line or '').strip()}"
