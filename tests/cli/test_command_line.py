"""The command line itself: instant help, and errors that a person can read."""

import errno
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import click
import pytest
from click.testing import CliRunner

import grader.cli
from grader.cli import cli
from grader.cli.commands import COMMANDS
from grader.domain.errors import CourseError

SLOW = {
    "torch", "numpy", "pydantic", "rich", "jinja2", "pytest", "PIL", "matplotlib", "sqlalchemy", "alembic",
    "openpyxl",
}  # fmt: skip


def test_help_imports_nothing_slow():
    program = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from grader.cli import cli\n"
        "result = CliRunner().invoke(cli, ['--help'])\n"
        "assert result.exit_code == 0 and 'check' in result.output, result.output\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert SLOW.isdisjoint(done.stdout.split())


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "grader", "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"grader, version {grader.__version__}\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name):
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert "Example" in result.output and f"grader {name}" in result.output.partition("Example")[2]
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    for option in (p for p in command.params if isinstance(p, click.Option)):
        assert option.help, f"{name} {option.opts[0]} has no help"


def test_the_overview_names_every_command():
    listed = CliRunner().invoke(cli, ["--help"]).output
    for name, (_, text) in COMMANDS.items():
        assert f"  {name} " in listed and text in listed


@pytest.mark.parametrize("name", ["data preview", "data write", "marks export", "marks import", "marks set"])
def test_nested_commands_have_help(name):
    result = CliRunner().invoke(cli, [*name.split(), "--help"])
    assert result.exit_code == 0 and f"grader {name}" in result.output.partition("Example")[2]


@pytest.fixture
def failing(monkeypatch):
    """A command `fail` that raises what the test puts into the list."""
    errors: list[BaseException] = []

    @click.command("fail")
    @click.option("--course")
    def command(course: str | None) -> None:
        if errors:
            raise errors[0]
        click.echo(f"course: {course}")

    module = ModuleType("failing_command")
    module.command = command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "failing_command", module)
    monkeypatch.setitem(COMMANDS, "fail", ("failing_command:command", "Fail."))
    monkeypatch.delenv("GRADER_DEBUG", raising=False)
    return errors


def test_a_foreseen_error_is_a_sentence_and_exit_code_2(failing):
    failing.append(CourseError("course.toml: the title is missing. Add it."))
    result = CliRunner().invoke(cli, ["fail"])
    assert result.exit_code == 2
    assert result.output == "error: course.toml: the title is missing. Add it.\n"


def test_a_fault_of_ours_says_so_and_how_to_see_more(failing):
    failing.append(ZeroDivisionError("division by zero"))
    result = CliRunner().invoke(cli, ["fail"])
    assert result.exit_code == 3
    assert "fault of the grader" in result.output and "ZeroDivisionError: division by zero" in result.output
    assert "--traceback" in result.output and "Traceback" not in result.output


def test_a_full_disk_is_no_fault_of_ours(failing):
    """Also where only a cause says so, as from a library that wraps what the system refuses."""
    failing.append(OSError(errno.ENOSPC, "No space left on device", "/tmp/pages"))
    result = CliRunner().invoke(cli, ["fail"])
    assert result.exit_code == 2 and "/tmp/pages cannot be written: its disk is full." in result.output
    failing[0] = RuntimeError("the archive is not closed")
    failing[0].__cause__ = OSError(errno.EDQUOT, "Disk quota exceeded")
    result = CliRunner().invoke(cli, ["fail"])
    assert result.exit_code == 2 and "error: A disk is full. Make room for the results" in result.output


@pytest.mark.parametrize("error", [CourseError("wrong"), ZeroDivisionError("wrong")])
@pytest.mark.parametrize("how", ["option", "variable"])
def test_the_traceback_is_there_for_who_wants_it(failing, monkeypatch, error, how):
    failing.append(error)
    if how == "variable":
        monkeypatch.setenv("GRADER_DEBUG", "1")
    result = CliRunner().invoke(cli, [*(["--traceback"] if how == "option" else []), "fail"])
    assert result.exception is error


def test_an_interruption_is_no_error(failing):
    failing.append(KeyboardInterrupt())
    result = CliRunner().invoke(cli, ["fail"])
    assert (result.exit_code, result.output) == (130, "Stopped.\n")


def test_the_course_may_be_named_before_the_command(failing):
    assert CliRunner().invoke(cli, ["--course", "here", "fail"]).output == "course: here\n"
    assert (
        CliRunner().invoke(cli, ["--course", "here", "fail", "--course", "there"]).output == "course: there\n"
    )


def commands_with_a_course(group: click.Group, *above: str) -> Iterator[tuple[list[str], click.Command]]:
    """(words, command) of every command, at any depth, that has a `--course` of its own."""
    context = click.Context(group)
    for name in group.list_commands(context):
        one = group.get_command(context, name)
        if isinstance(one, click.Group):
            yield from commands_with_a_course(one, *above, name)
        elif one is not None and any(param.name == "course" for param in one.params):
            yield [*above, name], one


def test_the_course_before_the_command_reaches_every_command(monkeypatch):
    found = list(commands_with_a_course(cli))
    assert {"grade", "marks set", "data write", "export gradescope", "export moodle-worksheet"} <= {
        " ".join(words) for words, _ in found
    }
    for words, command in found:
        monkeypatch.setattr(command, "callback", lambda course, **_: click.echo(f"course: {course}"))
        for param in command.params:
            monkeypatch.setattr(param, "required", False)
        result = CliRunner().invoke(cli, ["--course", "here", *words])
        assert result.output == "course: here\n", words


def test_a_misspelled_command_is_guessed():
    result = CliRunner().invoke(cli, ["chekc"])
    assert result.exit_code == 2 and "Did you mean 'check'?" in result.output
