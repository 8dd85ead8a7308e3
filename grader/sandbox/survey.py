"""Which isolation this machine offers, found by trying each layer on a throwaway process."""

import json
import os
import site
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.domain.errors import GraderError
from grader.sandbox import rootfs
from grader.sandbox.attestation import REFUSED, STANDARD, STRICT
from grader.sandbox.kernel_filters import ALLOWED, BY_ARGUMENT
from grader.sandbox.lockdown import Confinement, Layer, confine
from grader.sandbox.namespaces import enter_host_namespaces, fork_first_process, identity, own_pid_namespace
from grader.sandbox.process_limits import ProcessLimits, memory_controller
from grader.sandbox.readable_files import visible

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
        detail: If it does, in which form; else why not and how to get it.
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
    """Which isolation this machine offers the calling user; found in a separate process.

    It leaves nothing behind, and does not change the calling process.

    Args:
        wrapped: Try it within bubblewrap, which must be installed.
    """
    if sys.platform != "linux":
        reason = "Only Linux has this layer; a student's own checks work here, grading others does not."
        return _verdict({layer: f"{layer}: not available. {reason}" for layer in Layer})
    flags = ["-P"] if site.ENABLE_USER_SITE else ["-P", "-s"]
    command = [sys.executable, *flags, "-c", "from grader.sandbox.survey import main; main()"]
    with tempfile.TemporaryDirectory(prefix="grader-survey-") as name:
        if wrapped:
            command = rootfs.in_bubblewrap(command, folder=Path(name))
        completed = subprocess.run(
            command,
            env={**os.environ, "TMPDIR": name},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    try:
        outcome = json.loads(completed.stdout)
        missing = {Layer(name): str(reason) for name, reason in outcome["missing"].items()}
        return _verdict(missing, {Layer(name): str(form) for name, form in outcome["forms"].items()})
    except (ValueError, AttributeError, KeyError):
        end = completed.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        return _verdict({layer: f"{layer}: could not be tried ({end[0]})." for layer in Layer})


def survey_by_forks() -> Survey:
    """Like `survey`, but in forks of the calling process, which must have one thread."""
    attempts: dict[Layer, Callable[[Path], str]] = {
        Layer.NAMESPACES: _try_namespaces,
        Layer.LANDLOCK: _try_landlock,
        Layer.SECCOMP: _try_seccomp,
        Layer.CGROUP: _try_cgroup,
    }
    missing, forms = {}, {}
    with tempfile.TemporaryDirectory(prefix="grader-survey-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        for layer, attempt in attempts.items():
            form, reason = _outcome(attempt, folder)
            if reason:
                missing[layer] = f"{layer}: not available ({reason}). {_REMEDIES[layer]}"
            else:
                forms[layer] = form
    return _verdict(missing, forms)


def _verdict(missing: Mapping[Layer, str], forms: Mapping[Layer, str] | None = None) -> Survey:
    forms = forms or {}
    states = tuple(
        LayerState(layer, layer not in missing, missing.get(layer, forms.get(layer, ""))) for layer in Layer
    )
    if any(layer in missing for layer in _ESSENTIAL):
        return Survey(states, REFUSED)
    return Survey(states, STANDARD if Layer.CGROUP in missing else STRICT)


def _outcome(attempt: Callable[[Path], str], folder: Path) -> tuple[str, str]:
    """What an attempt in a fork returns, and why it fails; one of them is empty, or both."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            try:
                outcome = [attempt(folder), ""]
            except (GraderError, OSError) as error:
                outcome = ["", str(error.__cause__ or error)[:1000] or "it failed"]
            os.write(write_end, json.dumps(outcome).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as stream:  # noqa: PTH123 - a descriptor
        answer = stream.read()
    os.waitpid(pid, 0)
    form, reason = json.loads(answer) if answer else ("", "the process that tried it died")
    return form, reason


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


def _try_landlock(folder: Path) -> str:
    details = confine(_confinement(Layer.LANDLOCK, folder))
    return f"version {details['landlock']} of its interface"


def _try_seccomp(folder: Path) -> str:
    confine(_confinement(Layer.SECCOMP, folder))
    return f"{len(ALLOWED)} calls allowed, {len(BY_ARGUMENT)} by their arguments"


def _try_namespaces(folder: Path) -> str:
    planned = _confinement(Layer.NAMESPACES, folder)
    enter_host_namespaces(planned.who)
    if pid := fork_first_process(own_pid_namespace()):
        # the fork that is locked down answers
        os.waitpid(pid, 0)
        os._exit(0)
    confine(planned)
    return "a uid for each process" if planned.who.own_uids else "in user namespaces, without root"


def _try_cgroup(_: Path) -> str:
    controller = memory_controller()
    if controller is None:
        raise OSError("no memory cgroup can be made")
    return f"version {controller.version}"


def main() -> None:
    """Print as JSON, by layer, what is missing and in which form the rest is available."""
    states = survey_by_forks().states
    document = {
        "missing": {state.layer: state.detail for state in states if not state.available},
        "forms": {state.layer: state.detail for state in states if state.available},
    }
    sys.stdout.write(json.dumps(document))
