"""The lock file: what `make setup` installs, version by version and hash by hash."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


@pytest.fixture(scope="module")
def lock(course_root: Path) -> str:
    return (course_root / "requirements.lock").read_text("utf-8")


@pytest.fixture(scope="module")
def pins(lock: str) -> list[tuple[Requirement, list[str]]]:
    """(requirement, hashes) of each entry."""
    entries = re.sub(r" \\\n +", " ", re.sub(r"^#.*\n", "", lock, flags=re.MULTILINE)).splitlines()
    found = []
    for entry in filter(None, entries):
        words, *hashes = entry.split(" --hash=")
        found.append((Requirement(words), hashes))
    return found


def test_every_entry_is_one_version_with_its_hashes(pins: list[tuple[Requirement, list[str]]]) -> None:
    assert len(pins) > 80
    for requirement, hashes in pins:
        assert re.fullmatch(r"==[\w.+!]+", str(requirement.specifier)), requirement
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), requirement


def test_it_names_no_place_to_install_from(lock: str) -> None:
    assert "://" not in lock and " @ " not in lock
    assert not re.search(r"^ *-(?!-hash)", lock, re.MULTILINE), "an option, as --index-url is"


@pytest.mark.parametrize("python", ["3.11.7", "3.12.4", "3.13.1"])
def test_it_has_what_the_project_asks_for(
    course_root: Path, pins: list[tuple[Requirement, list[str]]], python: str
) -> None:
    project = tomllib.loads((course_root / "pyproject.toml").read_text("utf-8"))["project"]
    environment = {
        "python_version": python.rpartition(".")[0],
        "python_full_version": python,
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "os_name": "posix",
    }
    pinned = {
        canonicalize_name(each.name): str(each.specifier).removeprefix("==")
        for each, _ in pins
        if each.marker is None or each.marker.evaluate(environment)
    }
    for words in project["dependencies"] + project["optional-dependencies"]["dev"]:
        asked = Requirement(words)
        version = pinned.get(canonicalize_name(asked.name))
        assert version is not None and version in asked.specifier, f"{words} is {version}. Run: make lock"
