"""The neutral part of the kit, and the engine, know no assignment and no family of models."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

import grader.kit
from grader.course.editions import edition_of, edition_text
from grader.kit import convolutions, transformers

ROOT = Path(__file__).parents[2]
KIT = ROOT / "grader/kit"
FAMILIES = sorted(path.parent.name for path in KIT.glob("*/__init__.py"))
NEUTRAL = sorted(KIT.glob("*.py"))
# layers and parts of models, which only a family may know
# words of the field that an assignment calls its parts by, too
ORDINARY = {"mixup", "cutmix", "parts", "stratified_split"}
PARTS = {"attention", "batchnorm", "conv", "conv2d", "convolution", "encoder", "layernorm", "patch", "resnet"}


def particulars() -> Iterator[str]:
    """The components, data sets and classes of the assignments here, as single words."""
    for path in ROOT.glob("reference/*/assignment.toml"):
        settings = tomllib.loads(edition_text(path.read_text("utf-8"), edition_of(path.parent), path.name))
        yield path.parent.name
        for item in settings["rubric"]:
            yield from item.get("components", {})
        data = settings.get("data", {})
        for name in (data.get("real"), data.get("synthetic"), *data.get("classes", ())):
            if name:
                yield name


def named_in(text: str, words: set[str]) -> set[str]:
    """Which of the words stand in a text, whatever their case."""
    return words & {word.casefold() for word in re.findall(r"[A-Za-z][\w-]*", text)}


def test_the_neutral_part_names_no_part_of_an_assignment() -> None:
    words = ({name.casefold() for name in particulars()} | PARTS) - ORDINARY
    # a scratch and a patch are classes of steel, and ordinary words
    assert {"attention", "feedforward", "train_epoch", "evaluate", "neu_cls", "crazing"} <= words
    found = {path.name: named_in(path.read_text("utf-8"), words) for path in NEUTRAL}
    assert {name: names for name, names in found.items() if names} == {}


def test_a_name_of_an_assignment_would_be_seen() -> None:
    assert named_in('student.run("evaluate", data)', {"evaluate"}) == {"evaluate"}
    assert named_in("evaluated, re_evaluate", {"evaluate"}) == set()


def test_nothing_imports_a_family_but_the_family() -> None:
    """Neither the engine nor the neutral part: only checks, which say that they want it."""
    graph = grimp.build_graph("grader", exclude_type_checking_imports=False, cache_dir=None)
    assert FAMILIES == ["convolutions", "transformers"]
    for family in FAMILIES:
        package = f"grader.kit.{family}"
        inside = {package, *graph.find_descendants(package)}
        assert len(inside) > 1
        importers = {by for module in inside for by in graph.find_modules_that_directly_import(module)}
        assert importers <= inside


@pytest.mark.parametrize("package", [grader.kit, transformers, convolutions], ids=lambda each: each.__name__)
def test_what_is_public_is_there_and_explained(package: object) -> None:
    """Each name is listed once, in order, and has a docstring of its own."""
    names = package.__all__
    assert len(set(names)) == len(names)
    for name in names:
        public = getattr(package, name)
        assert isinstance(public, str | int | float) or public.__doc__, name


def test_the_families_share_no_name_with_the_neutral_part() -> None:
    """So that it is plain where a name comes from."""
    names = [*grader.kit.__all__, *transformers.__all__, *convolutions.__all__]
    assert len(set(names)) == len(names)
