"""The limits that an assignment may set: on time, on memory, and on files that are handed in or written."""

from dataclasses import dataclass, field
from typing import Any

MEGABYTE = 10**6  # bytes


def _limit(default: float, bounds: str) -> Any:
    """A limit's default, and what it bounds, as a clause."""
    return field(default=default, metadata={"bounds": bounds})


@dataclass(frozen=True)
class Limits:
    """What one submission may use: the single declaration of every limit that a course chooses.

    The keys of `[limits]` in `assignment.toml` follow from it (`course.assignment_tables`). So do the limits
    of a process with the same names (`sandbox.process_limits`), and the table in `docs/instructor.md`, which
    a test compares. Seconds are wall-clock seconds, megabytes are 10**6 bytes.
    """

    load_seconds: float = _limit(20.0, "executing the definitions of the submitted file")
    call_seconds: float = _limit(10.0, "one call of a submitted function")
    checks_seconds: float = _limit(60.0, "all checks together; each part may use its share in any case")
    training_seconds: float = _limit(1800.0, "a training; one that takes longer is done again at the end")
    queued_training_seconds: float = _limit(7200.0, "a training at the end; off when it is no larger")
    memory_mb: int = _limit(3000, "memory of a worker")
    gpu_memory_mb: int = _limit(4000, "a worker's part of a GPU; what needs more is trained again alone")
    file_mb: int = _limit(
        64, "the largest file that code may write, the largest PDF, and the largest file of any other role"
    )
    processes: int = _limit(64, "threads and processes of a worker")
    output_kb: int = _limit(256, "what is kept of the printed output")
    checkpoint_mb: int = _limit(200, "the checkpoint that is handed in")
    source_kb: int = _limit(2000, "the script that is handed in")
    notebook_mb: int = _limit(50, "the notebook that is handed in")
    archive_mb: int = _limit(500, "what one student's archives hold, unpacked")
