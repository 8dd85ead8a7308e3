"""Hosts, planted secrets, and what an attack could leave behind: shared by the tests of all attacks."""

import importlib.util
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from grader.analysis import program
from grader.course import homework_versions
from grader.course.assignment_file import read_assignment
from grader.course.locate import Course, located_course
from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.domain.errors import SandboxError
from grader.domain.evidence import Finding, Status
from grader.grading.judging import Judged, judged
from grader.grading.run import Hosts, running_hosts
from grader.kit.splits import Splits

HERE = Path(__file__).parent
# attacks that hang or fill the memory must not take the suite's time
HONEST = ("PreNorm", "evaluate")
# as a package is attacked, inside of a container: what it holds is closed to others, and nothing hides it
IN_PACKAGE = os.environ.get("ATTACKED_IN_PACKAGE") == "1"
QUICK = {"load_seconds": "15", "call_seconds": "5", "memory_mb": "900"}


@cache
def module(name: str) -> ModuleType:
    """A module beside this file."""
    sys.path.insert(0, str(HERE))  # they import each other
    try:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
        assert spec is not None and spec.loader is not None
        found = importlib.util.module_from_spec(spec)
        sys.modules[name] = found  # dataclasses look their module up
        spec.loader.exec_module(found)
        return found
    finally:
        sys.path.remove(str(HERE))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of an `attack` runs with each of its module's GROUP, one of an `upload` with each.

    All of them are slow, since they need hosts of a course that hides things: what stops them is tested at
    every change, layer by layer, in tests/sandbox and tests/analysis.
    """
    if "attack" in metafunc.fixturenames:
        every = module("attack").attacks()
        if os.geteuid() != 0:
            every = [each for each in every if not each.root_only]
        chosen = [each for each in every if each.group == metafunc.module.GROUP]
        parametrize(metafunc, "attack", chosen)
    if "upload" in metafunc.fixturenames:
        parametrize(metafunc, "upload", module("uploads").UPLOADS)
    if "impostor" in metafunc.fixturenames:
        parametrize(metafunc, "impostor", module("impostors").IMPOSTORS)
    if "retried" in metafunc.fixturenames:
        parametrize(metafunc, "retried", module("retried").RETRIED)
    if "call_attack" in metafunc.fixturenames:
        parametrize(metafunc, "call_attack", module("called").CALL_ATTACKS)
    if "hostile_checkpoint" in metafunc.fixturenames:
        hostile = [each for each in module("uploads").UPLOADS if each.checkpoint]
        parametrize(metafunc, "hostile_checkpoint", hostile)


def parametrize(metafunc: pytest.Metafunc, name: str, attacks: Sequence[Any]) -> None:
    """Run a slow test with each of the attacks."""
    marked = [pytest.param(each, id=f"{each.number}-{each.name}", marks=pytest.mark.slow) for each in attacks]
    metafunc.parametrize(name, marked)


@pytest.fixture(scope="session")
def uploads() -> tuple[Any, ...]:
    """The attacks by files."""
    found: tuple[Any, ...] = module("uploads").UPLOADS
    return found


@pytest.fixture(scope="session")
def few_images(attacked: Assignment) -> Splits:
    """One small image of each class, for training and for testing."""
    count = len(attacked.data.classes)
    images, labels = np.zeros((count, 28, 28), dtype=np.uint8), np.arange(count)
    names = tuple(f"{number}.png" for number in range(count))
    return Splits("few_images", attacked.data.classes, images, labels, names, images, labels, names)


@pytest.fixture(scope="session")
def attack_modules() -> Callable[[str], ModuleType]:
    """The modules beside this file, by name."""
    return module


@dataclass(frozen=True)
class Planted:
    """What must never be found.

    Attributes:
        token: Stands in the environment, the course's secret, the solution, a file, another submission.
        names: What every attack is told: where all of that lies.
    """

    token: str
    names: dict[str, object]


@pytest.fixture(scope="session")
def planted_course(
    course_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Course, str]]:
    """(course, token): the course with a secret and quick limits; the token is in the environment too."""
    token = f"planted-{secrets.token_hex(8)}"
    root = tmp_path_factory.mktemp("attacked") / "course"
    shutil.copytree(course_root / "reference", root / "reference")
    (root / "course.toml").write_text(f'title = "Attacked"\nsecret = "{token}"\n', encoding="utf-8")
    folder = root / "reference" / "vit_defects"
    (folder / "solution.py").write_text(
        (folder / "solution.py").read_text(encoding="utf-8") + f"\n# {token}\n", encoding="utf-8"
    )
    limits = (folder / "assignment.toml").read_text(encoding="utf-8")
    for name, value in QUICK.items():
        before = next(line for line in limits.splitlines() if line.startswith(f"{name} = "))
        limits = limits.replace(before, f"{name} = {value}")
    (folder / "assignment.toml").write_text(limits, encoding="utf-8")
    os.environ["GRADER_PLANTED"] = token
    yield located_course(root, environment={}), token
    del os.environ["GRADER_PLANTED"]


@pytest.fixture(scope="session")
def attacked(planted_course: tuple[Course, str]) -> Assignment:
    """The assignment that is attacked."""
    return read_assignment(planted_course[0].root / "reference" / "vit_defects")


@pytest.fixture(scope="session")
def hosts(
    planted_course: tuple[Course, str], attacked: Assignment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hosts]:
    """One set of hosts for all attacks."""
    hidden = (tmp_path_factory.getbasetemp(),)
    try:
        starting = running_hosts(
            planted_course[0], attacked, hidden=hidden, unofficial=False, in_package=IN_PACKAGE
        )
        hosts = starting.__enter__()
    except SandboxError as error:
        pytest.skip(f"this machine gives too little isolation: {error}")
    try:
        yield hosts
    finally:
        starting.__exit__(None, None, None)


@pytest.fixture(scope="session")
def planted(
    planted_course: tuple[Course, str], hosts: Hosts, tmp_path_factory: pytest.TempPathFactory
) -> Planted:
    """The secrets, and where they lie."""
    course, token = planted_course
    folder = tmp_path_factory.mktemp("planted")
    (folder / "secret.txt").write_text(token, encoding="utf-8")
    (folder / "400101201").mkdir()
    (folder / "400101201" / "homework.py").write_text(f"# {token}\n", encoding="utf-8")
    for path in () if IN_PACKAGE else (folder.parent, folder, folder / "secret.txt"):
        # nothing but the sandbox protects it
        path.chmod(0o755 if path.is_dir() else 0o644)
    worker = hosts.workers._process
    assert worker is not None
    names = {
        "secret_file": str(folder / "secret.txt"),
        "course": str(course.root),
        "neighbor": str(folder / "400101201"),
        "results": str(folder),
        "host_pid": worker.pid,
    }
    return Planted(token, names)


Examine = Callable[..., tuple[Program, Judged]]


@pytest.fixture(scope="session")
def judged_text(hosts: Hosts, attacked: Assignment) -> Examine:
    """Have a homework's text judged: `judged_text(text, components)`, (program, what the judge said)."""

    @cache
    def analyzed(text: str) -> Program:
        return program("homework.py", text.encode(), attacked.program_rules)

    def of(text: str, components: tuple[str, ...]) -> tuple[Program, Judged]:
        found = analyzed(text)
        said = judged(
            hosts.judges,
            hosts.workers,
            found,
            attacked,
            seed=5,
            report=lambda finding: None,
            components=components,
        )
        return found, said

    return of


@pytest.fixture(scope="session")
def with_attack(solved: str, planted: Planted) -> Callable[[str], str]:
    """The solution with an attack's definitions in it, which know where everything lies."""
    known = module("attack").KNOWN.format(**planted.names)
    return lambda source: homework_versions.composed(solved, known + source)


@pytest.fixture(scope="session")
def told() -> Callable[[Program, Judged], str]:
    """All that comes out of a submission's examination, as text."""

    def of(found: Program, said: Judged) -> str:
        findings = TypeAdapter(tuple[Finding, ...]).dump_json(said.findings).decode()
        rest = (
            said.parameters,
            said.layers,
            said.figures,
            said.absent_modules,
            said.watched,
            said.attestation,
        )
        images = b"".join(said.images.values()).decode("latin-1")
        return json.dumps([findings, repr(rest), repr(found.notes), images])

    return of


@pytest.fixture(scope="session")
def hosts_traces(hosts: Hosts, traces_of: Callable[..., set[str]]) -> Callable[[], set[str]]:
    """What submissions could leave: descendants of these hosts, their mounts, cgroups and files."""
    processes = [host._process for host in (hosts.parsers, hosts.judges, hosts.workers)]
    pids = {process.pid for process in processes if process is not None}
    folders = [Path(host.address).parent for host in (hosts.parsers, hosts.judges, hosts.workers)]

    def ours(pid: int) -> bool:
        return pid in pids or descends(pid, pids)

    def found() -> set[str]:
        files = {f"file {path}" for folder in folders for path in folder.rglob("*")}
        mounts = {f"mount of {pid}: {line}" for pid in pids for line in mounts_of(pid)}
        return traces_of(ours, (hosts.parsers, hosts.judges, hosts.workers)) | files | mounts

    return found


@pytest.fixture(scope="session")
def left_behind(
    hosts_traces: Callable[[], set[str]], lasting: Callable[[Callable[[], set[str]], set[str]], set[str]]
) -> Callable[[set[str]], set[str]]:
    """What is new since `before` and stays."""
    return lambda before: lasting(hosts_traces, before)


@pytest.fixture
def comes_to_nothing(
    judged_text: Examine,
    with_attack: Callable[[str], str],
    told: Callable[[Program, Judged], str],
    attacked: Assignment,
    planted: Planted,
    solved: str,
    hosts_traces: Callable[[], set[str]],
    left_behind: Callable[[set[str]], set[str]],
) -> Callable[[Any], None]:
    """Carry an attack out, and see that it gained nothing, left nothing and hurt nobody."""

    def carried_out(attack: Any) -> None:
        before = hosts_traces()
        for _ in range(2 if attack.twice else 1):
            found, said = judged_text(with_attack(attack.source), attack.runs)
            points_are_deserved(attack, said.findings, attacked)
            assert planted.token not in told(found, said)
            if attack.notes:
                assert re.search(attack.notes, notes_of(found, said)), notes_of(found, said)
        _, honest = judged_text(solved, HONEST)
        assert [each for each in honest.findings if each.status is not Status.PASSED or each.message] == []
        assert honest.attestation.level in (("container",) if IN_PACKAGE else ("strict", "standard"))
        assert not left_behind(before)

    return carried_out


def points_are_deserved(attack: Any, findings: Sequence[Finding], assignment: Assignment) -> None:
    """The dishonest components failed their weightiest checks, the honest ones passed all of theirs."""
    specs = [spec for spec in assignment.checks if spec.component in attack.runs]
    assert [found.check for found in findings] == [spec.id for spec in specs]
    by_check = {found.check: found for found in findings}
    for component in attack.runs:
        own = [spec for spec in specs if spec.component == component]
        weightiest = max(spec.weight for spec in own)
        for spec in own:
            finding = by_check[spec.id]
            if component not in attack.fails:
                assert finding.status is Status.PASSED, (finding.message, finding)
            elif spec.weight == weightiest:
                wrong = [Status.ERRORED] if attack.outcome == "undecided" else [Status.FAILED, Status.SKIPPED]
                assert finding.status in wrong, finding
    messages = [found.message for found in findings if found.component in attack.fails]
    # where nothing is out of sight, it is closed
    says = f"{attack.says}|PermissionError" if IN_PACKAGE and attack.says else attack.says
    assert any(re.search(says, message) for message in messages) or not says, messages


def notes_of(found: Program, said: Judged) -> str:
    """What a report notes of forbidden parts and of code that a person should look at."""
    return " ".join(
        [
            *map(str, found.notes),
            *(use.rule for use in found.forbidden if use.reached_from),
            *(part.name for part in said.watched.reached if not part.inside),
            *(f"seen: {pried.kind}" for pried in said.watched.pried),
            *(f"disturbed: {stage}" for stage in said.watched.unproven),
            *(finding.message for finding in said.findings if finding.status is Status.PASSED),
        ]
    )


def mounts_of(pid: int) -> list[str]:
    """The mounts that a process sees, without their numbers."""
    lines = Path(f"/proc/{pid}/mountinfo").read_text(encoding="utf-8").splitlines()
    return [line.split(" ", 3)[3] for line in lines]


def descends(pid: int, ancestors: set[int]) -> bool:
    """Whether a process is a descendant of one of the others."""
    for _ in range(50):
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        except OSError:
            return False
        pid = int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])
        if pid in ancestors:
            return True
        if pid <= 1:
            return False
    return False
