"""Where models look is for staff: it has a page of its own, and no student's page shows any of it."""

import re

from grader.reports.student.student_pages import attention_page, shows_attention, student_pages
from grader.reports.whole_class.class_page import class_page


def test_the_page_shows_three_pictures_for_each_class(assignment, class_results, examples):
    one = class_results["missing_scale"]
    page = attention_page(assignment, one.evidence, images=one.images, generated_at=examples.WHEN)
    assert page is not None
    pictures = re.findall(r'<img src="data:image/png;base64,', page)
    assert len(pictures) == 3 * len(one.evidence.training.attention) == 18
    assert "Do not hand this page out" in page and not re.search(r"https?:|<script", page)


def test_there_is_none_where_nothing_was_measured(assignment, class_results, examples):
    one = class_results["template"]
    assert not shows_attention(one.evidence)
    assert attention_page(assignment, one.evidence, images={}, generated_at=examples.WHEN) is None


def test_no_page_for_the_student_holds_any_of_its_pictures(assignment, class_results, examples):
    one = class_results["missing_scale"]
    told = student_pages(assignment, one.evidence, one.score, one.images, examples.WHEN)
    without = {name: image for name, image in one.images.items() if not name.startswith(("atten", "roll"))}
    assert without.keys() < one.images.keys()
    assert student_pages(assignment, one.evidence, one.score, without, examples.WHEN) == told


def test_the_class_page_leads_there(assignment, pairs, examples):
    page = class_page(
        assignment,
        pairs,
        links={},
        generated_at=examples.WHEN,
        attention={"400101204": "students/400101204/attention.html"},
    )
    assert page.count('href="students/400101204/attention.html">attention</a>') == 1
