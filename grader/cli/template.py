"""`grader template`: the students' folder, made from the reference."""

from pathlib import Path

import click


@click.command("template")
@click.argument("assignment_id", metavar="ASSIGNMENT")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where to; by default template/ASSIGNMENT of the course.",
)
@click.option("--force", is_flag=True, help="With --out: replace a homework in which something is written.")
@click.option("--course", type=click.Path(path_type=Path), metavar="FOLDER", help="The course's folder.")
def command(assignment_id: str, out: Path | None, force: bool, course: Path | None) -> None:
    """Make the students' folder of ASSIGNMENT from its reference solution.

    Writes homework.py and homework.ipynb (what stands between the solution's marks becomes a stub),
    README.md, the public checks, the public part of assignment.toml, the data set files, the files that are
    provided, and the grader itself as a wheel. Hand out this folder and nothing else: the wheel holds no
    answers.

    \b
    Examples:
      grader template vit_defects
      grader template vit_defects --out ~/handout
    """
    from grader.course.locate import located_course
    from grader.course.student_template import student_files, write_template
    from grader.domain.errors import UsageError

    found = located_course(course)
    reference = found.reference(assignment_id)
    if out is not None and not force:
        files = student_files(reference, found.datasets)
        for name in ("homework.py", "homework.ipynb"):
            path = out / name
            if path.is_file() and path.read_bytes() != files[name].encode():
                raise UsageError(
                    f"{path} is there already, and something else is written in it. Replace: --force"
                )
    written = write_template(reference, out or found.root / "template" / assignment_id, found.datasets)
    for path in written:
        click.echo(path)
