"""The commands that make packages for other graders: `grader package gradescope`, `container` and others.

They read the options, have the package written, and say what to set in the other grader. What a package
holds, and what it does there, is decided in `grader.packages`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from grader.domain.errors import UsageError

_Command = TypeVar("_Command", bound=Callable[..., Any])


@click.group("package")
def package_command() -> None:
    """Make a package of an assignment that grades inside another grader.

    A package runs the checks of one assignment, public and hidden, and gives the same points as `grader
    grade`. Items that need a training or a person stay open, with the reason. With --reduced it also trains
    on a few images, and tells students whether their training runs. It holds a key that is derived for this
    assignment, and never the course's secret. Only instructors may see it: it holds the reference and the
    hidden checks.

    \b
    Examples:
      grader package gradescope --assignment vit_defects --out vit_defects.zip
      grader package gradescope --assignment vit_defects --minutes 20 --reduced NEU-CLS.zip
      grader package container --assignment vit_defects --minutes 5 --memory-mb 4000
    """


def _assignment_options(command: _Command) -> _Command:
    """Which assignment, where to, and where the libraries come from."""
    for option in (
        click.option(
            "--torch-index",
            metavar="URL",
            help="The package index of PyTorch. Default: PyTorch's own, without a GPU.",
        ),
        click.option("--index", metavar="URL", help="The package index of all else. Default: PyPI."),
        click.option(
            "--out",
            type=click.Path(path_type=Path),
            metavar="ZIP",
            help="The zip. Default: the assignment's id and the grader's name, here.",
        ),
        click.option("--course", type=click.Path(path_type=Path), help="The course folder."),
        click.option(
            "--assignment", "assignment_id", required=True, help="The assignment's id, e.g. vit_defects."
        ),
    ):
        command = option(command)
    return command


def _run_options(command: _Command) -> _Command:
    """What the other grader gives a run, after the options of `_assignment_options`."""
    for option in (
        click.option(
            "--reduced-decides",
            is_flag=True,
            help="What the reduced run measures gives the points, by the breakpoints of the rubric.",
        ),
        click.option(
            "--per-class",
            type=click.IntRange(1),
            metavar="N",
            help="Images of each class that the reduced run trains on (without classes: examples). Default: "
            "what keeps the zip below 5 MB, at most 100.",
        ),
        click.option(
            "--reduced",
            metavar="DATA",
            help="Also train, on a few images of this file or folder, or `synthetic`. Default: checks only.",
        ),
        click.option(
            "--memory-mb",
            type=click.IntRange(2000),
            default=3000,
            show_default=True,
            help="The memory that the other grader gives a run, in megabytes.",
        ),
        click.option(
            "--minutes",
            type=click.FloatRange(1, 40),
            default=10.0,
            show_default=True,
            help="The time that the other grader gives a run.",
        ),
    ):
        command = option(command)
    return _assignment_options(command)


@package_command.command("gradescope")
@_run_options
@click.option(
    "--leaderboard",
    is_flag=True,
    help="Also a line for the leaderboard: how many public checks passed, without names.",
)
def gradescope_command(**chosen: Any) -> None:
    """Write the zip that Gradescope takes as an autograder.

    Students see what public checks found at once, and what hidden checks found when grades are published.
    Upload the zip under "Configure Autograder", and choose there the memory and time-out that are printed.
    Not tried on Gradescope itself yet.

    \b
    Example:
      grader package gradescope --assignment vit_defects --out vit_defects.zip
    """
    _write("gradescope", **chosen)
    click.echo(
        "In Gradescope: Configure Autograder, upload the zip. Settings: container of at least "
        f"{chosen['memory_mb']} MB, time-out {chosen['minutes']:g} minutes."
    )


@package_command.command("container")
@_run_options
def container_command(**chosen: Any) -> None:
    """Write a zip with a Containerfile, for courses that have Docker or Podman.

    Unpack it and build the image. It grades what lies in /autograder/submission, and writes
    /autograder/results/results.json in Gradescope's format. Not tried with Docker or Podman yet.

    \b
    Example:
      grader package container --assignment vit_defects --out image.zip
    """
    _write("container", **chosen)
    click.echo(
        "Unpack it, then:\n"
        "  docker build -t grader .\n"
        f"  docker run --rm --network none --memory {chosen['memory_mb']}m"
        " -v SUBMISSION:/autograder/submission -v RESULTS:/autograder/results grader"
    )


@package_command.command("prairielearn")
@_run_options
@click.option("--image", metavar="NAME", help="The image's name. Default: grader-ID.")
def prairielearn_command(image: str | None, **chosen: Any) -> None:
    """Write a question of PrairieLearn's, and the files of its image.

    PrairieLearn shows the score at once, so it tells how many points hidden checks gave; their words are
    not shown. The score is the share of those points that are decided. Not tried on PrairieLearn itself yet.

    \b
    Example:
      grader package prairielearn --assignment vit_defects --image registry.example.org/grader-vit
    """
    # Docker takes small letters only
    name = image or f"grader-{chosen['assignment_id'].replace('_', '-').strip('-').lower()}"
    _write("prairielearn", image=name, **chosen)
    click.echo(
        f"Unpack it. In image/:  docker build -t {name} . , and push it to where PrairieLearn finds it.\n"
        "question/ goes into the course's questions/."
    )


@package_command.command("github")
@_assignment_options
def github_command(**chosen: Any) -> None:
    """Write the workflow of GitHub Classroom, which runs the public checks only.

    The workflow runs in the student's own repository, where hidden checks could be read and results could
    be changed. So nothing of the course is in it. It says which parts pass their public checks; grade with
    `grader grade`. Not tried on GitHub itself yet.

    \b
    Example:
      grader package github --assignment vit_defects
    """
    _write("github", **chosen)
    click.echo("Unpack it into the repository that students receive, beside the files of the template.")


def _write(
    kind: str,
    *,
    assignment_id: str,
    course: Path | None,
    out: Path | None,
    index: str | None,
    torch_index: str | None,
    minutes: float = 0.0,
    memory_mb: int = 0,
    reduced: str | None = None,
    per_class: int | None = None,
    reduced_decides: bool = False,
    leaderboard: bool = False,
    image: str = "",
) -> None:
    from grader import __version__
    from grader.course.locate import located_course
    from grader.packages.install_scripts import PYPI, TORCH_CPU, Sources
    from grader.packages.package_archives import write_package
    from grader.packages.package_contents import packed_values, words_of_failures
    from grader.packages.package_data import ReducedRequest
    from grader.packages.package_settings import PackageSettings
    from grader.packages.question_files import MOST_MINUTES

    located = located_course(course)
    assignment = located.assignment(assignment_id)
    if kind == "prairielearn" and minutes > MOST_MINUTES:
        raise UsageError(f"--minutes {minutes:g}: PrairieLearn allows {MOST_MINUTES:g} at most. Give fewer.")
    if reduced is None and (per_class is not None or reduced_decides):
        option = "--per-class" if per_class is not None else "--reduced-decides"
        raise UsageError(f"{option}: there is no reduced run. Name its data: --reduced DATA.")
    path = out or Path(f"{assignment_id}-{kind}.zip")
    if not path.parent.is_dir():
        raise UsageError(f"--out {path}: there is no folder {path.parent}. Make it, or choose another one.")
    values = packed_values(located, assignment)
    settings = PackageSettings(
        kind,
        assignment_id,
        minutes,
        memory_mb,
        leaderboard,
        __version__,
        values.of_term,
        words_of_failures(assignment, minutes, memory_mb),
        values.key,
    )
    extra = "" if located.language == "en" else "[language]"
    sources = Sources(_address(index, PYPI), _address(torch_index, TORCH_CPU), extra)
    asked = ReducedRequest(reduced, per_class, reduced_decides) if reduced is not None else None
    written = write_package(path, located, assignment, settings, sources, image=image, reduced=asked)
    _tell_size(written, assignment)
    if kind != "github":
        _tell_open(assignment, trained=reduced_decides)


def _tell_size(written: Any, assignment: Any) -> None:
    """How large the zip is, what a reduced run has a part in it, and why it is too large, if it is."""
    from grader.domain.assignment_files import PROVIDED
    from grader.packages.package_archives import MOST_BYTES

    click.echo(f"{written.path}: {written.size / 1e6:.1f} MB, {len(written.names)} files.")
    data = written.data
    if data is not None:
        click.echo(
            f"The reduced run trains on {data.train} and measures on {data.test} examples, "
            f"{len(data.content) / 1e6:.1f} MB. Their hidden labels are in the zip."
        )
    if written.size > MOST_BYTES:
        folder = assignment.folder / PROVIDED
        provided = sum((folder / file.name).stat().st_size for file in assignment.provided)
        parts = {"the files that it provides": provided, "the reduced run": len(data.content) if data else 0}
        named = " and ".join(f"{size / 1e6:.1f} MB of {what}" for what, size in parts.items() if size)
        above, most = (written.size - MOST_BYTES) / 1e6, MOST_BYTES / 1e6
        click.echo(
            f"note: it is {above:.1f} MB above {most:.0f} MB, because of {named}. The other grader may take "
            "long to build it.",
            err=True,
        )


def _address(given: str | None, default: str) -> str:
    """The address of an index.

    Raises:
        UsageError: It is none, or could not stand in a script.
    """
    address = given or default
    if not address.startswith(("https://", "http://")) or set(address) & set(" \"'`$\\\n"):
        raise UsageError(f"{address}: is not the address of a package index. Give one like {default}.")
    return address


def _tell_open(assignment: Any, *, trained: bool) -> None:
    """Which items the package leaves open.

    Args:
        trained: Whether its reduced run decides about what is measured.
    """
    from grader.domain.formatting import points

    opened = [
        item
        for item in assignment.rubric
        if item.components is None and not (trained and item.measured is not None)
    ]
    if opened:
        total = points(sum(item.points for item in opened))
        names = ", ".join(item.id for item in opened)
        click.echo(f"Open in it, because they need a training or a person ({total} points): {names}.")
