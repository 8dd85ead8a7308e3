"""What isolation this machine gives, found by trying each layer on a throwaway process."""

import json
import os
import site
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grader.domain.errors import GraderError
from grader.sandbox import bubblewrap
from grader.sandbox.attestation import REFUSED, STANDARD, STRICT
from grader.sandbox.cgroups import memory_controller
from grader.sandbox.identity import identity
from grader.sandbox.limits import ProcessLimits
from grader.sandbox.lockdown import Confinement, Layer, confine
from grader.sandbox.namespaces import enter_host_namespaces, fork_first_process, own_pid_namespace
from grader.sandbox.visible import visible

_REMEDIES = {
    Layer.NAMESPACES: (
        "Run as root, or allow user namespaces for ordinary users (sysctl "
        "kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0); in a "
        "container, start it with --privileged, or with --security-opt seccomp=unconfined "
        "--security-opt systempaths=unconfined."
    ),
    Layer.LANDLOCK: "Use Linux 5.13 or newer with `landlock` in the kernel's `lsm=` list.",
    Layer.SECCOMP: "Install libseccomp (`apt install libseccomp2`) and `pip install pyseccomp`.",
    Layer.CGROUP: (
        "Run as root where the memory controller of cgroups is writable; as an ordinary user, start with "
        "`systemd-run --user --scope -p Delegate=yes`."
    ),
}
_ESSENTIAL = (Layer.NAMESPACES, Layer.LANDLOCK, Layer.SECCOMP)
_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class LayerState:
    """Whether the machine gives a layer.

    Attributes:
        detail: Empty when it does; else why not and how to get it.
    """

    layer: Layer
    available: bool
    detail: str = ""


@dataclass(frozen=True)
class Survey:
    """What isolation this machine gives.

    Attributes:
        states: One per layer.
        verdict: `strict`, `standard` or `refused`.
    """

    states: tuple[LayerState, ...]
    verdict: str

    @property
    def layers(self) -> frozenset[Layer]:
        """The layers that the machine gives."""
        return frozenset(state.layer for state in self.states if state.available)

    @property
    def missing(self) -> tuple[str, ...]:
        """A sentence for each layer that it does not give."""
        return tuple(state.detail for state in self.states if not state.available)


def survey(*, wrapped: bool = False) -> Survey:
    """What isolation this machine gives to the calling user; found in a process of its own.

    Nothing of it remains, and the calling process is not changed.

    Args:
        wrapped: Within bubblewrap, which must be installed.
    """
    if sys.platform != "linux":
        reason = "Only Linux has this layer; a student's own checks work here, grading others does not."
        return _verdict({layer: f"{layer}: not available. {reason}" for layer in Layer})
    flags = ["-P"] if site.ENABLE_USER_SITE else ["-P", "-s"]
    command = [sys.executable, *flags, "-c", "from grader.sandbox.survey import main; main()"]
    with tempfile.TemporaryDirectory(prefix="grader-survey-") as name:
        if wrapped:
            command = bubblewrap.wrapped(command, folder=Path(name))
        done = subprocess.run(
            command,
            env={**os.environ, "TMPDIR": name},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    try:
        found = json.loads(done.stdout)
        return _verdict({Layer(name): str(reason) for name, reason in found.items()})
    except (ValueError, AttributeError):
        end = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        return _verdict({layer: f"{layer}: could not be tried ({end[0]})." for layer in Layer})


def survey_by_forks() -> Survey:
    """Like `survey`, but in forks of the calling process, which must have one thread."""
    attempts: dict[Layer, Callable[[Path], None]] = {
        Layer.NAMESPACES: _try_namespaces,
        Layer.LANDLOCK: lambda folder: _try_alone(Layer.LANDLOCK, folder),
        Layer.SECCOMP: lambda folder: _try_alone(Layer.SECCOMP, folder),
        Layer.CGROUP: _try_cgroup,
    }
    missing = {}
    with tempfile.TemporaryDirectory(prefix="grader-survey-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        for layer, attempt in attempts.items():
            reason = _reason_for_failure(attempt, folder)
            if reason:
                missing[layer] = f"{layer}: not available ({reason}). {_REMEDIES[layer]}"
    return _verdict(missing)


def _verdict(missing: dict[Layer, str]) -> Survey:
    states = tuple(LayerState(layer, layer not in missing, missing.get(layer, "")) for layer in Layer)
    if any(layer in missing for layer in _ESSENTIAL):
        return Survey(states, REFUSED)
    return Survey(states, STANDARD if Layer.CGROUP in missing else STRICT)


def _reason_for_failure(attempt: Callable[[Path], None], folder: Path) -> str:
    """Why the attempt fails in a fork; empty if it does not."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            try:
                attempt(folder)
                said = b"ok"
            except (GraderError, OSError) as error:
                cause = error.__cause__ or error
                said = str(cause).encode()[:1000] or b"it failed"
            os.write(write_end, said)
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as stream:  # noqa: PTH123 - a descriptor
        said = stream.read()
    os.waitpid(pid, 0)
    return "" if said == b"ok" else said.decode(errors="replace") or "the process that tried it died"


def _confinement(layer: Layer, folder: Path) -> Confinement:
    scratch = folder / f"{layer}-scratch"
    scratch.mkdir()
    return Confinement(
        layers=frozenset({layer}),
        limits=ProcessLimits(),
        gpu=False,
        who=identity(),
        sees=visible(),
        mount_point=folder,
        scratch=scratch,
        cgroup=None,
    )


def _try_alone(layer: Layer, folder: Path) -> None:
    confine(_confinement(layer, folder))


def _try_namespaces(folder: Path) -> None:
    planned = _confinement(Layer.NAMESPACES, folder)
    enter_host_namespaces(planned.who)
    if pid := fork_first_process(own_pid_namespace()):
        # the fork that is locked down answers
        os.waitpid(pid, 0)
        os._exit(0)
    confine(planned)


def _try_cgroup(_: Path) -> None:
    if memory_controller() is None:
        raise OSError("no memory cgroup can be made")


def main() -> None:
    """Print what is missing, by layer, as JSON."""
    surveyed = survey_by_forks()
    sys.stdout.write(
        json.dumps({state.layer: state.detail for state in surveyed.states if not state.available})
    )
