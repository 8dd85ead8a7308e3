"""The loop of a host process: accepts connections, and forks, watches, reaps and cleans up children."""

import contextlib
import os
import selectors
import shutil
import signal
import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.domain.errors import GraderError, SandboxError
from grader.domain.limits import MEGABYTE
from grader.sandbox import child_processes, kernel_filters
from grader.sandbox.attestation import REMEDY, Expectation, Outside, attestation
from grader.sandbox.forked_child import (
    DESCRIPTORS,
    MOST_REPORT_BYTES,
    ChildFunction,
    Pipes,
    child_report,
    forked_child,
    is_dying,
    pid_in_proc,
)
from grader.sandbox.lockdown import Confinement, Layer, Lockdown
from grader.sandbox.namespaces import Identity, end_processes_of, namespace_links, pid_in_host_proc
from grader.sandbox.process_limits import (
    Cgroup,
    MemoryController,
    ProcessLimits,
    ended_for_memory,
    memory_controller,
    resident,
)
from grader.sandbox.readable_files import visible

# how many kinds of children are kept ready: one for checks, one for training
_MOST_SPARES = 2

# of its limit on memory: a refused request is refused whole, and does not count as held
NEAR_MEMORY = 0.5


@dataclass
class _Job:
    """A child, as its host keeps it.

    Attributes:
        connection: The client that it works for; a spare has none yet.
        for_client: The client's ends of its pipes, until they are handed over.
        attested: What isolates it, once that is proved.
        started: When it was handed over, in monotonic seconds.
        shared: How much its host held in memory when it was forked, in bytes.
        refuses_memory: Its limit on memory makes requests fail, instead of ending it.
        uid: Its user, once that is proved; -1 before.
        ended_before: How many processes of the machine were ended for memory before it was forked.
    """

    limits: ProcessLimits
    gpu: bool
    connection: socket.socket | None = None
    for_client: tuple[int, ...] = ()
    attested: dict[str, Any] | None = None
    pid: int = -1
    pidfd: int = -1
    report: int = -1
    go: int = -1
    cgroup: Cgroup | None = None
    scratch: Path | None = None
    reported: bytearray = field(default_factory=bytearray)
    killed: bool = False
    started: float = 0.0
    shared: int = 0
    refuses_memory: bool = False
    uid: int = -1
    ended_before: int = 0


class HostLoop:
    """The loop of a host process.

    Besides the children at work it keeps a spare of each kind that was asked for last: locked down, attested
    and waiting. Forking and locking one down takes longer than many of its tasks.
    """

    def __init__(
        self,
        child: ChildFunction,
        listener: socket.socket,
        lockdown: Lockdown,
        *,
        who: Identity | None = None,
        own_namespace: int = -1,
        missing: tuple[str, ...] = (),
        bubblewrap: str = "",
        given: Path | None = None,
    ) -> None:
        self._child = child
        self._listener = listener
        self._lockdown = lockdown
        self._who = who or Identity(own_uids=False)
        self._own_namespace = own_namespace
        self._missing = missing
        self._bubblewrap = bubblewrap
        self._given = given
        self._selector = selectors.DefaultSelector()
        self._jobs: list[_Job] = []
        self._spares: dict[tuple[ProcessLimits, bool], _Job] = {}
        self._made = 0
        self._controller: MemoryController | None = None
        # as /proc numbers it: in its own namespace the host is 1
        self._pid = pid_in_host_proc()
        self._folder = Path(listener.getsockname()).parent
        if not lockdown.trusted:
            self._prepare_lockdown()

    def _prepare_lockdown(self) -> None:
        """Make what all children share: a mount point, a planted secret, their view, the cgroup's parent."""
        self._mount_point = self._folder / "root"
        self._mount_point.mkdir()
        self._secret = self._folder / "canary"
        self._secret.write_text("a file of the host\n")
        self._sees = {gpu: visible((*self._lockdown.hidden, self._folder), gpu=gpu) for gpu in (False, True)}
        if Layer.SECCOMP in self._lockdown.layers and self._own_namespace >= 0:
            # its children inherit what is made here
            for gpu in (False, True):
                kernel_filters.prepared_syscall_filter(pid=1, gpu=gpu)
        self._links = namespace_links("self") if self._own_namespace >= 0 else {}
        if Layer.CGROUP in self._lockdown.layers:
            self._controller = memory_controller()
            if self._controller is None:
                raise SandboxError(f"No memory cgroup can be made any more. {REMEDY}")
            self._controller.sweep()

    def serve_until_closed(self) -> None:
        """Serve until standard input ends, which it does with the process that holds its other end."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(0, selectors.EVENT_READ, None)
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    self._close()
                    return
                # an earlier event in this round may have ended the job, and its number may be in use again
                if self._selector.get_map().get(key.fd) is key:
                    key.data()

    def _close(self) -> None:
        for job in list(self._jobs):
            self._kill(job)
            os.waitpid(job.pid, 0)
            self._clean(job)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._request(connection))

    def _request(self, connection: socket.socket) -> None:
        """Hand over the child that a client asks for, or start one."""
        self._selector.unregister(connection)
        try:
            message, _ = child_processes.received_packet(connection)
            if message is None:
                connection.close()
                return
            if "spares" in message:
                _tell(connection, {"spares": [pid_in_proc(spare.pidfd) for spare in self._spares.values()]})
                connection.close()
                return
            kind = ProcessLimits.from_json(message["limits"]), bool(message["gpu"])
            job = self._spares.pop(kind, None) or self._started(*kind)
        except (GraderError, OSError, KeyError) as error:
            sentence = str(error) if isinstance(error, GraderError) else f"The host could not fork: {error}."
            _tell(connection, {"error": sentence})
            connection.close()
            return
        self._hand_over(job, connection)

    def _started(self, limits: ProcessLimits, gpu: bool) -> _Job:
        """A new child, which locks itself down, reports and waits."""
        job = _Job(limits, gpu, shared=resident(), ended_before=ended_for_memory())
        job.refuses_memory = self._controller is None and not gpu
        self._made += 1
        name = f"{self._pid}-{self._made}"
        if self._controller is not None:
            job.cgroup = self._controller.cgroup(name, job.limits.memory_mb)
        pipes = Pipes.made()
        try:
            job.pid = forked_child(
                self._child,
                pipes,
                limits=job.limits,
                confinement=self._confinement(job, name),
                outside=self._outside(),
                own_ns=self._own_namespace,
            )
            job.pidfd = os.pidfd_open(job.pid)
        except OSError:
            pipes.close_all()
            if job.pid > 0:
                os.kill(job.pid, signal.SIGKILL)
                os.waitpid(job.pid, 0)
            if job.cgroup is not None:
                job.cgroup.remove()
            raise
        job.report, job.go = pipes.report[0], pipes.go[1]
        job.for_client = tuple(pipes.of_client)
        pipes.close_all(but=(job.report, job.go, *job.for_client))
        self._jobs.append(job)
        self._selector.register(job.pidfd, selectors.EVENT_READ, lambda: self._ended(job))
        self._selector.register(job.report, selectors.EVENT_READ, lambda: self._reported(job))
        return job

    def _hand_over(self, job: _Job, connection: socket.socket) -> None:
        """Give a child to a client; it goes on once its isolation is proved."""
        job.connection = connection
        job.started = time.monotonic()
        connection.setblocking(False)
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._dropped(job))
        is_sent = _tell(connection, {"pid": job.pid}, job.for_client)
        _close(job.for_client)
        job.for_client = ()
        if not is_sent:
            self._kill(job)
        elif job.attested is not None:
            self._let_go(job)

    def _let_go(self, job: _Job) -> None:
        """Let an attested child begin for its client, and prepare another for the next."""
        if not _tell(job.connection, {"attestation": job.attested}):
            self._kill(job)
            return
        with contextlib.suppress(BrokenPipeError):
            os.write(job.go, b"g")
        self._prepare_spare(job.limits, job.gpu)

    def _prepare_spare(self, limits: ProcessLimits, gpu: bool) -> None:
        if (limits, gpu) in self._spares:
            return
        if len(self._spares) >= _MOST_SPARES:
            self._kill(self._spares.pop(next(iter(self._spares))))
        # the client that asks for one will get the error
        with contextlib.suppress(GraderError, OSError):
            self._spares[limits, gpu] = self._started(limits, gpu)

    def _confinement(self, job: _Job, name: str) -> Confinement | None:
        if self._lockdown.trusted:
            return None
        scratch = self._mount_point
        if Layer.NAMESPACES not in self._lockdown.layers:
            scratch = job.scratch = self._folder.with_name(f"grader-scratch-{name}")
            scratch.mkdir(mode=0o700)
        return Confinement(
            layers=self._lockdown.layers,
            limits=job.limits,
            gpu=job.gpu,
            who=self._who,
            sees=self._sees[job.gpu],
            mount_point=self._mount_point,
            scratch=scratch,
            cgroup=job.cgroup,
            given=self._given,
        )

    def _outside(self) -> Outside | None:
        if self._lockdown.trusted:
            return None
        closed = self._lockdown.hidden if self._lockdown.contained else ()
        return Outside(self._secret, self._listener.getsockname(), self._pid, DESCRIPTORS, closed)

    def _reported(self, job: _Job) -> None:
        """Read a child's report; once complete, observe it from outside, and let a client's child go on."""
        part = os.read(job.report, MOST_REPORT_BYTES)
        job.reported += part
        if part and not job.reported.endswith(b"\n"):
            return
        self._selector.unregister(job.report)
        os.close(job.report)
        job.report = -1
        try:
            job.attested = self._attestation(job)
        except (GraderError, OSError) as error:
            sentence = (
                str(error) if isinstance(error, GraderError) else f"The lock-down was not seen: {error}."
            )
            _tell(job.connection, {"error": sentence})
            self._kill(job)
            return
        if job.connection is not None:
            self._let_go(job)

    def _attestation(self, job: _Job) -> dict[str, Any]:
        report = child_report(bytes(job.reported))
        if self._lockdown.trusted:
            return {"level": "unofficial", "layers": {}, "missing": ["This process is trusted."]}
        pid = pid_in_proc(job.pidfd)
        job.uid = self._who.uid_of(pid)
        expected = Expectation(
            layers=self._lockdown.layers,
            gpu=job.gpu,
            cgroup=job.cgroup,
            host_links=self._links,
            uid=job.uid,
            own_uids=self._who.own_uids,
            contained=self._lockdown.contained,
            bubblewrap=self._bubblewrap,
        )
        proof = attestation(
            pid, report, expected, unofficial=self._lockdown.unofficial, missing=self._missing
        )
        return {"level": proof.level, "layers": proof.layers, "missing": list(proof.missing)}

    def _dropped(self, job: _Job) -> None:
        """The client closed its side, or sent something: both end the child."""
        assert job.connection is not None
        self._selector.unregister(job.connection)
        self._kill(job)

    def _kill(self, job: _Job) -> None:
        """End the child; as the first process of its PID namespace it takes all others there with it."""
        if not job.killed:
            # a client that sees the pipes of one that is dying close has not ended it
            job.killed = not is_dying(job.pidfd)
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(job.pidfd, signal.SIGKILL)
            if self._lockdown.trusted:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(job.pid, signal.SIGKILL)

    def _ended(self, job: _Job) -> None:
        """Reap a child, say how it ended, and remove what it leaves."""
        _, status, usage = os.wait4(job.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if job.report >= 0 and not job.killed:
            self._reported_by_dying(job)
        limit = None
        held = _memory_held(job, usage.ru_maxrss)
        computed = usage.ru_utime + usage.ru_stime
        if job.cgroup is not None and job.cgroup.ran_out():
            limit = "memory"
        elif _ran_out_of_cpu(-code, computed, job):
            limit = "cpu"
        elif code == -signal.SIGXFSZ:
            limit = "file_size"
        starved = limit is None and _was_starved(job, code)
        self._clean(job)
        ended = {
            "starved": starved,
            "code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "limit": limit,
            "exceeded": job.limits.exceeded(limit) if limit else "",
            "memory_mb": held // MEGABYTE,
            "near_memory": job.refuses_memory and held >= NEAR_MEMORY * job.limits.memory_mb * MEGABYTE,
            "cpu_seconds": computed,
        }
        _tell(job.connection, {"exit": ended})
        if job.connection is not None:
            job.connection.close()

    def _reported_by_dying(self, job: _Job) -> None:
        """A child died before its report: what it wrote, if anything, is in the pipe."""
        while job.report >= 0:
            self._reported(job)

    def _clean(self, job: _Job) -> None:
        self._jobs.remove(job)
        if self._lockdown.contained and Layer.SECCOMP not in self._lockdown.layers and job.uid >= 0:
            # nothing kept it from forking, and no namespace ends with it
            end_processes_of(job.uid, self._who.unused_uid)
        self._spares = {kind: spare for kind, spare in self._spares.items() if spare is not job}
        for watched in (job.connection, job.pidfd, job.report):
            if watched is not None:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(watched)
        _close((job.pidfd, job.report, job.go, *job.for_client))
        if job.cgroup is not None:
            job.cgroup.remove()
        if job.scratch is not None:
            shutil.rmtree(job.scratch, ignore_errors=True)


def _was_starved(job: _Job, code: int) -> bool:
    """Whether the machine's memory ran out, and a child was ended for it that had not used up its own.

    A child could have itself ended by the same signal, by lowering one of its limits.
    """
    if job.cgroup is not None:
        return job.cgroup.was_killed()
    return code == -signal.SIGKILL and not job.killed and ended_for_memory() > job.ended_before


def _memory_held(job: _Job, most_resident_kb: int) -> int:
    """The most memory that a child held beyond what it shares with its host, in bytes."""
    held = job.cgroup.peak_memory() if job.cgroup is not None else None
    return held if held is not None else max(most_resident_kb * 1024 - job.shared, 0)


def _ran_out_of_cpu(signal_number: int, seconds: float, job: _Job) -> bool:
    """Whether the kernel ended a child for its processor time.

    The limit counts clock ticks, `seconds` is the time that the child really ran: where the machine's own
    processors are shared, a child that was killed at its limit has run for a good part of it only. Its client
    may have had it killed as well, because it sees the pipes of one that is dying close.
    """
    lived = time.monotonic() - job.started
    near = seconds >= 0.5 * job.limits.cpu_seconds or lived >= 0.9 * job.limits.cpu_seconds
    return signal_number in (signal.SIGKILL, signal.SIGXCPU) and near


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        if descriptor >= 0:
            os.close(descriptor)


def _tell(connection: socket.socket | None, message: dict[str, Any], descriptors: Sequence[int] = ()) -> bool:
    """Send a message; whether there is a client to take it."""
    if connection is None:
        return False
    try:
        child_processes.send_packet(connection, message, descriptors)
    except OSError:
        return False
    return True
