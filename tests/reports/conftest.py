"""The example class, made once."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

REMARK = "The positions are fixed; the handout asks for learnable ones."
_FOLDER = Path(__file__).parent


def _module(name: str) -> ModuleType:
    """A module of this folder (importlib mode puts no test folder on the path)."""
    spec = importlib.util.spec_from_file_location(f"reports_{name}", _FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def examples() -> ModuleType:
    """The module of examples."""
    return _module("example_class")


@pytest.fixture(scope="session")
def large() -> ModuleType:
    """The module that draws large classes."""
    return _module("large_class")


@pytest.fixture(scope="session")
def assignment(examples):
    return examples.an_assignment()


@pytest.fixture(scope="session")
def class_results(examples, assignment):
    """What the result is about -> Result."""
    return examples.a_class(assignment)


@pytest.fixture(scope="session")
def with_remark():
    """(evidence, number) -> it, where so many checks of ViT passed and have something to look at."""

    def changed(evidence, number):
        own = [found for found in evidence.findings if found.component == "ViT"][:number]
        findings = tuple(
            replace(found, policy="fixed_positions", message=REMARK, where="homework.py:41")
            if found in own
            else found
            for found in evidence.findings
        )
        return replace(evidence, findings=findings)

    return changed


@pytest.fixture(scope="session")
def pairs(class_results):
    """(Evidence, Score) of every submission."""
    return [(one.evidence, one.score) for one in class_results.values()]


@pytest.fixture(scope="session")
def sample_pages(tmp_path_factory):
    """One page of every kind, in a folder."""
    return _module("sample_pages").written_pages(tmp_path_factory.mktemp("pages"))
