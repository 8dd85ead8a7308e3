"""`grader validate`: the checks of an assignment, tried on work whose worth is known."""

import sys
from pathlib import Path

import click

from grader.cli.options import cores


@click.command("validate")
@click.argument("assignment_id", metavar="[ASSIGNMENT]", required=False)
@click.option("--jobs", type=click.IntRange(1), help="Variants at once. Default: one per processor core.")
@click.option(
    "--only", metavar="NAME", help="Only the variants of this name; `*` stands for anything: 'scale_*'."
)
@click.option("--thorough", is_flag=True, help="Every variant meets every check: takes a few minutes.")
@click.option(
    "--pairs",
    type=click.IntRange(1),
    metavar="N",
    help="Try N pairs of mistakes of two parts instead.",
)
@click.option(
    "--all-variants",
    is_flag=True,
    help="Try each choice of each value that [variant] draws, not only this term's values.",
)
@click.option("--debug", is_flag=True, help="Show what checks raise, where, and what they print: use --only.")
@click.option(
    "--train",
    is_flag=True,
    help="Train the reference, or what --only names, and show the measured values and their points.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="With --train: how many times each is trained.",
)
@click.option(
    "--data",
    metavar="PATH|synthetic",
    default="synthetic",
    show_default=True,
    help="With --train: what it is trained and measured on.",
)
@click.option("--course", type=click.Path(path_type=Path), metavar="FOLDER", help="The course's folder.")
def command(
    assignment_id: str | None,
    jobs: int | None,
    only: str | None,
    thorough: bool,
    pairs: int | None,
    all_variants: bool,
    debug: bool,
    train: bool,
    seeds: int,
    data: str,
    course: Path | None,
) -> None:
    """Try the checks of ASSIGNMENT on work whose worth is known.

    The reference solution must pass every check, and the bare template must earn nothing. Every legitimate
    form (reference/ASSIGNMENT/forms/*.py) must pass every check. Every mistake (mistakes/*.py) must fail a
    check of its own part and of no other; nine in ten must be called by their names. Without ASSIGNMENT,
    every assignment of the course is tried. If [variant] draws values, this term's are used; values drawn for
    each student have their first choice.

    With --pairs, it tries homeworks with two of the mistakes each, such that every pair of parts is covered.
    Both mistakes must be noticed, neither may be called by another's name, and no third part may be blamed.

    With --train, the reference is trained like a submission, with several seeds. The table shows where full
    points may begin (two standard deviations from its mean) and whether the stated `reference` is right.

    The exit code is 0 if all of this holds, 1 if something has to be fixed, and 2 if it cannot be tried.

    \b
    Examples:
      grader validate vit_defects
      grader validate vit_defects --only 'scale_*'
      grader validate vit_defects --only reference --debug
      grader validate vit_defects --pairs 300
      grader validate vit_defects --train --seeds 5
    """
    if train:
        sys.exit(0 if _measured(assignment_id, only, seeds, data, course) else 1)
    from grader.cli.validate_view import ValidateView
    from grader.validation.assignment_trial import ValidationRequest, validate

    view = ValidateView()
    request = ValidationRequest(
        assignment_id, only, jobs or cores(), thorough, course, debug, all_variants, pairs
    )
    passed = validate(request, watch=view.progress, done=view.show)
    view.end()
    sys.exit(0 if passed else 1)


def _measured(
    assignment_id: str | None, only: str | None, seeds: int, data: str, course: Path | None
) -> bool:
    """Train variants, and show what is measured; whether nothing is wrong with the assignment."""
    from grader.cli.measured_view import MeasuredView
    from grader.validation.measured_variants import MeasuringRequest, measured_variants

    if assignment_id is None:
        raise click.UsageError("--train is about one assignment. Name it.")
    view = MeasuredView()
    request = MeasuringRequest(assignment_id, only or "reference", data, seeds, course)
    return view.show(measured_variants(request, done=view.line))
