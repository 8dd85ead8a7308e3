"""`grader check`: the public checks on a student's own homework."""

import json
import sys
from pathlib import Path

import click

from grader.cli.options import assignment_options
from grader.cli.warm_options import warm_options
from grader.domain.errors import UsageError


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
    from grader.cli.check_words import part_and_its_file
    from grader.students.warm.question import early_question

    part, file = part_and_its_file(part_and_file)
    # a warm process works while this one loads what shows its findings; a part must be known to be one first
    early = warm and not watch and not part and assignment_id is None
    question = early_question(Path.cwd(), file, folder, tried=not no_try) if early else None
    from grader.cli.check_view import CheckView, check_document
    from grader.students.homework import HomeworkRequest, homework
    from grader.students.warm.asking import quick_check

    if watch and as_json:
        raise UsageError("--watch is for people and --json for programs. Give one of them.")
    own = homework(HomeworkRequest(Path.cwd(), file, folder, assignment_id, course))
    path, local = own.path, own.local.of_part(part) if part else own.local
    if watch:
        from grader.cli.check_watch import watch_file

        watch_file(path, local, details=details)
        return
    if as_json:
        found = quick_check(path, local, tried=not no_try, warm=warm, question=question)
        document = check_document(path, local.assignment, found, local.part)
        outcome = document["exit_code"]
        click.echo(json.dumps(document, ensure_ascii=False, indent=1))
    else:
        with CheckView(path, local.assignment, values=local.values, part=local.part) as view:
            found = quick_check(
                path,
                local,
                read=view.read,
                report=view.finding,
                tried=not no_try,
                warm=warm,
                question=question,
            )
        outcome = view.rest(found, details=details)
    sys.exit(outcome)
