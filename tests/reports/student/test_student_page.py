import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from grader.domain.analyzed_program import ForbiddenUse, NearName, Note, Omission, Place, TunedValue
from grader.domain.evidence import Blame, Finding, FindingKind, Status, Training, TrainingOutcome
from grader.domain.score import ScoreEdit
from grader.domain.submission import RefusedFile
from grader.reports.student.student_pages import student_page
from grader.reports.student.trained_models import confusion_rows

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}"
VOID = {"meta", "img", "br", "hr", "link", "input", "path", "circle", "line", "rect", "polyline", "wbr"}


class Page(HTMLParser):
    """A page's tags, text and headings; fails on tags that do not nest."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.headings, self.open, self.words = [], [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words).replace("\N{NO-BREAK SPACE}", " "))


@pytest.fixture(scope="session")
def html_of(examples, assignment):
    """(Result) -> its page."""

    def make(one, **changes):
        arguments = {"images": one.images, "generated_at": examples.WHEN} | changes
        return student_page(assignment, one.evidence, one.score, **arguments)

    return make


@pytest.fixture(scope="session")
def pages(class_results, html_of):
    return {name: html_of(one) for name, one in class_results.items()}


def text(pages, name):
    return Page(pages[name]).text


def test_every_page_nests_and_its_headings_descend_by_one(pages):
    for name, html in pages.items():
        headings = Page(html).headings
        assert headings[0] == 1 and headings.count(1) == 1, name
        assert all(later - earlier <= 1 for earlier, later in pairwise(headings)), name


def test_no_page_asks_for_anything_outside_itself(pages):
    for html in pages.values():
        assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in html
        assert "http:" not in html and "https:" not in html and "url(" not in html.replace("url(#hatch)", "")
        assert "@import" not in html
        page = Page(html)
        assert not {"script", "iframe", "object", "link", "form", "base"} & set(page.tags)
        for _, attributes in page.attributes:
            assert not any(name.startswith("on") for name in attributes)
            assert (
                attributes.get("src", "data:").startswith("data:image/png;base64,") or "src" not in attributes
            )
            assert attributes.get("href", "#").startswith("#")


def test_anchors_lead_somewhere_and_every_picture_says_what_it_shows(pages):
    for html in pages.values():
        page = Page(html)
        ids = [attributes["id"] for _, attributes in page.attributes if "id" in attributes]
        assert len(ids) == len(set(ids))
        for tag, attributes in page.attributes:
            if tag == "a":
                assert attributes["href"][1:] in ids
            if tag == "img":
                assert attributes["alt"]
            if tag == "svg":
                assert attributes["aria-label"]


def test_the_same_arguments_give_the_same_page(class_results, html_of):
    one = class_results["missing_scale"]
    backwards = dict(reversed(one.images.items()))
    assert html_of(one) == html_of(one, images=backwards)


def test_first_screen_says_points_fixes_and_accuracy_before_anything_else(pages):
    first = text(pages, "missing_scale").split("Sections of this report")[0].split("Rubric")[0]
    assert "46.6 of 65 decided points" in first
    assert "35 awaiting a person" in first
    assert "The three fixes worth the most points" in first
    assert (
        first.index("up to +7.04 points") < first.index("up to +4 points") < first.index("up to +2.57 points")
    )
    assert "not divided by √dim_head" in first
    assert "scores = q @ k.transpose(-1, -2)" in first
    assert "homework.py:41" in first
    assert "55.0 % measured; 60 % is asked for" in first
    assert "50.8 % to 59.2 %" in first


def test_rubric_has_every_item_with_points_or_a_dash(pages, class_results):
    told = text(pages, "missing_scale")
    for line in class_results["missing_scale"].score.lines:
        assert line.title in told
        assert line.reason in told
    assert "26.14 / 35" in told
    assert "— / 5" in told
    assert "0 / 5" not in told.replace("10 / 5", "")


def test_findings_say_whose_fault_they_are_and_why_they_were_not_tried(pages):
    told = text(pages, "missing_scale")
    assert "This check itself has a mistake, which the instructor will fix. It cost you nothing." in told
    assert "Could not be tried: ViT did not return within 10 s." in told
    assert "missing_scale" not in told, "ids of mistakes mean nothing to students"
    assert "VIT at homework.py:52 was graded as ViT" in told
    assert "No graded part reaches it: this costs nothing." in told


def test_parts_that_are_right_are_closed_and_others_open(pages):
    folds = re.findall(
        r'<details class="component"( open)?>\s*<summary>\s*<h3><code>(\w+)', pages["missing_scale"]
    )
    assert {name for is_open, name in folds if is_open} == {
        "Attention",
        "ViT",
        "evaluate",
        "plot_classwise_predictions",
    }


def test_training_model_and_submission_are_shown(pages):
    told = text(pages, "missing_scale")
    for sentence in (
        "30 of 30 epochs in 2 min 03 s",
        "Confusion matrix",
        "496,134 trainable parameters",
        "Parameters per layer (62 modules)",
        "pos_embedding is 1 x 65 x 64 in the file",
        "learning rate 0.003 line 57",
        "for epoch in range(N_EPOCHS):",
        "made-up practice images",
    ):
        assert sentence in told, sentence
    page = Page(pages["missing_scale"])
    assert len([tag for tag in page.tags if tag == "img"]) == 24 + 2


def test_what_was_measured_is_shown_by_class_with_claim_and_rate(pages):
    told = text(pages, "missing_scale")
    for sentence in (
        "Class Images Precision Recall F1",
        "You report 88.0 %",
        "cell 21",
        "Mean test loss per image",
        "See also the values that you chose and the learning curves .",
    ):
        assert sentence in told, sentence
    html = pages["missing_scale"]
    for anchor in ("values", "curves"):
        assert f'id="{anchor}"' in html


def test_what_a_students_code_controls_while_it_trains_is_not_on_the_page(class_results, html_of):
    """It sees the images of a split then, and could tell which they are in any of these."""
    one = class_results["missing_scale"]
    training = one.evidence.training
    assert training.attention
    told = {}
    for which, number in (("one", 1.25), ("other", 8.5)):
        epochs = tuple(
            replace(
                epoch, train_loss=number * epoch.number, learning_rate=number / epoch.number, seconds=number
            )
            for epoch in training.epochs
        )
        notes, device = (Note(f"rebuilt: {which}."),), f"GPU {which}"
        changed = replace(training, epochs=epochs, notes=notes, device=device, rebuilt=True)
        if which == "other":
            changed = replace(changed, attention=())
        told[which] = html_of(replace(one, evidence=replace(one.evidence, training=changed)))
    assert told["one"] == told["other"]
    page = text(told, "one")
    assert "could not be run as it stands, so training was rebuilt from its values" in page
    assert "data synthetic_steel · GPU" in page


def test_the_trainings_that_were_completed_are_named(class_results, html_of):
    """One is not a mean."""
    one = class_results["missing_scale"]
    training = replace(one.evidence.training, runs=(0.55,), counted="of the last epoch")
    told = text({"one": html_of(replace(one, evidence=replace(one.evidence, training=training)))}, "one")
    assert "training runs with different seeds" not in told and "(of the last epoch)" in told


def test_several_seeds_are_named(class_results, html_of):
    one = class_results["missing_scale"]
    training = replace(one.evidence.training, runs=(0.55, 0.6), counted="of the last epoch")
    told = text({"one": html_of(replace(one, evidence=replace(one.evidence, training=training)))}, "one")
    assert "the mean of 2 training runs with different seeds (55.0 %, 60.0 %), 95 % interval" in told


def test_right_and_wrong_predictions_differ_in_words_and_marks(pages):
    html = pages["missing_scale"]
    assert html.count('<li class="right">') + html.count('<li class="wrong">') == 24
    assert html.count('✗</span><span class="hidden">wrong:') == html.count('<li class="wrong">') > 0


def test_a_bare_template_gets_a_kind_start_in_the_order_of_the_parts(pages):
    told = text(pages, "template")
    assert "Nothing is implemented yet: start with PreNorm." in told
    assert "Where to start" in told
    start = told.split("Where to start")[1].split("Rubric")[0]
    assert start.index("PreNorm") < start.index("FeedForward") < start.index("Attention")
    assert "ViT" not in start
    assert "0 of 65 decided points" in told


def test_equal_findings_of_a_part_are_said_once(pages):
    told = text(pages, "template").split("What the checks found")[1]
    assert told.count("evaluate is not implemented yet") == 1
    assert "1 more check fails for this reason" in told
    assert "The confusion" not in told


def test_refused_says_why_and_shows_no_points(pages):
    told = text(pages, "refused")
    assert "Nothing in this submission could be graded" in told
    assert "'(' was never closed" in told
    assert "notes.docx" in told
    assert "Rubric" not in told and "decided points" not in told and "0 /" not in told


def test_engine_error_is_not_the_students_fault(pages):
    told = text(pages, "engine_error")
    assert "The grader failed, not you" in told
    assert "It costs you nothing" in told
    assert "decided points" not in told


def test_incomplete_names_the_file_and_withholds_the_total(pages):
    told = text(pages, "incomplete")
    assert "400101215_Lab8_Homework.pdf" in told
    assert "Points withheld" in told
    assert "So far: 46.6 of 65 decided points" in told
    assert "Total withheld" in told


def test_unknown_accuracy_is_unknown_and_not_zero(pages):
    told = text(pages, "budget")
    assert "not known" in told and "which is not zero" in told
    assert "12 of 500 epochs" in told
    assert "50 of 50 decided points" in told
    assert "— / 15" in told


def test_unofficial_partial_forbidden_and_not_run_are_said(pages):
    told = text(pages, "forbidden")
    assert "This grade is unofficial" in told and "Landlock is not available here." in told
    assert "A single file was graded" in told
    assert "no points for Attention." in told
    assert "does not allow costs points" in told
    assert "15 not run" in text(pages, "not_trained")


def test_late_work_is_said_without_a_verdict(pages):
    assert "Handed in 10 h late" in text(pages, "missing_scale")
    assert "10 h late" not in text(pages, "good")


def test_sections_without_anything_are_left_out(pages):
    for name in ("refused", "engine_error", "template"):
        told = text(pages, name)
        for section in ("Confusion matrix", "Example predictions", "Drawn by", "Names that are nearly right"):
            assert section not in told
    assert "to fix" not in text(pages, "good").lower()


def test_a_passed_check_with_a_remark_shows_it_and_says_that_it_costs_nothing(
    class_results, html_of, with_remark
):
    one = class_results["good"]
    evidence = with_remark(one.evidence, 2)
    first, second, *others = [found.title for found in evidence.findings if found.component == "ViT"]
    html = html_of(replace(one, evidence=evidence))
    told = Page(html).text
    sentence = "The positions are fixed; the handout asks for learnable ones."
    assert told.count(f"A person will take a look: {sentence}") == 1, "equal remarks are said once"
    assert "The check passed, and this costs no points." in told
    assert "all 9 parts do what they should. A person will take a look at ViT, which costs no points." in told
    end = r"</ul>\s*</details>\s*(?=<details class=.component|</section>)"
    vit = re.search(rf'<details class="component"( open)?>\s*<summary>\s*<h3><code>ViT.*?{end}', html, re.S)
    assert vit.group(1), "it is open, so that the remark is seen"
    words = Page(vit.group()).text
    count = len(others) + 2
    assert f"✓ {count} of {count} checks passed a person will take a look" in words
    assert words.count("✓ Passed") == 1
    assert "homework.py:41" in words and "fixed_positions" not in words
    for title in (first, second, *others):
        assert words.count(title) == 1, "nothing is told twice"
    for word in ("To fix", "Not tried", "Undecided"):
        assert word not in words
    assert "fixes worth the most" not in told and "The fix worth" not in told


def test_a_report_without_remarks_says_nothing_of_a_person(pages):
    assert "A person will take a look" not in text(pages, "good")
    assert "a person will take a look" not in text(pages, "missing_scale")


def test_a_remark_is_shown_and_never_obeyed(class_results, html_of, with_remark):
    one = class_results["good"]
    findings = tuple(
        replace(found, message=HOSTILE, diagnosis=HOSTILE, where=f"{HOSTILE}:1") if found.message else found
        for found in with_remark(one.evidence, 1).findings
    )
    page = Page(html_of(replace(one, evidence=replace(one.evidence, findings=findings))))
    assert "script" not in page.tags
    assert not any("onerror" in attributes for _, attributes in page.attributes)


def test_a_picture_that_is_missing_or_no_png_is_said_to_be(class_results, html_of):
    one = class_results["good"]
    html = html_of(one, images=dict.fromkeys(one.images, b"<svg onload=alert(1)>"))
    assert "<img" not in html and "onload" not in html
    assert html.count("image not stored") == 24


def test_hostile_text_is_shown_and_never_obeyed(class_results, assignment, examples):
    one = class_results["missing_scale"]
    place = Place(HOSTILE, 1)
    finding = Finding(
        HOSTILE, HOSTILE, HOSTILE, Status.FAILED, Blame.STUDENT, HOSTILE, HOSTILE, HOSTILE, f"{HOSTILE}:1"
    )
    training = replace(
        one.evidence.training,
        classes=(HOSTILE,) * 6,
        reason=HOSTILE,
        where=f"{HOSTILE}:1",
        data=HOSTILE,
        device=HOSTILE,
        outcome=TrainingOutcome.FAILED,
    )
    evidence = replace(
        one.evidence,
        student_id=HOSTILE,
        code_file=HOSTILE,
        reason=HOSTILE,
        notes=(Note(HOSTILE),),
        refused_files=(RefusedFile(HOSTILE, HOSTILE),),
        findings=(finding, replace(finding, status=Status.ERRORED), replace(finding, status=Status.SKIPPED)),
        near_names=(NearName("ViT", HOSTILE, place),),
        omissions=(Omission(place, HOSTILE, HOSTILE),),
        forbidden=(ForbiddenUse("timm", HOSTILE, place, (HOSTILE,)),),
        tuned=(TunedValue(HOSTILE, HOSTILE, place),),
        source={HOSTILE: HOSTILE},
        layers=tuple(replace(layer, path=HOSTILE, type=HOSTILE) for layer in one.evidence.layers[:3]),
        training=training,
        checkpoint=replace(one.evidence.checkpoint, reason=HOSTILE),
        figures=tuple(replace(figure, component=HOSTILE) for figure in one.evidence.figures),
        attestation=replace(
            one.evidence.attestation, level=HOSTILE, layers={HOSTILE: HOSTILE}, missing=(HOSTILE,)
        ),
        engine=HOSTILE,
        assignment_digest=HOSTILE,
        submission_digest=HOSTILE,
        seconds={HOSTILE: 1.0},
    )
    edit = ScoreEdit(HOSTILE, examples.WHEN, HOSTILE, 1, 2)
    lines = tuple(replace(line, title=HOSTILE, reason=HOSTILE, edits=(edit,)) for line in one.score.lines)
    score = replace(one.score, student_id=HOSTILE, lines=lines, reason=HOSTILE)
    html = student_page(
        replace(assignment, title=HOSTILE), evidence, score, images=one.images, generated_at=examples.WHEN
    )
    assert html.count("&lt;script&gt;") > 30
    assert "{{ 7*7 }}" in html
    page = Page(html)
    assert "script" not in page.tags
    assert not any(attributes.get("src") == "x" for _, attributes in page.attributes)
    assert not any("onerror" in attributes for _, attributes in page.attributes)


def test_text_that_deceives_the_eye_is_shown_by_its_number(class_results, html_of):
    one = class_results["good"]
    evidence = replace(one.evidence, notes=(Note("safe \u202egnp.exe"), Note("half a pair \ud83d")))
    html = html_of(replace(one, evidence=evidence))
    assert "⟨U+202E⟩" in html
    html.encode("utf-8")


def test_very_long_lists_are_cut_and_say_so(class_results, html_of):
    one = class_results["good"]
    omissions = one.evidence.omissions * 1000
    html = html_of(replace(one, evidence=replace(one.evidence, omissions=omissions, notes=(Note("n"),) * 60)))
    assert len(html) < 400_000
    assert "2800\N{NO-BREAK SPACE}further statements not shown" in html
    assert "10\N{NO-BREAK SPACE}further notes not shown" in html


def test_confusion_rows_are_shares_of_the_row():
    training = Training(TrainingOutcome.COMPLETED, classes=("a", "b"), confusion=((3, 1), (0, 0)))
    first, second = confusion_rows(training)
    assert first.cells == ((3, 0.75), (1, 0.25)) and first.recall == 0.75
    assert second.cells == ((0, 0.0), (0, 0.0)) and second.name == "b"


def test_names_of_classes_are_shown_as_they_are(pages):
    """Where a long one may be broken, nothing is seen of that."""
    assert "U+200B" not in pages["missing_scale"]
    assert "pitted_surface" in text(pages, "missing_scale")


def test_a_cause_is_told_once_and_what_follows_from_it_is_listed_below(class_results, html_of):
    one = class_results["good"]
    root, failed, untried, same, *_ = [
        found for found in one.evidence.findings if found.component == "Attention"
    ]
    lost = {"status": Status.FAILED, "blame": Blame.STUDENT}
    changed = {
        root.check: replace(root, **lost, message="It is random.", hint="Look.", where="homework.py:41"),
        failed.check: replace(failed, **lost, message="The wrong shape.", because=root.check),
        untried.check: replace(
            untried, status=Status.SKIPPED, blame=Blame.STUDENT, message="Not tried.", because=root.check
        ),
        same.check: replace(same, **lost, message="It is random.", where="homework.py:43"),
    }
    findings = tuple(changed.get(found.check, found) for found in one.evidence.findings)
    html = html_of(replace(one, evidence=replace(one.evidence, findings=findings)))
    checks = Page(html).text.split("What the checks found")[1]
    assert checks.count("It is random.") == 1 and checks.count("✗ To fix") == 1
    assert "The wrong shape." not in Page(html).text and "Not tried" not in checks
    others = re.search(r'<details class="others">(.*?)</details>', html, re.S)[1]
    listed = re.findall(r"<li>(.*?)</li>", others)
    assert "3\N{NO-BREAK SPACE}more checks fail for this reason" in Page(others).words[1]
    assert len(listed) == 3 and failed.title in Page(others).text and untried.title in Page(others).text
    assert checks.index("It is random.") < checks.index("more checks fail") < checks.index(failed.title)


def test_advice_is_told_and_no_person_is_announced(class_results, html_of, with_remark):
    one = class_results["good"]
    noted = with_remark(one.evidence, 2)
    findings = tuple(
        replace(found, kind=FindingKind.ADVICE, hint="Learn them.") if found.flagged else found
        for found in noted.findings
    )
    told = Page(html_of(replace(one, evidence=replace(noted, findings=findings)))).text
    assert told.count("The positions are fixed; the handout asks for learnable ones.") == 1
    assert "✓ Passed, with advice" in told and "Learn them." in told
    assert "all 9 parts do what they should. There is advice on ViT, which costs no points." in told
    assert "The check passed, and this costs no points." in told
    assert "person will take a look" not in told
