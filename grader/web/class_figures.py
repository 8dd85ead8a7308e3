"""Pages about the class as a whole: how its items and checks went, and which submissions are similar.

The figures name nobody, so that every marker may see them. Pairs of similar submissions name students: that
page is for heads, and its details are the page that `grader similar` wrote.
"""

from starlette.responses import Response

from grader.marking.audit_log import add_entry
from grader.marking.desk import UnknownTask
from grader.reports.whole_class.class_charts import item_histogram, totals_histogram
from grader.reports.whole_class.class_statistics import LOW_DISCRIMINATION, item_figures
from grader.reports.whole_class.review_queue import boundaries, final_total
from grader.reports.whole_class.similarity_record import PAGE, pair_anchor
from grader.web.queue_page import class_now, names_in
from grader.web.report_files import report_page
from grader.web.visits import Visit


def statistics_page(visit: Visit) -> Response:
    """The points of each item, and how the checks went; without names."""
    overview = class_now(visit.desk)
    assignment, results = overview.assignment, overview.results
    totals = [total for _, score in results if (total := final_total(score)) is not None]
    return visit.page(
        "statistics.html.j2",
        assignment=assignment,
        submissions=overview.submissions,
        figures=[
            (figures, item_histogram(figures.points, figures.item.points))
            for figures in item_figures(assignment, results)
            if figures.points or figures.open
        ],
        rates=overview.rates,
        low=LOW_DISCRIMINATION,
        totals=len(totals),
        histogram=totals_histogram(totals, assignment.maximum, boundaries(assignment)),
    )


def similar_pairs_page(visit: Visit) -> Response:
    """The pairs of similar submissions, the strongest first."""
    overview = class_now(visit.desk)
    record = overview.similarity
    listed = {score.student_id for _, score in overview.results}
    return visit.page(
        "similar_pairs.html.j2",
        assignment=overview.assignment,
        record=record,
        pairs=[(pair, pair_anchor(number)) for number, pair in enumerate(record.pairs if record else ())],
        names=names_in(overview),
        listed=listed,
        has_details=(visit.desk.out / PAGE).is_file(),
    )


def side_by_side(visit: Visit) -> Response:
    """The page that `grader similar` wrote, allowed its own styles and pictures and nothing else."""
    try:
        content = (visit.desk.out / PAGE).read_bytes()
    except OSError:
        raise UnknownTask("The submissions have not been compared. `grader similar` compares them.") from None
    add_entry(visit.desk, visit.person, visit.now(), "opened the similar submissions side by side")
    return report_page(content)
