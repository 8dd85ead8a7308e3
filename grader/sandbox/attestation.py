"""What isolation was on, from two sides: the process's own canaries and what the host sees in /proc."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from grader.domain.errors import SandboxError
from grader.domain.evidence import Attestation
from grader.sandbox.canaries import CANARY_COUNT
from grader.sandbox.cgroups import Cgroup, observed_cgroups
from grader.sandbox.identity import status_fields
from grader.sandbox.limits import observed_limits
from grader.sandbox.lockdown import Layer
from grader.sandbox.namespaces import CHILD_NAMESPACES, namespace_links

REFUSED = "refused"
STRICT = "strict"
STANDARD = "standard"
UNOFFICIAL = "unofficial"

_CAPABILITY_SETS = ("CapInh", "CapPrm", "CapEff", "CapAmb")
REMEDY = "Run `grader doctor` to see what this machine gives and how to get what is missing."


@dataclass(frozen=True)
class ChildReport:
    """What a child says before it knows anything of a submission.

    Attributes:
        told: What only the process itself can tell (`landlock` -> version).
        succeeded: Canaries that should have failed.
        error: Why the lock-down could not be completed; empty if it was.
    """

    told: Mapping[str, str] = field(default_factory=dict)
    succeeded: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Expectation:
    """What the host put on a child.

    Attributes:
        layers: The layers of its host.
        gpu: It may use the GPU.
        cgroup: Its memory cgroup.
        host_links: The host's own namespaces.
        uid: The uid that it should have in the host's view.
        own_uids: It gave up root for that uid, rather than entering a user namespace.
        bubblewrap: The version of the bubblewrap around its host, if there is one.
    """

    layers: frozenset[Layer]
    gpu: bool
    cgroup: Cgroup | None
    host_links: Mapping[str, str]
    uid: int
    own_uids: bool
    bubblewrap: str = ""


def level(layers: Mapping[str, str]) -> str:
    """`strict`, `standard` or `refused`, by what was observed."""
    for needed in ("namespaces", "landlock", "seccomp", "no_new_privs", "uid"):
        if not layers.get(needed):
            return REFUSED
    memory = layers.get("memory", "")
    if memory.startswith("cgroup"):
        return STRICT
    return STANDARD if memory == "address_space" else REFUSED


def attestation(
    pid: int, report: ChildReport, expected: Expectation, *, unofficial: bool, missing: tuple[str, ...]
) -> Attestation:
    """The proof that a child is locked down as intended.

    Args:
        pid: The child's, as /proc shows it to the host.
        report: The child's own part.
        expected: What must be found.
        unofficial: The operator accepts less than an official grade needs.
        missing: Sentences on the layers that this machine does not give.

    Raises:
        SandboxError: A layer does not hold, or they are too few.
    """
    if report.error:
        raise SandboxError(report.error)
    if report.succeeded:
        raise SandboxError(
            f"The locked-down process could still {' and '.join(report.succeeded)}, so nothing was executed. "
            + REMEDY
        )
    layers = _observed_layers(pid, report, expected)
    found = level(layers)
    if found == REFUSED:
        if not unofficial:
            raise SandboxError(
                f"The isolation is too weak, so nothing was executed: {' '.join(missing) or layers} {REMEDY}"
            )
        found = UNOFFICIAL
    return Attestation(UNOFFICIAL if unofficial else found, layers, missing)


def _observed_layers(pid: int, report: ChildReport, expected: Expectation) -> dict[str, str]:
    """Layer -> what was observed; raises SandboxError where a layer that was put on does not show."""
    status = status_fields(pid)
    layers = {
        "canaries": f"{CANARY_COUNT} attempts, none succeeded",
        "no_new_privs": _required("no_new_privs", status["NoNewPrivs"], "1"),
        "capabilities": _no_capabilities(status, expected),
        "uid": _uid(status, expected),
        "memory": _memory(pid, expected),
    }
    if Layer.NAMESPACES in expected.layers:
        layers["namespaces"] = _namespaces(pid, status, expected)
    if Layer.SECCOMP in expected.layers:
        layers["seccomp"] = _required("the system-call filter", status["Seccomp"], "2")
    if Layer.LANDLOCK in expected.layers:
        layers["landlock"] = report.told.get("landlock", "")
    if expected.bubblewrap:
        layers["bubblewrap"] = expected.bubblewrap
    if expected.gpu:
        layers["gpu"] = "true"
    return layers


def _required(what: str, found: str, wanted: str) -> str:
    if found != wanted:
        raise SandboxError(
            f"{what} does not show from outside (found {found!r}, expected {wanted!r}), so nothing was "
            f"executed. {REMEDY}"
        )
    return found


def _no_capabilities(status: Mapping[str, str], expected: Expectation) -> str:
    sets = list(_CAPABILITY_SETS)
    if expected.own_uids or Layer.NAMESPACES in expected.layers:
        # without a namespace an ordinary user cannot empty it; no_new_privs makes it harmless
        sets.append("CapBnd")
    held = max(int(status[name], 16) for name in sets)
    return _required("giving up capabilities", f"{held:x}", "0")


def _uid(status: Mapping[str, str], expected: Expectation) -> str:
    found = set(status["Uid"].split())
    _required("an unprivileged user", ",".join(sorted(found)), str(expected.uid))
    return str(expected.uid)


def _namespaces(pid: int, status: Mapping[str, str], expected: Expectation) -> str:
    links = namespace_links(pid)
    apart = [kind for kind, link in links.items() if link != expected.host_links[kind]]
    wanted = [*CHILD_NAMESPACES, *(() if expected.own_uids else ("user",))]
    _required("a namespace", ",".join(apart), ",".join(wanted))
    _required("a PID namespace of its own", status["NSpid"].split()[-1], "1")
    return ",".join(apart)


def _memory(pid: int, expected: Expectation) -> str:
    if expected.cgroup is not None:
        if expected.cgroup.path.name not in observed_cgroups(pid):
            raise SandboxError(f"The process is not in its memory cgroup, so nothing was executed. {REMEDY}")
        return f"cgroup-v{expected.cgroup.version}"
    bounded = observed_limits(pid)["Max address space"] != "unlimited"
    # a file that lives in memory escapes a bound on address space: the filter must forbid it
    return "address_space" if bounded and Layer.SECCOMP in expected.layers else "none"
