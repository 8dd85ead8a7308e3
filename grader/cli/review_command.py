"""`grader review`: how far the grades of a class are, and who has looked over which of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.cli.command_options import print_revision, session, session_options
from grader.domain.errors import UsageError

if TYPE_CHECKING:
    from grader.domain.grade_review import GradeState
    from grader.domain.score import Score
    from grader.results.session import ClassSession, SessionRequest

_MOST = 20  # students who are listed of a section


@click.command("review")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--all", "everybody", is_flag=True, help="You have looked over everybody's grade.")
@click.option("--section", metavar="NAME", help="Those of this section of the course.")
@click.option("--only", multiple=True, metavar="LIST", help="Those of these students: ids, with commas.")
@click.option("--withdraw", is_flag=True, help="Take the reviews of these grades back. Needs --why.")
@click.option("--why", default="", help="A note for colleagues: no student reads it.")
@session_options
def command(
    request: "SessionRequest",
    everybody: bool,
    section: str | None,
    only: tuple[str, ...],
    withdraw: bool,
    why: str,
) -> None:
    """Show how far the grades of the results folder OUT are, or record that you have looked over some.

    Without options, it shows for each section of the course how many grades are being marked, reviewed and
    released, and what the others lack. With --all, --section or --only, it records that you have reviewed
    these grades as they are now. Of --all and --section, those of which something is open are left out and
    listed. If points change afterwards, or another submission counts, the review no longer stands: this
    list and the class page say what differs. It changes no points.

    An assignment may demand it before a release: `required = true` in [review] of assignment.toml.
    Otherwise, a release of grades that were not reviewed is told, once anybody has reviewed one.

    \b
    Examples:
      grader review results
      grader review results --section A
      grader review results --only 400101204,400101210 --why "Read Q6 again."
      grader review results --only 400101204 --withdraw --why "I confused two students."
    """
    from grader.cli.publishing_commands import chosen_students

    if everybody and (section is not None or only):
        raise UsageError("--all, --section and --only each say whose grades it is about. Give one of them.")
    chosen = everybody or section is not None or bool(only)
    if withdraw and not chosen:
        raise UsageError("--withdraw needs --only, --section or --all: whose reviews are taken back?")
    if why and not chosen:
        raise UsageError("--why is a note on a review. Add --only, --section or --all, or leave it out.")
    with session(request) as opened:
        if not chosen:
            _tell_states(opened, _sections(opened, request.course))
            return
        students = chosen_students(opened, request.course, only, section)
        if withdraw:
            from grader.decisions.reviewing import withdraw_reviews
            from grader.domain.formatting import counted

            revision = withdraw_reviews(opened, students, why=why)
            print_revision(revision, f"{counted(len(revision.edits), 'review')} taken back.")
        else:
            _review(opened, students, why, all_of_them=bool(only))


def _review(opened: "ClassSession", students: frozenset[str] | None, note: str, *, all_of_them: bool) -> None:
    from grader.decisions.reviewing import review_grades
    from grader.domain.formatting import counted, printable

    done = review_grades(opened, students, note=note, all_of_them=all_of_them)
    for student_id, reason in list(done.open.items())[:_MOST]:
        click.echo(printable(f"{student_id}: left out: {reason}"))
    if len(done.open) > _MOST:
        click.echo(f"and {len(done.open) - _MOST} more")
    before = f", {done.before} had been before" if done.before else ""
    left_out = f", {len(done.open)} left out" if done.open else ""
    click.echo(f"{counted(len(done.reviewed), 'grade')} reviewed{before}{left_out}.")


def _sections(opened: "ClassSession", course: Path | None) -> Mapping[str, str]:
    """Student -> section; empty where the course has no list of students."""
    from grader.cli.publishing_commands import course_plan
    from grader.course.term_files import term_people

    return term_people(course_plan(course), opened.book.students()).sections or {}


def _tell_states(opened: "ClassSession", sections: Mapping[str, str]) -> None:
    """Print how far the grades are, by section."""
    from grader.results.current_state import current_results

    scores = [one.score for one in current_results(opened.assignment, opened.book, opened.out)[1]]
    by_section: dict[str, list[Score]] = {}
    for score in scores:
        if not score.held:
            by_section.setdefault(sections.get(score.student_id, ""), []).append(score)
    if not by_section:
        click.echo("There is no grade yet.")
    for section in sorted(by_section, key=lambda name: (not name, name)):
        title = f"Section {section}" if section else "Without a section"
        _tell_section(f"{title}: " if sections else "", by_section[section])


def _tell_section(title: str, scores: "Sequence[Score]") -> None:
    from grader.decisions.decision_words import review_state
    from grader.domain.formatting import counted, printable
    from grader.domain.grade_review import GradeState
    from grader.scoring.grade_state import grade_state

    states = [grade_state(score) for score in scores]
    counts = ", ".join(f"{states.count(state)} {_WORDS[state.name]}" for state in GradeState)
    click.echo(printable(f"{title}{counted(len(scores), 'grade')}: {counts}"))
    unsettled = [score for score, state in zip(scores, states, strict=True) if _says_more(score, state)]
    for score in unsettled[:_MOST]:
        click.echo(printable(f"  {score.student_id}  {review_state(score)}"))
    if len(unsettled) > _MOST:
        click.echo(f"  and {len(unsettled) - _MOST} more")


_WORDS = {"MARKING": "being marked", "REVIEWED": "reviewed", "RELEASED": "released"}


def _says_more(score: "Score", state: "GradeState") -> bool:
    """Whether the count alone does not say how far a grade is."""
    from grader.domain.grade_review import GradeState

    if score.review is not None and not score.review.stands:
        return True
    if state is GradeState.RELEASED:
        return score.released is not None and score.released.points != score.final
    return state is GradeState.MARKING
