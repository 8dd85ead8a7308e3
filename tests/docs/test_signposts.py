"""The pages that show the way: for developers, what changed, and where to report a hole."""

import ast
import re
import tomllib
from pathlib import Path

from PIL import Image

from grader import __version__

ROOT = Path(__file__).parents[2]
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_changelog_is_one() -> None:
    """Unreleased first, then versions with a date, newest first, down to the one that this is."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    [first, *versions] = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert first == "[Unreleased]"
    released = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)", each) for each in versions]
    assert all(released), "a version is written as: ## [1.2.3] - 2026-01-31"
    numbers = [tuple(map(int, each[1].split("."))) for each in released if each]
    assert numbers == sorted(numbers, reverse=True)
    assert not versions or versions[0].startswith(f"[{__version__}]")
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= KINDS


def test_the_readme_begins_with_a_report_that_is_small() -> None:
    beginning = (ROOT / "README.md").read_text("utf-8").partition("```")[0]
    assert re.search(r"!\[[^\]]+\]\(docs/report\.png\)", beginning), "with words for whoever does not see it"
    with Image.open(ROOT / "docs/report.png") as picture:
        assert picture.format == "PNG" and not picture.info.keys() - {"dpi", "gamma", "srgb"}
        assert min(picture.size) > 600
    assert (ROOT / "docs/report.png").stat().st_size < 200_000


def test_there_is_a_place_for_an_address_to_report_to() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    assert len(re.findall(r"^Report to: \S.+$", text, re.MULTILINE)) == 1
    assert "SECURITY.md" in (ROOT / "docs/security.md").read_text("utf-8")
    assert "SECURITY.md" in (ROOT / "README.md").read_text("utf-8")


# --- docs/developing.md -----------------------------------------------------------------------------------

DEVELOPING = ROOT / "docs/developing.md"
TOP_FOLDERS = "grader|reference|template|datasets|tests|benchmarks|docs"
# a path in backticks, perhaps with a name that the file defines
PATH = re.compile(rf"`((?:{TOP_FOLDERS})/[\w./-]*|[A-Z][\w.]*\.md|pyproject\.toml|Makefile)(?:::(\w+))?`")


def section(title: str) -> str:
    """The text of a section of docs/developing.md."""
    return DEVELOPING.read_text("utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    table = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def defined(path: Path) -> set[str]:
    """The names that a module defines at top level."""
    names = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        match node:
            case ast.FunctionDef(name) | ast.ClassDef(name):
                names.add(name)
            case ast.Assign(targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(ast.Name(name)):
                names.add(name)
    return names


def stale(text: str) -> list[str]:
    """What of the paths and names in a text is not there."""
    found = PATH.findall(text)
    missing = [path for path, _ in found if not (ROOT / path).exists()]
    gone = [
        f"{path}::{name}"
        for path, name in found
        if name and path not in missing and name not in defined(ROOT / path)
    ]
    return [*missing, *gone]


def test_every_file_and_name_that_developers_are_sent_to_is_there() -> None:
    text = DEVELOPING.read_text("utf-8")
    assert len(PATH.findall(text)) > 100
    assert stale(text) == []
    # what looks like a file of ours must be written in a way that is looked at
    looked_at = {match[0].strip("`") for match in PATH.finditer(text)}
    others = set(re.findall(r"`([^`]+)`", text)) - looked_at
    assert not [word for word in others if re.match(rf"(?:{TOP_FOLDERS})/", word)]


def test_a_file_that_moved_is_found() -> None:
    assert stale("`grader/scoring/submission_score.py::score` and `pyproject.toml`") == []
    assert stale("`grader/scoring/gone.py`, `docs/gone.md`") == ["grader/scoring/gone.py", "docs/gone.md"]
    assert stale("`grader/scoring/submission_score.py::gone`") == ["grader/scoring/submission_score.py::gone"]


def test_every_package_is_on_the_map_in_the_order_of_the_floors() -> None:
    listed = [re.fullmatch(r"`grader/(\w+)/`", cells[0]) for cells in rows("Map")]
    names = [each[1] for each in listed if each]
    packages = {path.parent.name for path in (ROOT / "grader").glob("*/__init__.py")}
    assert len(names) == len(listed) and set(names) == packages
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    [floors] = [c for c in settings["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    floor_of = {
        name: number for number, layer in enumerate(floors["layers"]) for name in re.findall(r"\w+", layer)
    }
    assert [floor_of[name] for name in names] == sorted(floor_of[name] for name in names)
    drawn = re.findall(r"[^`\n]+", section("Map").split("```")[1])
    assert drawn == [layer.replace(" |", "") for layer in floors["layers"] if layer != "__main__"]


def test_the_likely_changes_name_files() -> None:
    changes = rows("To add X, touch Y")
    assert len(changes) >= 10
    for change, files in changes:
        assert PATH.search(files), change


def test_the_glossary_is_short_and_its_terms_are_used() -> None:
    terms = [cells[0] for cells in rows("Glossary")]
    assert 10 <= len(terms) <= 25 and len(set(terms)) == len(terms)
    engine = " ".join(path.read_text("utf-8").lower() for path in (ROOT / "grader").rglob("*.py"))
    assert not [term for term in terms if not re.search(rf"\b{term}", engine)]


def test_what_is_written_here_instead_of_bought_has_a_reason() -> None:
    assert all(len(cells) == 3 and all(cells) for cells in rows("Written here, and why"))
