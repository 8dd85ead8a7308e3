"""`grader check`: the public checks on a student's own homework.

It holds the command and its options about the warm process, and reads its arguments as a part and a file.
It decides what runs here and what the warm process is asked for. Views and checks are imported when they
are needed, so that a warm process is asked at once. It never decides what a check finds. Bare `pytest` in a
student's folder (`grader.students.pytest_plugin`), `grader pack` and a notebook (`grader.jupyter`) make the
same checks without it.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from grader.cli.command_options import assignment_options
from grader.domain.errors import UsageError


def part_and_its_file(words: Sequence[str]) -> tuple[str, Path | None]:
    """The part that is asked for (empty: all), and the file (None: the homework of the folder).

    A single word is a part if it looks like a Python name and no file has that name.

    Raises:
        UsageError: There are more than two words.
    """
    if len(words) > 2:
        raise UsageError(
            f"grader check takes a part and a file, and got {len(words)} words. "
            "Give them like this: grader check Attention homework.py"
        )
    if len(words) == 2:
        return words[0], Path(words[1])
    if words and (not words[0].isidentifier() or Path(words[0]).is_file()):
        return "", Path(words[0])
    return (words[0] if words else ""), None


# --- warm options ----------------------------------------------------------------------------------------


Command = TypeVar("Command", bound=Callable[..., Any])


def warm_options(command: Command) -> Command:
    """`--no-warm`, the parameter `warm`; and `--stop`, with which the command itself does not run."""
    for option in (
        click.option(
            "--stop",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_stop,
            help="End the processes that stay warm for the next check, and do nothing else.",
        ),
        click.option(
            "--no-warm",
            "warm",
            is_flag=True,
            flag_value=False,
            default=True,
            help="Use and leave no warm process; $GRADER_WARM=0 does the same.",
        ),
    ):
        command = option(command)
    return command


def _stop(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from grader.students.warm.asking import stop

    ended = stop()
    click.echo("One warm process was ended." if ended == 1 else f"{ended or 'No'} warm processes were ended.")
    context.exit()


# --- check -----------------------------------------------------------------------------------------------


@click.command("check")
@click.argument("part_and_file", nargs=-1, metavar="[PART] [FILE]")
@click.option("--details", is_flag=True, help="List every statement that was left out on loading.")
@click.option("--watch", is_flag=True, help="Check again each time the file is saved, until Ctrl-C.")
@click.option("--no-try", is_flag=True, help="Skip the trial of the training.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON, for programs.")
@warm_options
@assignment_options
def command(
    part_and_file: tuple[str, ...],
    details: bool,
    watch: bool,
    no_try: bool,
    as_json: bool,
    warm: bool,
    folder: Path | None,
    assignment_id: str | None,
    course: Path | None,
) -> None:
    """Run the public checks on your homework.

    FILE is the script or the notebook; by default it is homework.py (or homework.ipynb) in this folder. With
    the name of a PART, only that part is checked. The checks execute only definitions, and overwrite none of
    your files. Then the training is tried on a few artificial images, for at most 10 s, and the output shows
    what would be trained. It ends with what is known so far: which parts are done, which points are sure, and
    what decides the others.

    \b
    Exit codes:
      0   all that can be known here is right
      1   a check does not pass, or a part is used that is not allowed
      2   the file cannot be checked at all
      3   the grader itself has a fault
      4   the checks pass, but nothing would be trained, or the training does not run

    \b
    Examples:
      grader check
      grader check homework.ipynb
      grader check Attention
      grader check Attention homework.ipynb
      grader check --watch
      grader check reference/vit_defects/solution.py --assignment vit_defects
    """
    from grader.students.warm.question import early_question

    part, file = part_and_its_file(part_and_file)
    # a warm process works while this one loads the views; a part must first be known to exist
    early = warm and not watch and not part and assignment_id is None
    question = early_question(Path.cwd(), file, folder, tried=not no_try) if early else None
    from grader.cli.homework_view import CheckView, check_document
    from grader.students.homework import HomeworkRequest, homework
    from grader.students.warm.asking import quick_check

    if watch and as_json:
        raise UsageError("--watch is for people and --json for programs. Give one of them.")
    work = homework(HomeworkRequest(Path.cwd(), file, folder, assignment_id, course))
    path, local = work.path, work.local.of_part(part) if part else work.local
    if watch:
        from grader.cli.check_watch import watch_file

        watch_file(path, local, details=details)
        return
    if as_json:
        check = quick_check(path, local, tried=not no_try, warm=warm, question=question)
        document = check_document(path, local.assignment, check, local.part)
        outcome = document["exit_code"]
        click.echo(json.dumps(document, ensure_ascii=False, indent=1))
    else:
        with CheckView(path, local.assignment, values=local.values, part=local.part) as view:
            check = quick_check(
                path,
                local,
                read=view.read,
                report=view.finding,
                tried=not no_try,
                warm=warm,
                question=question,
            )
        outcome = view.show_rest(check, details=details)
    sys.exit(outcome)
