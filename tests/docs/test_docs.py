"""The documentation tells what is there: commands, options, rubric keys, diagnoses, and examples that run."""

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from grader.cli import cli
from grader.cli.commands import COMMANDS
from grader.cli.manual import manual
from grader.course.assignment_tables import (
    AssignmentTable,
    DataTable,
    FilesTable,
    ForbiddenTable,
    ProvidedTable,
    RequiredTable,
    RubricTable,
    VariantTable,
)
from grader.course.variant_values import filled_code, stated_values
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import drawn_values
from grader.domain.limits import Limits

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "template/vit_defects/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WRITTEN = [page for page in PAGES if page.name != "commands.md"]


def blocks(page: Path, language: str = "") -> list[str]:
    """The fenced blocks of a page."""
    return re.findall(rf"^ *```{language}\n(.*?)^ *```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def documented_commands() -> Iterator[tuple[str, list[str]]]:
    """(page, words) of every `grader ...` line in a fenced block."""
    for page in WRITTEN:
        for block in blocks(page):
            for line in block.splitlines():
                if re.match(r" *grader [a-z]+( |$)", line):
                    yield page.name, shlex.split(line, comments=True)


@pytest.mark.parametrize(("page", "words"), list(documented_commands()))
def test_documented_command_is_one(page: str, words: list[str]) -> None:
    # a command keeps its help option once it is made, so it is made here as it is in the program
    names = cli.context_settings["help_option_names"]
    context, rest = click.Context(cli, info_name="grader", help_option_names=names), words[1:]
    command: click.Command = cli
    while isinstance(command, click.Group):
        found = command.get_command(context, rest[0])
        assert found is not None, f"{page}: there is no command {' '.join(words)}"
        command, rest = found, rest[1:]
    # parsing fails for an unknown option or a missing argument
    command.make_context(command.name, list(rest), parent=context)


def test_every_command_is_in_the_manual() -> None:
    text = (ROOT / "docs/commands.md").read_text("utf-8")
    assert text == manual(), "run: python -m grader.cli.manual > docs/commands.md"
    assert all(f"## grader {name}\n" in text for name in COMMANDS)


def test_every_source_of_points_is_documented() -> None:
    text = (ROOT / "docs/instructor.md").read_text("utf-8")
    for key in ("components", "measured", "threshold", "breakpoints", "by", "parts"):
        assert key in RubricTable.model_fields
        assert f"`{key}" in text or f"`[rubric.{key}]`" in text
    assert {"rubric", "forbidden", "limits", "policies"} <= AssignmentTable.model_fields.keys()


def test_every_key_of_files_and_data_is_documented() -> None:
    text = (ROOT / "docs/instructor.md").read_text("utf-8")
    rows = text.partition("| table | key | says |")[2].partition("\n\n")[0]
    documented = {key for row in rows.splitlines()[2:] for key in re.findall(r"`(\w+)`", row.split("|")[2])}
    tables = (FilesTable, RequiredTable, DataTable, ProvidedTable)
    assert documented == {key for table in tables for key in table.model_fields} - {"required", "optional"}


def test_every_key_of_forbidden_parts_is_documented() -> None:
    section = (ROOT / "docs/instructor.md").read_text("utf-8").partition("### Forbidden parts\n")[2]
    rows = section.partition("| key | says |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE)) == set(ForbiddenTable.model_fields)
    example = re.search(r"```toml\n(.*?)```", section, re.DOTALL)
    assert example is not None
    [table] = tomllib.loads(example[1])["forbidden"]
    assert ForbiddenTable(**table).policy == "forbid"


def test_every_limit_is_documented_as_it_is_declared() -> None:
    text = (ROOT / "docs/instructor.md").read_text("utf-8")
    rows = [
        f"| `{limit.name}` | {limit.default:g} | {limit.metadata['bounds']} |" for limit in fields(Limits)
    ]
    table = text.partition("<!-- limits -->\n")[2].partition("<!-- end of limits -->")[0]
    assert table.strip().splitlines()[2:] == rows, "write these rows between the marks:\n" + "\n".join(rows)


def test_every_policy_is_documented() -> None:
    text = (ROOT / "docs/instructor.md").read_text("utf-8")
    [choices] = re.findall(r"Literal\[(.*?)\]", str(AssignmentTable.model_fields["policies"].annotation))
    names = re.findall(r"'(\w+)'", choices)
    assert len(names) == 4
    assert all(f"| `{name}` |" in text for name in names)


def test_the_instructors_policies_are_ours(assignment: Assignment) -> None:
    [settings] = [b for b in blocks(ROOT / "docs/instructor.md", "toml") if "[policies]" in b]
    policies = tomllib.loads(settings)["policies"]
    assert policies.items() <= assignment.policies.items()
    [example] = [b for b in blocks(ROOT / "docs/instructor.md", "python") if "student.policy(" in b]
    asked = []

    class Asked:
        def policy(self, name: str, sentence: str, hint: str = "", look_for: str = "") -> None:
            asked.append(name)

    exec(example, {"learned": False, "student": Asked()})  # noqa: S102
    assert asked == list(policies)


def test_what_an_assistant_reads_first_fits_on_two_screens() -> None:
    page = (ROOT / "docs/ta.md").read_text("utf-8")
    assert page.count("\n") <= 80 and len(page.split()) <= 650
    rest = {path.name for path in (ROOT / "docs/ta").glob("*.md")}
    assert rest <= set(re.findall(r"\(ta/([a-z]+\.md)\)", page)), "everything else is behind a link"


def test_links_lead_somewhere() -> None:
    for page in WRITTEN:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_instructors_check_runs(assignment: Assignment, examined_function: Callable[..., Any]) -> None:
    [code] = [block for block in blocks(ROOT / "docs/instructor.md", "python") if "def test_" in block]
    namespace: dict[str, Any] = {}
    exec("import pytest\nfrom grader.kit import Mismatch, same\n" + code, namespace)  # noqa: S102
    check = namespace["test_feed_forward_has_no_memory"]
    examined_function(check)


def test_the_instructors_values_are_drawn_and_filled_in() -> None:
    [tables] = [block for block in blocks(ROOT / "docs/variants.md", "toml") if "[variant." in block]
    [code] = [block for block in blocks(ROOT / "docs/variants.md", "python") if "# variant:" in block]
    read = {name: VariantTable(**table) for name, table in tomllib.loads(tables)["variant"].items()}
    stated = stated_values(read)
    assert [(value.name, value.per_student) for value in stated] == [("heads", True), ("pooling", False)]
    for student_id in ("400101204", "400101205", ""):
        values = drawn_values("a secret", "vit_defects", stated, "2026-fall", student_id)
        namespace: dict[str, Any] = {}
        exec(filled_code(code, values, "solution.py"), namespace)  # noqa: S102
        assert namespace["HEADS"] == values["heads"] in (2, 4, 8)


def test_the_instructors_mistake_is_one_of_ours() -> None:
    [code] = [block for block in blocks(ROOT / "docs/instructor.md", "python") if "class Attention" in block]
    ours = (ROOT / "reference/vit_defects/mistakes/scale_multiplied.py").read_text("utf-8")
    assert code.split('"""')[2].strip() == ours.split('"""')[2].strip()


@pytest.mark.parametrize(
    ("name", "next_section"), [("instructor.md", "Contents"), ("ta.md", "What needs you")]
)
def test_the_usual_case_fits_on_one_screen(name: str, next_section: str) -> None:
    screen, found, _ = (ROOT / "docs" / name).read_text("utf-8").partition(f"\n## {next_section}\n")
    assert found and screen.count("\n") <= 40
    assert "\n```\n" in screen, "the commands themselves"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_into_pages_lead_to_a_heading() -> None:
    for page in WRITTEN:
        for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text("utf-8")):
            other = page.parent / target if target else page
            assert anchor in anchors(other), f"{page.name}: {target}#{anchor}"
