"""`grader term`: what the assignments of a course come to together, and who may not pass.

It reads the options, prints the totals by section, and says what was written. What a total is, and what it
lacks, is decided in `grader.term`; how an LMS's file is filled, in `grader.lms`.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.command_options import gradebook_option, now
from grader.domain.errors import UsageError
from grader.lms import FORMATS
from grader.lms.export_format import Choices

if TYPE_CHECKING:
    from grader.domain.term_total import TermTotal
    from grader.reports.whole_class.term_page import SectionTotals
    from grader.term.written_term import TermExport, TermResult

_FORMATS = {format_.name: format_ for format_ in FORMATS if not format_.several and format_.noun == "grades"}


@click.command("term")
@click.argument("outs", metavar="OUT...", type=click.Path(path_type=Path), nargs=-1)
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write the course page and totals.csv into it.",
)
@click.option("--section", metavar="NAME", help="Only this section.")
@click.option(
    "--export",
    "wanted",
    type=click.Choice(sorted(_FORMATS)),
    help="Also fill the LMS's file of --into. Needs --to.",
)
@click.option("--into", type=click.Path(path_type=Path), metavar="FILE", help="The file that the LMS made.")
@click.option(
    "--column", default="", metavar="NAME", help="The column of the totals. Default: the course's title."
)
@click.option("--scale", is_flag=True, help="Scale the totals if the LMS has another maximum.")
@click.option("--anyway", is_flag=True, help="Leave doubtful rows as they are, and let grades in FILE fall.")
@click.option("--course", type=click.Path(path_type=Path), help="The course folder (default: found upward).")
@gradebook_option
def command(
    outs: tuple[Path, ...],
    to: Path | None,
    section: str | None,
    wanted: str | None,
    into: Path | None,
    column: str,
    scale: bool,
    anyway: bool,
    course: Path | None,
    gradebook: str | None,
) -> None:
    """Add up the results folders OUT... of a course: totals, late days left, and who may not pass.

    In course.toml, [total] says what each assignment is worth, and [people] names a file of students with
    their sections and one of groups. A total that lacks something is a range, and what is missing is listed;
    nothing unknown counts as zero.

    With --to, it writes a course page (index.html) and a table (totals.csv); repeat the command to renew
    them. With --export, it also fills a file of the LMS: students whose total lacks something are left out.

    \b
    Examples:
      grader term results_lab1 results_lab2 --gradebook sqlite:///course.sqlite
      grader term results_lab1 results_lab2 --to term
      grader term results_lab1 --section A
      grader term results_lab* --to term --export canvas --into gradebook.csv --column Total
    """
    from grader.term.graded_assignments import TermRequest
    from grader.term.written_term import term_result

    if not outs:
        raise UsageError("Give the results folders: the --out folders of `grader grade`.")
    export = _export(wanted, to, into, Choices(column=column, scale=scale, anyway=anyway))
    request = TermRequest(outs, course, gradebook)
    done = term_result(request, now=now(), section=section, to=to, export=export)
    _tell(done)


def _export(wanted: str | None, to: Path | None, into: Path | None, choices: Choices) -> "TermExport | None":
    from grader.term.written_term import TermExport

    if wanted is None:
        if into is not None or choices != Choices():
            raise UsageError("--into, --column, --scale and --anyway belong to --export. Add it.")
        return None
    format_ = _FORMATS[wanted]
    if to is None:
        raise UsageError("--export writes a filled copy. Say where with --to FOLDER.")
    if into is None and format_.template is not None and format_.template.required:
        raise UsageError(f"--export {wanted} needs --into FILE. {format_.template.what}")
    return TermExport(format_, into, choices)


def _tell(done: "TermResult") -> None:
    """Print the totals by section, who may not pass, and what was written."""
    from grader.domain.formatting import counted, listed, points, printable
    from grader.reports.whole_class.term_page import risk_words, total_words

    decided = sum(total.points is not None for total in done.totals)
    click.echo(
        printable(
            f"{done.title}: {counted(len(done.totals), 'student')}, {decided} with a final total of "
            f"{points(done.plan.maximum)} points."
        )
    )
    width = max((len(total.student_id) for total in done.totals), default=0)
    wide = max((len(total_words(total)) for total in done.totals), default=0)
    for section in done.sections:
        _tell_section(section, done, width, wide)
    at_risk = [total for total in done.totals if total.risks]
    if at_risk:
        click.echo("\nAt risk:")
        for total in at_risk:
            why = "; ".join(risk_words(risk, total) for risk in total.risks)
            click.echo(printable(f"  {total.student_id:<{width}}  {why}"))
    for remark in done.remarks:
        click.echo(printable(f"note: {remark}"), err=True)
    if done.export is not None:
        click.echo(f"{counted(done.export.count, 'total')} exported.")
        for remark in done.export.remarks:
            click.echo(printable(f"  {remark}"))
    if done.written:
        click.echo(f"{done.written[0].parent}: {listed([path.name for path in done.written])}.")


def _tell_section(section: "SectionTotals", done: "TermResult", width: int, wide: int) -> None:
    from grader.domain.formatting import listed, printable

    markers = f" ({listed(section.markers)})" if section.markers else ""
    click.echo(printable(f"\n{section.title}{markers}"))
    for total in section.totals:
        click.echo(printable(_line(total, done, width, wide)))


def _line(total: "TermTotal", done: "TermResult", width: int, wide: int) -> str:
    from grader.domain.formatting import round_percent
    from grader.reports.whole_class.term_page import missing_words, total_words

    so_far = "" if total.so_far is None else round_percent(total.so_far)
    left = f"  {total.late_days_left} of {done.late_days} late days left" if done.late_days else ""
    missing = "; ".join(missing_words(total))
    line = f"  {total.student_id:<{width}}  {total_words(total):>{wide}}  {so_far:>7}{left}"
    return f"{line}  {missing}".rstrip()
