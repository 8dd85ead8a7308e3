"""What one process may use, and the resource limits that hold it to that."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from grader.domain.assignment import MEGABYTE, Limits
from grader.domain.errors import EngineError


@dataclass(frozen=True)
class ProcessLimits:
    """What one process may use. Megabytes are 10**6 bytes, kilobytes 10**3.

    Attributes:
        memory_mb: Beyond what it shares with its host at the fork.
        cpu_seconds: Processor time over all threads.
        file_mb: The greatest size of one file.
        processes: Threads, since it cannot fork.
        open_files: Descriptors.
        scratch_mb: Its working folder, /tmp and shared memory together.
        output_kb: How much of the end of its output is kept.
    """

    memory_mb: int = Limits.memory_mb
    cpu_seconds: int = 300
    file_mb: int = Limits.file_mb
    processes: int = Limits.processes
    open_files: int = 256
    scratch_mb: int = 256
    output_kb: int = Limits.output_kb

    @classmethod
    def within(cls, limits: Limits, *, cpu_seconds: int) -> "ProcessLimits":
        """An assignment's limits, those of the same names, with the processor time of one stage."""
        chosen = {field.name for field in fields(limits)} & {field.name for field in fields(cls)}
        return cls(cpu_seconds=cpu_seconds, **{name: getattr(limits, name) for name in chosen})

    def exceeded(self, limit: str) -> str:
        """That a process went beyond one of its limits, as a clause.

        Args:
            limit: `memory`, `cpu` or `file_size`: those at which a process ends.
        """
        return {
            "memory": f"it used more than its limit of {self.memory_mb} MB of memory",
            "cpu": f"it used more than its limit of {self.cpu_seconds} s of processor time",
            "file_size": f"it wrote more than its limit of {self.file_mb} MB into one file",
        }[limit]

    def in_words(self, resource: str) -> str:
        """What a process may have of something, as a clause; that it used it up is another matter.

        Args:
            resource: `memory`, `file_size`, `disk`, `writing` (one of these two), `processes`, `open_files`.
        """
        return {
            "memory": f"its limit is {self.memory_mb} MB of memory",
            "file_size": f"its limit is {self.file_mb} MB for one file",
            "disk": f"its limit is {self.scratch_mb} MB of files, and some thousands of them",
            "writing": f"its limit is {self.file_mb} MB for one file and {self.scratch_mb} MB in all",
            "processes": f"its limit is {self.processes} processes and threads",
            "open_files": f"its limit is {self.open_files} open files at once",
        }[resource]

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "ProcessLimits":
        """The limits of a request.

        Raises:
            EngineError: A name is unknown, or a value is not a positive whole number.
        """
        known = {field.name for field in fields(cls)}
        for name, value in document.items():
            if name not in known or type(value) is not int or value <= 0:
                raise EngineError(
                    f"limit {name} = {value!r}: a limit is one of {', '.join(sorted(known))} "
                    "and a positive whole number."
                )
        return cls(**document)


def address_space() -> int:
    """The calling process's address space, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    import resource

    return pages * resource.getpagesize()


def resident() -> int:
    """What the calling process holds in memory, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    import resource

    return pages * resource.getpagesize()


def apply_limits(limits: ProcessLimits, *, address_space_bytes: int | None, own_user: bool = True) -> None:
    """Hold the calling process to the limits, for good.

    Args:
        address_space_bytes: The bound on its address space, when memory is bounded that way.
        own_user: It has a user of its own; otherwise the user's other processes would count as well.
    """
    import resource

    wanted = {
        resource.RLIMIT_CPU: limits.cpu_seconds,
        resource.RLIMIT_FSIZE: limits.file_mb * MEGABYTE,
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    if not own_user:
        del wanted[resource.RLIMIT_NPROC]
    if address_space_bytes is not None:
        wanted[resource.RLIMIT_AS] = address_space_bytes
    for kind, value in wanted.items():
        _, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        # soft = hard: a process that catches SIGXCPU must not gain a second by it
        resource.setrlimit(kind, (value, value))


def observed_limits(pid: int) -> dict[str, str]:
    """Name -> hard limit of a process, as seen from outside (`Max cpu time` -> `300`)."""
    rows = Path(f"/proc/{pid}/limits").read_text().splitlines()[1:]
    return {row[:26].strip(): row[26:].split()[1] for row in rows}
