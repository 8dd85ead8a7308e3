"""What a machine gives: found without side effects, and told in sentences."""

import sys

import pytest

from grader.sandbox import process_limits, readable_files, survey
from grader.sandbox.lockdown import Layer
from grader.sandbox.namespaces import _spare_uids
from grader.sandbox.readable_files import visible
from grader.sandbox.survey import _verdict

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the layers need Linux")


def test_it_leaves_no_trace(traces, left_behind):
    before = traces()
    found = survey()
    assert not left_behind(before)
    assert {state.layer for state in found.states} == set(Layer)
    assert all(state.available or "not available" in state.detail for state in found.states)
    assert found.verdict in ("strict", "standard", "refused")


def test_the_verdict_follows_from_what_is_missing():
    assert _verdict({}).verdict == "strict"
    assert _verdict({Layer.CGROUP: "cgroup: no"}).verdict == "standard"
    for layer in (Layer.NAMESPACES, Layer.LANDLOCK, Layer.SECCOMP):
        found = _verdict({layer: f"{layer}: no"})
        assert found.verdict == "refused"
        assert found.missing == (f"{layer}: no",)
        assert layer not in found.layers


@pytest.mark.parametrize(
    ("uid_map", "expected"),
    [
        ("0 0 4294967295", (200_000, 1 << 22)),
        ("0 100000 65536", (32768, 32766)),
        ("0 1000 1", None),
        ("0 1000 1\n1 100000 65536", (32769, 32766)),
    ],
)
def test_uids_come_from_what_the_container_maps(uid_map, expected):
    assert _spare_uids(uid_map) == expected


def test_readable_folders_hold_python_and_not_the_project():
    from pathlib import Path

    seen = visible()
    assert not [
        path for path in seen.readable if path in (Path("/"), Path("/usr"), Path("/home"), Path("/root"))
    ]
    project = Path(__file__).parents[2]
    assert not [path for path in seen.readable if project.is_relative_to(path)]
    library = Path(sys.modules["os"].__file__)
    assert [path for path in seen.readable if library.is_relative_to(path)]


def test_hidden_folders_are_masked_only_where_they_would_be_seen(tmp_path):
    from pathlib import Path

    library = Path(sys.modules["json"].__file__).parent
    assert library in visible([library]).hidden
    assert tmp_path not in visible([tmp_path]).hidden


def test_a_part_of_a_divided_gpu_can_be_reached(tmp_path, monkeypatch):
    """Its driver opens a node for the part beside that of the whole (NVIDIA's User Guide of MIG)."""
    from pathlib import Path

    part = tmp_path / "nvidia-caps" / "nvidia-cap21"
    part.parent.mkdir()
    for node in (part, tmp_path / "nvidia0", tmp_path / "sda"):
        node.touch()
    monkeypatch.setattr(readable_files, "_DEV", tmp_path)
    monkeypatch.setattr(Path, "is_char_device", Path.is_file)
    assert {part, tmp_path / "nvidia0"} == {
        node for node in visible(gpu=True).devices if node.is_relative_to(tmp_path)
    }
    assert not [node for node in visible().devices if node.is_relative_to(tmp_path)]


V1 = "35 31 0:32 /outer /cg/memory rw - cgroup cgroup rw,memory\n"
V2 = "36 31 0:33 / {mount} rw - cgroup2 cgroup2 rw\n"


def test_cgroups_of_version_1_are_found(monkeypatch):
    _pretend(monkeypatch, {"/proc/self/mountinfo": V1, "/proc/self/cgroup": "4:memory:/outer/job\n0::/\n"})
    assert process_limits._candidates() == [(1, process_limits.Path("/cg/memory/job"))]


def test_cgroups_of_version_2_go_where_memory_is_delegated(monkeypatch, tmp_path):
    """Beside the host, since a cgroup with processes has no children that bound memory."""
    own = tmp_path / "slice" / "session.scope"
    own.mkdir(parents=True)
    (own / "cgroup.subtree_control").write_text("")
    (own.parent / "cgroup.subtree_control").write_text("cpu memory\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu\n")
    _pretend(
        monkeypatch,
        {
            "/proc/self/mountinfo": V2.format(mount=tmp_path),
            "/proc/self/cgroup": "0::/slice/session.scope\n",
        },
    )
    assert process_limits._candidates() == [(2, own.parent)]


def test_limits_of_a_version_2_cgroup(tmp_path):
    for name in ("memory.max", "memory.swap.max", "memory.oom.group", "memory.events"):
        (tmp_path / name).touch()
    group = process_limits.Cgroup(2, tmp_path)
    group._set_limit(5_000_000)
    assert (tmp_path / "memory.max").read_text() == "5000000"
    assert (tmp_path / "memory.swap.max").read_text() == "0"
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 0\n")
    assert not group.ran_out() and not group.was_killed()
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert group.ran_out() and group.was_killed()
    (tmp_path / "memory.events").write_text("low 0\noom 0\noom_kill 1\n")
    assert group.was_killed() and not group.ran_out(), "others used up the memory around it"


def test_whose_memory_ran_out_in_a_version_1_cgroup(tmp_path):
    """Its own, if it held all that it may; otherwise that of all around it together."""
    group = process_limits.Cgroup(1, tmp_path)
    (tmp_path / "memory.limit_in_bytes").write_text("400000000\n")
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    for peak, own in ((399_900_000, True), (156_000_000, False)):
        (tmp_path / "memory.max_usage_in_bytes").write_text(f"{peak}\n")
        assert group.was_killed() and group.ran_out() is own


def _pretend(monkeypatch, texts):
    """Let some files of /proc read as given."""
    real = process_limits.Path.read_text
    monkeypatch.setattr(
        process_limits.Path,
        "read_text",
        lambda path, *arguments, **options: (
            texts[str(path)] if str(path) in texts else real(path, *arguments, **options)
        ),
    )
