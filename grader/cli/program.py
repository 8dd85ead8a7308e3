"""`grader program`: what the grader understood of a homework: which model counts, and what trains it."""

import sys
from pathlib import Path

import click

from grader.cli.options import assignment_options


@click.command("program")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--code", is_flag=True, help="Print the statements that are executed to train.")
@click.option("--no-run", is_flag=True, help="Execute nothing: for a file that you did not write.")
@assignment_options
def command(
    file: Path | None,
    code: bool,
    no_run: bool,
    folder: Path | None,
    assignment_id: str | None,
    course: Path | None,
) -> None:
    """Show which model counts in your homework, and what trains it.

    Your training is tried on a few artificial images, which takes seconds. The output lists each loop with
    its epochs, optimizer, rates and schedule. `grader train` and the grader execute the same: your own
    statements on which the final model's weights depend, with other images in place of yours. Code that
    trains other models is not run. If the wrong model was found, save the weights that you hand in under
    their name with `torch.save`. Or write `# grader: final` at the end of the line that makes the final
    model.

    \b
    Examples:
      grader program
      grader program homework.ipynb --code
    """
    from grader.cli.check_view import show_calls
    from grader.cli.page import Page
    from grader.cli.program_view import show_program
    from grader.students.homework import HomeworkRequest, homework
    from grader.students.own_machine import own_program
    from grader.students.own_rehearsal import tried_program, untried_plans

    own = homework(HomeworkRequest(Path.cwd(), file, folder, assignment_id, course))
    if no_run:
        program = own_program(own.path, own.local.assignment)
        plans = untried_plans(program, own.local.assignment)
    else:
        program, plans = tried_program(own)
    assignment = own.local.assignment
    show_calls(Page(), assignment)
    if not plans and all(measure.call is None for measure in assignment.measures):
        click.echo("This assignment measures nothing, so nothing is trained.")
    for measure in assignment.measures:
        if measure.id in plans:
            show_program(program.read_for(measure.id), plans[measure.id], own.path, measure.title, code=code)
    sys.exit(0 if all(plan.can_be_trained for plan in plans.values()) else 1)
