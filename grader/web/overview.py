"""The first page: what there is to mark, how far everybody is, and what to go on with."""

from starlette.responses import Response

from grader.marking.audit_log import audit_log
from grader.marking.marker_progress import marker_progress
from grader.marking.task_list import questions
from grader.web.visits import Visit


def overview(visit: Visit) -> Response:
    """All questions with their progress, mine and everybody's, and the markers of each."""
    listed = questions(visit.desk, visit.person)
    progress = marker_progress(visit.desk)
    return visit.page(
        "overview.html.j2",
        assignment=visit.desk.assignment,
        questions=listed,
        tasks=sum(question.tasks for question in listed),
        marked=sum(question.marked for question in listed),
        mine=sum(question.mine for question in listed),
        mine_left=sum(question.mine_left for question in listed),
        done=visit.query.text("done"),
        progress=[one for one in progress if one.marker and (one.assigned or one.marked)],
    )


def log_page(visit: Visit) -> Response:
    """Who saw and changed what, newest first."""
    entries = audit_log(visit.desk, before=visit.query.whole("before"))
    return visit.page("log.html.j2", entries=entries, assignment=visit.desk.assignment)
