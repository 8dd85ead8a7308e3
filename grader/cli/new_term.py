"""`grader new-term`: the same assignments with another term's values."""

from datetime import datetime
from pathlib import Path

import click


@click.command("new-term")
@click.argument("term", metavar="TERM")
@click.option("--course", type=click.Path(path_type=Path), metavar="FOLDER", help="The course's folder.")
def command(term: str, course: Path | None) -> None:
    """Begin a TERM: write it into course.toml and make all templates again.

    The values that assignments draw by [variant] depend on the term. The output shows which of them differ
    from the last term's, and which deadlines have passed. Gradebooks and results are not touched: give the
    new class its own --out.

    \b
    Example:
      grader new-term 2026-fall
    """
    from grader.course.locate import located_course
    from grader.course.term_change import begin_term
    from grader.domain.drawn_values import shown_value

    change = begin_term(located_course(course), term, datetime.now().astimezone())
    before = f", after {change.before}" if change.before not in ("", change.after) else ""
    click.echo(f"The course is in the term {change.after}{before}.")
    for each in change.assignments:
        click.echo(f"{each.id}: {each.template}")
        for name, old, new in each.differing:
            click.echo(f"  {name} is {shown_value(new)}; last term it was {shown_value(old)}")
        for name in each.per_student:
            click.echo(
                f"  {name} is drawn anew for each student: "
                f"grader template {each.id} --students ROSTER --out FOLDER"
            )
        if not each.differing and not each.per_student:
            click.echo("  its values are the last term's, or it draws none")
        if each.overdue is not None:
            click.echo(
                f"  its deadline, {each.overdue.isoformat(' ', 'minutes')}, lies in the past: "
                f"change it in reference/{each.id}/assignment.toml"
            )
