"""The proof of isolation: a layer that is missing, or only pretends, is found before anything is executed."""

import os
import sys
from pathlib import Path

import pytest

from grader.domain.errors import EngineError, SandboxError
from grader.sandbox import ProcessLimits, attestation, survey
from grader.sandbox.attestation import Expectation, level
from grader.sandbox.lockdown import Layer
from grader.sandbox.process_limits import Cgroup

if sys.platform != "linux":
    pytest.skip("the layers need Linux", allow_module_level=True)

PROVEN = {"namespaces": "pid", "landlock": "7", "seccomp": "2", "no_new_privs": "1", "uid": "200001"}
ESSENTIAL = (Layer.NAMESPACES, Layer.LANDLOCK, Layer.SECCOMP)


def test_level():
    assert level({**PROVEN, "memory": "cgroup-v1"}) == "strict"
    assert level({**PROVEN, "memory": "cgroup-v2"}) == "strict"
    assert level({**PROVEN, "memory": "address_space"}) == "standard"
    assert level({**PROVEN, "memory": "none"}) == "refused"
    for layer in PROVEN:
        assert level({**PROVEN, "memory": "cgroup-v2", layer: ""}) == "refused"


def test_a_child_carries_its_proof(host, child):
    proof = child.attestation
    assert proof.level == survey().verdict
    assert proof.layers["seccomp"] == "2"
    assert proof.layers["no_new_privs"] == "1"
    assert proof.layers["capabilities"] == "0"
    assert int(proof.layers["landlock"]) >= 1
    assert {"pid", "mnt", "net", "ipc", "uts", "cgroup"} <= set(proof.layers["namespaces"].split(","))
    if os.geteuid() == 0:
        assert int(proof.layers["uid"]) >= 1000
    else:
        assert "user" in proof.layers["namespaces"]


@pytest.fixture(scope="module")
def without_cgroup(host, start_host):
    with start_host(env={"LAYERS": "namespaces,landlock,seccomp"}) as running:
        yield running


# a step that does nothing although it says that it did, and what must be said about it
SABOTAGED = {
    "landlock": "read past Landlock",
    "seccomp": "make a socket",
    "network": "namespace",
    "capabilities": "capabilities",
    "bounding": "capabilities",
    "no_new_privs": "",
    "root": "",
    "descriptors": "descriptor",
    "exception": "failed unexpectedly",
    "death": "died while it was being locked down",
    "unreadable": "chmod",
}


@pytest.mark.parametrize("step", SABOTAGED)
def test_a_step_that_only_pretends_is_found(host, sabotaged, step):
    if step == "network" and os.geteuid() != 0:
        pytest.skip("without root there is no way back into the machine's network to pretend with")
    with pytest.raises(SandboxError, match="nothing was executed") as caught:
        host.spawn(sabotaged(step))
    assert SABOTAGED[step] in str(caught.value)


def test_memory_without_a_bound_is_found(without_cgroup, sabotaged):
    """Without a cgroup the bound is on address space; without that nothing is executed."""
    with pytest.raises(SandboxError, match="too weak"):
        without_cgroup.spawn(sabotaged("limits"))


def test_a_child_outside_its_cgroup_is_found():
    group = Cgroup(1, Path("/cgroup/grader-1-1"))
    expected = Expectation(frozenset(Layer), False, group, {}, 0, True)
    with pytest.raises(SandboxError, match="not in its memory cgroup"):
        attestation._memory(os.getpid(), expected)


@pytest.mark.parametrize("left_out", ESSENTIAL)
def test_without_an_essential_layer_nothing_starts(start_host, left_out):
    kept = ",".join(layer for layer in Layer if layer != left_out)
    with pytest.raises(SandboxError, match=r"too little isolation.*nothing was executed") as caught:
        start_host(env={"LAYERS": kept})
    assert f"{left_out}: switched off" in str(caught.value)


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("left_out", ESSENTIAL)
def test_the_operator_may_override_and_the_grade_says_so(start_host, answer, left_out):
    kept = ",".join(layer for layer in Layer if layer != left_out)
    with start_host(env={"LAYERS": kept}, unofficial=True) as weak:
        if left_out == Layer.NAMESPACES and os.geteuid() == 0 and _interpreter_is_private():
            # without a root of its own, another uid cannot reach the interpreter
            with pytest.raises(SandboxError, match="chmod"):
                weak.spawn(ProcessLimits())
            return
        with weak.spawn(ProcessLimits()) as running:
            assert running.attestation.level == "unofficial"
            assert any(left_out in sentence for sentence in running.attestation.missing)
            assert left_out not in running.attestation.layers
            assert answer(running, "value = 1")["value"] == 1


def _interpreter_is_private():
    return any(not parent.stat().st_mode & 0o001 for parent in Path(os.__file__).parents)


def test_without_a_cgroup_the_level_is_standard(without_cgroup, answer):
    with without_cgroup.spawn(ProcessLimits(memory_mb=200)) as running:
        assert running.attestation.level == "standard"
        assert running.attestation.layers["memory"] == "address_space"
        assert answer(running, "value = bytearray(400_000_000)")["error"] == "MemoryError"
        assert answer(running, "value = len(bytearray(50_000_000))")["value"] == 50_000_000


def test_a_gpu_needs_a_cgroup_because_address_space_cannot_bound_it(without_cgroup):
    with pytest.raises(SandboxError, match="nothing was executed"):
        without_cgroup.spawn(ProcessLimits(), gpu=True)


def test_a_child_with_a_gpu_says_so(host):
    if Layer.CGROUP not in survey().layers:
        pytest.skip("a GPU needs a memory cgroup")
    with host.spawn(ProcessLimits(), gpu=True) as running:
        assert running.attestation.layers["gpu"] == "true"


def test_a_child_with_a_gpu_uses_the_one_that_the_operator_chose(start_host, answer, monkeypatch):
    """Not the first of the machine, on which others may be at work."""
    if Layer.CGROUP not in survey().layers:
        pytest.skip("a GPU needs a memory cgroup")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    code = "import os; value = {name: os.environ[name] for name in os.environ if name.startswith('CUDA_')}"
    with start_host() as host:
        with host.spawn(ProcessLimits(), gpu=True) as running:
            chosen = {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
            assert answer(running, code)["value"] == chosen
        with host.spawn(ProcessLimits()) as running:
            assert answer(running, code)["value"] == {}


DRIVERS_WAYS = """
import os, socket, threading
own = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
own.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
own.bind(f"\\0cuda-uvmfd-1-{os.getpid()}")
own.listen()
with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as name:
    name.write("cuda")
value = open("/proc/self/comm").read().strip()
"""
OTHER_WAYS = {
    "a daemon": (
        "socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect('/tmp/x')",
        "FileNotFoundError",
    ),
    "the network": ("socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET)", "PermissionError"),
    "messages": ("socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)", "PermissionError"),
    "a socket in a file": (
        "socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).bind('/sandbox/x')",
        "PermissionError",
    ),
    "its own memory": ("open('/proc/self/mem', 'r+b')", "PermissionError"),
    "the machine": ("open('/proc/sys/vm/drop_caches', 'w')", "PermissionError"),
}


def test_a_child_with_a_gpu_may_do_what_its_driver_does_and_no_more(host, child, answer):
    """As a trace on an H100 shows, with driver 580."""
    if Layer.CGROUP not in survey().layers:
        pytest.skip("a GPU needs a memory cgroup")
    with host.spawn(ProcessLimits(), gpu=True) as running:
        assert answer(running, DRIVERS_WAYS) == {"value": "cuda"}
        for code, refused in OTHER_WAYS.values():
            assert answer(running, f"import socket\n{code}")["error"] == refused, code
        accepting = f"{DRIVERS_WAYS.replace('uvmfd', 'other')}own.accept()"
        assert answer(running, accepting)["error"] == "PermissionError"
    assert answer(child, DRIVERS_WAYS)["error"] == "PermissionError"


def test_children_with_a_gpu_do_not_see_each_others_names(host, answer):
    """Each has a network of its own, so that a name taken by one says nothing to the other."""
    if Layer.CGROUP not in survey().layers:
        pytest.skip("a GPU needs a memory cgroup")
    code = "import socket; own = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); own.bind('\\0taken')"
    keep = f"{code}; import builtins; builtins.own = own; value = 1"
    with host.spawn(ProcessLimits(), gpu=True) as first, host.spawn(ProcessLimits(), gpu=True) as second:
        assert answer(first, keep) == answer(second, keep) == {"value": 1}


def test_a_host_that_fails_to_load_is_quoted(start_host):
    """Its exception, however long that is, and not the places that it passed through."""
    with pytest.raises(EngineError, match="ended before it was ready") as told:
        start_host(env={"NEVER_READY": "1"})
    said = str(told.value)
    assert "It said: RuntimeError: this host never becomes ready, as it misses one of\n" in said
    assert "/usr/share/templates/9\n" in said and len(said) < 2500
    assert "Traceback" not in said and "sandbox_child.py" not in said


def test_a_trusted_child_has_no_layers(start_host, answer):
    with start_host(env={"LAYERS": "trusted"}) as trusted, trusted.spawn(ProcessLimits()) as running:
        assert running.attestation.level == "unofficial"
        assert answer(running, f"value = open({__file__!r}).read(3)")["value"] == '"""'
