"""`grader pack`: the files to hand in, found, verified and put together."""

import sys
from pathlib import Path

import click

from grader.cli.options import assignment_options


@click.command("pack")
@click.argument("source", metavar="[FOLDER]", default=Path(), type=click.Path(path_type=Path))
@click.option(
    "--id", "student_id", metavar="STUDENT_ID", help="Your student id, which begins the files' names."
)
@click.option(
    "--id-is-right", is_flag=True, help="Pack under --id although STUDENT_ID in the code is different."
)
@click.option("--no-checks", is_flag=True, help="Skip the public checks.")
@click.option("--code", type=click.Path(path_type=Path), metavar="FILE", help="Your .py or .ipynb file.")
@click.option(
    "--checkpoint",
    "checkpoints",
    type=click.Path(path_type=Path),
    metavar="FILE",
    multiple=True,
    help="Your weights, a .pth file; once for each model, if several are handed in.",
)
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE", help="Your report, a .pdf file.")
@click.option(
    "--file",
    "files",
    metavar="ROLE=FILE",
    multiple=True,
    help="Another file that the assignment requires, by its role: --file metrics=run3.csv.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where to put them; by default `handin` in FOLDER.",
)
@click.option("--zip", "zipped", is_flag=True, help="Also make a zip of them, once all are there.")
@click.option("--force", is_flag=True, help="Replace existing files that have different content.")
@assignment_options
def command(
    source: Path,
    student_id: str | None,
    id_is_right: bool,
    no_checks: bool,
    code: Path | None,
    checkpoints: tuple[Path, ...],
    report: Path | None,
    files: tuple[str, ...],
    out: Path | None,
    zipped: bool,
    force: bool,
    folder: Path | None,
    assignment_id: str | None,
    course: Path | None,
) -> None:
    """Put together the files to hand in, and verify them.

    Looks in FOLDER (by default this one) for your code, your weights, your report and any other required
    file. It reads the code and tests whether the weights fit its model. It copies the files that are fine,
    under the names that the assignment requires. Your own files are not changed. The output lists what is
    missing and what to do about it. Then it runs the public checks and tries the training, as `grader check`
    does; files are packed whatever these find. Without --id, your id is the STUDENT_ID in your code, or else
    the id in your files' names.

    The exit code is 0 if everything is there, fits and passes the checks; otherwise it is 1.

    \b
    Examples:
      grader pack --id 400101204
      grader pack --id 400101204 --code homework.ipynb --report "my report.pdf" --zip
    """
    from grader.cli.pack_view import is_right, show_package
    from grader.domain.submission import Role
    from grader.students.handin import HandinRequest, pack_handin

    given: dict[str, tuple[Path, ...]] = {Role.CHECKPOINT: checkpoints} if checkpoints else {}
    given |= {role: (path,) for role, path in ((Role.CODE, code), (Role.REPORT, report)) if path is not None}
    for named in files:
        role, _, name = named.partition("=")
        given[role] = (*given.get(role, ()), Path(name))
    packed = pack_handin(
        HandinRequest(
            source,
            Path.cwd(),
            student_id=student_id,
            confirmed=id_is_right,
            checked=not no_checks,
            given=given,
            out=out,
            zipped=zipped,
            force=force,
            folder=folder,
            assignment_id=assignment_id,
            course=course,
        )
    )
    show_package(packed, zipped=zipped)
    sys.exit(0 if packed.complete and is_right(packed) else 1)
