"""assignment.toml: what is read from it, and the sentence for each thing that can be wrong in it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.course.assignment_file import digest, read_assignment
from grader.course.student_template import public_settings
from grader.domain.assignment import Assignment, Component
from grader.domain.assignment_files import SubmittedFile
from grader.domain.assignment_rules import LatePolicy
from grader.domain.errors import CourseError
from grader.domain.limits import Limits
from grader.domain.measure import Measure, ProgramRoles
from grader.domain.submission import Role

OURS = Path(__file__).parents[2] / "reference" / "vit_defects"

DEADLINE = "deadline = 2026-01-31T23:59:00+03:30\n"
SMALL = """\
id = "small"
title = "A small assignment"

[files]
stem = "{student_id}_homework"

[files.required]
code = [".py"]

[data]
real = "neu_cls"
synthetic = "synthetic_steel"
classes = ["dents", "rust", "scars", "welds"]

[limits]
call_seconds = 5

[[component]]
name = "Attention"
kind = "class"
signature = "dim, heads=4"

[[component]]
name = "evaluate"
kind = "function"
signature = "model"

[[rubric]]
id = "model"
title = "Model"
points = 12

[rubric.components]
Attention = 8
evaluate = 4

[[rubric]]
id = "training"
title = "Training"
points = 15
measured = "test_accuracy"
threshold = 0.6
breakpoints = [{ at = "chance", points = 0 }, { at = 0.6, points = 9 }, { at = 0.8, points = 15 }]

[[rubric]]
id = "essay"
title = "Essay"
points = 3
by = "person"

[[forbidden]]
parts = ["timm", "torch.nn.Transformer*"]
costs = "model"
reason = "Write it yourself."
"""


def folder_with(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "small"
    folder.mkdir(exist_ok=True)
    (folder / "assignment.toml").write_text(text, encoding="utf-8")
    return folder


def fault_of(tmp_path: Path, *changes: tuple[str, str]) -> str:
    text = SMALL
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    with pytest.raises(CourseError) as caught:
        read_assignment(folder_with(tmp_path, text))
    message = str(caught.value)
    assert "pydantic" not in message
    assert "\n" not in message
    return message


# --- what is read ---------------------------------------------------------------------------------------


def test_a_small_assignment(tmp_path: Path) -> None:
    assignment = read_assignment(folder_with(tmp_path, SMALL))
    assert (assignment.id, assignment.title) == ("small", "A small assignment")
    assert assignment.folder == tmp_path / "small"
    assert assignment.files == (SubmittedFile(Role.CODE, (".py",)),)
    assert assignment.components[0] == Component("Attention", "class", "dim, heads=4")
    assert assignment.limits == Limits(call_seconds=5)
    assert (assignment.data.student_seed, assignment.data.train_share) == (42, 0.7)
    assert assignment.deadline is None
    assert not assignment.public_only
    assert assignment.maximum == 30


def test_rubric_items_have_their_source_of_points(tmp_path: Path) -> None:
    model, training, essay = read_assignment(folder_with(tmp_path, SMALL)).rubric
    assert model.components == {"Attention": 8, "evaluate": 4}
    assert training.measured == "test_accuracy"
    assert training.threshold == 0.6
    assert training.breakpoints == ((0.25, 0), (0.6, 9), (0.8, 15)), "guessing gets one in four classes"
    assert [item.by_person for item in (model, training, essay)] == [False, False, True]


def test_each_forbidden_part_is_a_rule(tmp_path: Path) -> None:
    rules = read_assignment(folder_with(tmp_path, SMALL)).forbidden
    assert [rule.pattern for rule in rules] == ["timm", "torch.nn.Transformer*"]
    assert {(rule.policy, rule.costs, rule.reason) for rule in rules} == {
        ("forbid", "model", "Write it yourself.")
    }


def test_policies_are_what_the_file_says(tmp_path: Path) -> None:
    assert read_assignment(folder_with(tmp_path, SMALL)).policies == {}
    text = SMALL + '[policies]\nfixed_positions = "flag"\nstem = "allow"\n"odd name" = "forbid"\n'
    policies = read_assignment(folder_with(tmp_path, text)).policies
    assert policies == {"fixed_positions": "flag", "stem": "allow", "odd name": "forbid"}


def test_roles_of_a_program_are_what_the_file_says(tmp_path: Path) -> None:
    assert read_assignment(folder_with(tmp_path, SMALL)).measures == (Measure("test_accuracy"),)
    stated = '[program]\nmodel = "Attention"\nevaluator = "evaluate"\nfinal = "best"\n[limits]'
    found = read_assignment(folder_with(tmp_path, SMALL.replace("[limits]", stated)))
    assert found.measures[0].roles == ProgramRoles("Attention", "", "evaluate", "best")


def test_boundaries_and_leaderboard_are_read_and_off_by_default(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain = read_assignment(folder_with(tmp_path / "plain", SMALL))
    assert (plain.boundaries, plain.leaderboard) == ((), False)
    chosen = read_assignment(folder_with(tmp_path, "boundaries = [10, 13.5]\nleaderboard = true\n" + SMALL))
    assert (chosen.boundaries, chosen.leaderboard) == ((10.0, 13.5), True)


def test_points_that_binary_fractions_miss_add_up(tmp_path: Path) -> None:
    """30 + 4.8 + 7.8 is a little less than 42.6 to a computer, and 42.6 to whoever writes the rubric."""
    rubric = "".join(
        f'\n[[rubric]]\nid = "{name}"\ntitle = "By hand"\npoints = {points}\nby = "person"\n'
        for name, points in (("first", 4.8), ("second", 7.8))
    )
    chosen = read_assignment(folder_with(tmp_path, f"boundaries = [20, 42.6]\n{SMALL}{rubric}"))
    assert (chosen.maximum, chosen.boundaries) == (42.6, (20.0, 42.6))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ("[13, 10]", "'boundaries' is not in ascending order. Sort it, each value once."),
        ("[10, 10]", "'boundaries' is not in ascending order. Sort it, each value once."),
        ("[10, 270]", "'boundaries' has 270, and the rubric has 30 points in all. Lower it."),
    ],
)
def test_boundaries_that_cannot_be_are_told(tmp_path: Path, values: str, sentence: str) -> None:
    with pytest.raises(CourseError) as told:
        read_assignment(folder_with(tmp_path, f"boundaries = {values}\n" + SMALL))
    assert sentence in str(told.value)


def test_a_deadline_keeps_its_zone(tmp_path: Path) -> None:
    text = "deadline = 2026-01-31T23:59:00+03:30\n" + SMALL
    deadline = read_assignment(folder_with(tmp_path, text)).deadline
    assert deadline is not None
    assert deadline.astimezone(UTC) == datetime(2026, 1, 31, 20, 29, tzinfo=UTC)


def test_the_rule_for_late_work_is_what_the_file_says(tmp_path: Path) -> None:
    text = "deadline = 2026-01-31T23:59:00+03:30\n" + SMALL
    assert read_assignment(folder_with(tmp_path, text)).late == LatePolicy()
    text += "[late]\ngrace_minutes = 15\npoints_per_day = 5\nmost_points = 30\n"
    assert read_assignment(folder_with(tmp_path, text)).late == LatePolicy(15, 5, 30)


@pytest.mark.parametrize(
    ("deadline", "table", "sentence"),
    [
        (
            "",
            "points_per_day = 5",
            "[late] has no deadline to count from. Add 'deadline' above the first table.",
        ),
        (DEADLINE, "most_points = 5", "[late]: 'most_points' bounds nothing without 'points_per_day'."),
        (DEADLINE, "grace_minutes = -1", "[late]: 'grace_minutes' is -1 but must be at least 0. Change it."),
        (DEADLINE, "points_per_day = 0", "[late]: 'points_per_day' is 0 but must be more than 0. Change it."),
        (DEADLINE, "points_per_day = '5'", "[late]: 'points_per_day' is the text '5' but must be a number."),
        (
            DEADLINE,
            "points_per_day = 5\nmost_points = 12.125",
            "[late]: 'most_points' is 12.125 but must be a number with at most two decimals. Change it.",
        ),
        (DEADLINE, "grace = 5", "[late] has 'grace', which means nothing here."),
        ("deadline = 2026-01-31T23:59:00\n", "grace_minutes = 5", "the deadline has no time zone."),
    ],
)
def test_a_wrong_rule_for_late_work_is_told(tmp_path: Path, deadline: str, table: str, sentence: str) -> None:
    with pytest.raises(CourseError) as caught:
        read_assignment(folder_with(tmp_path, f"{deadline}{SMALL}[late]\n{table}\n"))
    assert str(caught.value).startswith(f"assignment.toml: {sentence}")


def test_a_students_folder_has_any_name(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, SMALL.replace('id = "small"', 'id = "other"'))
    assert read_assignment(folder, public_only=True).public_only
    with pytest.raises(CourseError, match=r"id is 'other' but the folder is 'small'\. Make them the same\."):
        read_assignment(folder)


# --- our own assignment ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ours() -> Assignment:
    return read_assignment(OURS)


def test_our_rubric_is_the_courses(ours: Assignment) -> None:
    points = {item.id: item.points for item in ours.rubric}
    assert points == {
        "model": 35, "training": 15, "evaluation": 5, "visualization": 10, "report_quality": 5,
        "q6": 5, "q7": 5, "q8": 5, "q9": 5, "q10": 10,
    }  # fmt: skip
    assert ours.maximum == 100
    assert [part.points for part in ours.rubric[-1].parts] == [2.5] * 4
    assert "q10.class_token" in ours.mark_targets() and "q10" not in ours.mark_targets()
    assert ours.rubric[1].breakpoints == ((pytest.approx(1 / 6), 0), (0.6, 9), (0.8, 15))


def test_our_forbidden_parts_cost_what_the_course_says(ours: Assignment) -> None:
    costs = {rule.pattern: (rule.policy, rule.costs) for rule in ours.forbidden}
    for pattern in (
        "torchvision.models.vit*",
        "timm",
        "transformers",
        "vit_pytorch",
        "torch.nn.Transformer*",
    ):
        assert costs[pattern] == ("forbid", "model")
    assert costs["grader"] == ("forbid", "model")
    assert costs["torch.nn.MultiheadAttention"] == ("forbid", "Attention")
    assert costs["torch.nn.functional.scaled_dot_product_attention"] == ("flag", "Attention")


def test_our_policies_are_the_courses(ours: Assignment) -> None:
    assert {"fixed_positions", "overlapping_patches", "convolutional_stem"} <= ours.policies.keys()
    for name in ("fixed_positions", "overlapping_patches", "convolutional_stem"):
        assert ours.policies[name] == "flag"


def test_our_stubs_have_the_courses_names_in_order(ours: Assignment) -> None:
    assert [component.name for component in ours.components] == [
        "PreNorm", "FeedForward", "Attention", "Transformer", "ViT",
        "train_epoch", "evaluate", "plot_confusion_matrix", "plot_classwise_predictions",
    ]  # fmt: skip
    assert all("\n" not in component.signature for component in ours.components)


def test_the_students_copy_says_the_same(ours: Assignment, tmp_path: Path) -> None:
    text = public_settings((OURS / "assignment.toml").read_text(encoding="utf-8"), "assignment.toml")
    (tmp_path / "assignment.toml").write_text(text, encoding="utf-8")
    copy = read_assignment(tmp_path, public_only=True)
    assert "instructors only" not in text
    assert (copy.rubric, copy.components, copy.forbidden, copy.limits, copy.data, copy.files) == (
        ours.rubric, ours.components, ours.forbidden, ours.limits, ours.data, ours.files
    )  # fmt: skip
    assert copy.policies == ours.policies, "a public check may ask for a policy"


# --- what can be wrong ----------------------------------------------------------------------------------

WRONG = [
    (
        ("points = 12", "points = 35"),
        "rubric item 'model' has 35 points but its components add up to 12. Change one of them.",
    ),
    (
        ("Attention = 8\nevaluate = 4", "Attention = 8.3333333\nevaluate = 3.6666667"),
        "[[rubric]] 'model': 'Attention' in 'components' is 8.3333333 but must be a number with at most two "
        "decimals. Change it.",
    ),
    (
        ('by = "person"', 'by = "person"\nparts = [{ id = "a", title = "A", points = 1.005 }]'),
        "[[rubric]] 'essay': 'points' in 'parts number 1' is 1.005 but must be a number with at most two "
        "decimals. Change it.",
    ),
    (("stem =", "stemm ="), "[files] has 'stemm', which means nothing here. Did you mean 'stem'?"),
    (("[data]", "[datas]"), "the file has 'datas', which means nothing here. Did you mean 'data'?"),
    (
        ("call_seconds = 5", "call_second = 5"),
        "[limits] has 'call_second', which means nothing here. Did you mean 'call_seconds'?",
    ),
    (
        ("threshold = 0.6", "treshold = 0.6"),
        "[[rubric]] 'training' has 'treshold', which means nothing here. Did you mean 'threshold'?",
    ),
    (
        ('kind = "function"', 'color = "red"\nkind = "function"'),
        "[[component]] 'evaluate' has 'color', which means nothing here. It knows 'name', 'kind' "
        "and 'signature'.",
    ),
    (
        ("{ at = 0.6, points = 9 }", "{ at = 0.6, point = 9 }"),
        "[[rubric]] 'training' has 'point' in 'breakpoints number 2', which means nothing here. "
        "Did you mean 'points'?",
    ),
    (('title = "A small assignment"', ""), "the file lacks 'title'. Add it."),
    (('code = [".py"]', ""), "[files.required] lacks 'code'. Add it."),
    (('id = "essay"\n', ""), "[[rubric]] number 3 lacks 'id'. Add it."),
    (
        ("points = 12", 'points = "12"'),
        "[[rubric]] 'model': 'points' is the text '12' but must be a number. Change it.",
    ),
    (
        ("points = 12", "points = true"),
        "[[rubric]] 'model': 'points' is true but must be a number. Change it.",
    ),
    (("points = 12", "points = 0"), "[[rubric]] 'model': 'points' is 0 but must be more than 0. Change it."),
    (
        ("points = 12", "points = nan"),
        "[[rubric]] 'model': 'points' is nan but must be a finite number. Change it.",
    ),
    (
        ("Attention = 8", "Attention = -8"),
        "[[rubric]] 'model': 'Attention' in 'components' is -8 but must be at least 0. Change it.",
    ),
    (
        ("call_seconds = 5", "processes = 1.5"),
        "[limits]: 'processes' is 1.5 but must be a whole number. Change it.",
    ),
    (
        ('["dents", "rust", "scars", "welds"]', '["dents", 2]'),
        "[data]: entry 2 of 'classes' is 2 but must be text in quotes. Change it.",
    ),
    (
        ('["dents", "rust", "scars", "welds"]', '"dents"'),
        "[data]: 'classes' is the text 'dents' but must be a list in square brackets. Change it.",
    ),
    (
        ('["dents", "rust", "scars", "welds"]', "[]"),
        "[data]: 'classes' is missing. Name at least two.",
    ),
    (
        ('["dents", "rust", "scars", "welds"]', '["dents"]'),
        "[data]: 'classes' names one class. Name at least two.",
    ),
    (('"scars"', '"rust"'), "[data]: the class 'rust' is there twice. Remove one."),
    (
        ('"neu_cls"', '"datasets/neu.py"'),
        "[data]: 'datasets/neu.py' is not the name of a file in datasets/ without its '.py'. Change it.",
    ),
    (
        ('title = "Essay"', 'title = ""'),
        "[[rubric]] 'essay': 'title' is empty but must be some text. Change it.",
    ),
    (
        ('kind = "function"', 'kind = "funktion"'),
        "[[component]] 'evaluate': 'kind' is the text 'funktion', which is not a choice. Did you "
        "mean 'function'?",
    ),
    (
        ('"test_accuracy"', '"loss"'),
        "rubric item 'training' is measured by 'loss'. What is measured is 'test_accuracy'. Change it, or "
        "add a [[measure]].",
    ),
    (
        ('id = "small"', 'id = "a small one"'),
        "id 'a small one' becomes part of file names. Use only letters, digits, '_' and '-'.",
    ),
    (
        ('"{student_id}_homework"', '"homework"'),
        "[files]: 'stem' is 'homework'. It must have {student_id} once, and no other braces or slashes.",
    ),
    (
        ('"{student_id}_homework"', '"{student_id}_{name}"'),
        "[files]: 'stem' is '{student_id}_{name}'. It must have {student_id} once, and no other "
        "braces or slashes.",
    ),
    (
        ('code = [".py"]', 'code = ["py"]'),
        "[files]: 'py' of 'code' is not a small-letter suffix such as '.py'. Fix it.",
    ),
    (
        ('code = [".py"]', 'code = [".py"]\nreport = [".py"]'),
        "[files.required]: '.py' of 'report' is code. Ask for it as 'code'.",
    ),
    (
        ('name = "evaluate"', 'name = "Attention"'),
        "component 'Attention' is there twice. Remove or rename one.",
    ),
    (
        ('name = "evaluate"', 'name = "evaluate it"'),
        "component 'evaluate it' is not a Python name. Change it.",
    ),
    (
        ('name = "evaluate"', 'name = "submission"'),
        "a component cannot be called 'submission', which means the files as a whole. Rename it.",
    ),
    (
        ('signature = "model"', 'signature = "model,, x"'),
        "component 'evaluate': the signature 'model,, x' is not valid Python. Fix it.",
    ),
    (
        ("evaluate = 4", "evalute = 4"),
        "rubric item 'model' has points for 'evalute', which is not a component. Did you mean 'evaluate'?",
    ),
    (
        ("evaluate = 4\n", ""),
        "component 'evaluate' is in no rubric item. Give it points in a [rubric.components], or none: "
        "evaluate = 0.",
    ),
    (
        ('by = "person"', "[rubric.components]\nevaluate = 3"),
        "component 'evaluate' is in rubric items 'model' and 'essay'. Remove one.",
    ),
    (('id = "essay"', 'id = "model"'), "rubric item 'model' is there twice. Remove or rename one."),
    (
        ('by = "person"\n', ""),
        "rubric item 'essay' has nothing that its points come from. Give it exactly one of "
        "[rubric.components], a measure "
        '(measured = "test_accuracy") and by = "person".',
    ),
    (
        ('by = "person"', 'by = "person"\nmeasured = "test_accuracy"'),
        "rubric item 'essay' has two sources of points. Give it exactly one of [rubric.components], a "
        'measure (measured = "test_accuracy") and by = "person".',
    ),
    (
        ('by = "person"', 'by = "person"\nthreshold = 0.5'),
        "rubric item 'essay' has 'threshold' but is not measured. Remove it, or give it a measure.",
    ),
    (
        (
            'breakpoints = [{ at = "chance", points = 0 }, { at = 0.6, points = 9 }, { at = 0.8, '
            "points = 15 }]",
            "",
        ),
        "rubric item 'training' is measured but has no breakpoints. "
        'Add breakpoints = [{ at = "chance", points = 0 }, { at = 0.8, points = 15 }].',
    ),
    (
        ('by = "person"', 'by = "person"\nparts = [{ id = "a", title = "A", points = 2 }]'),
        "rubric item 'essay' has 3 points but its parts add up to 2. Change one of them.",
    ),
    (
        ('by = "person"', 'by = "person"\nparts = [{ id = "a.b", title = "A", points = 3 }]'),
        "rubric item 'essay': the part 'a.b' becomes part of file names. "
        "Use only letters, digits, '_' and '-'.",
    ),
    (
        (
            'by = "person"',
            'by = "person"\n'
            'parts = [{ id = "a", title = "A", points = 1 }, { id = "a", title = "B", points = 2 }]',
        ),
        "rubric item 'essay': the part 'a' is there twice. Remove or rename one.",
    ),
    (
        ("threshold = 0.6", 'parts = [{ id = "a", title = "A", points = 15 }]\nthreshold = 0.6'),
        "rubric item 'training' has 'parts' but no person marks it. Remove them, or give it by = \"person\".",
    ),
    (
        ("at = 0.6,", "at = 0.9,"),
        "rubric item 'training': the breakpoint at 0.8 comes after 0.9. Put them in ascending order.",
    ),
    (
        ("at = 0.6,", "at = 0.8,"),
        "rubric item 'training': the breakpoint at 0.8 comes after 0.8. Put them in ascending order.",
    ),
    (
        ("at = 0.6, points = 9", "at = 0.6, points = 16"),
        "rubric item 'training': the breakpoint at 0.8 gives 15 points, fewer than the 16 before it. "
        "Change one of them.",
    ),
    (
        ("at = 0.8, points = 15", "at = 0.8, points = 14"),
        "rubric item 'training' has 15 points but its last breakpoint gives 14. Change one of them.",
    ),
    (
        ('"chance"', '"guess"'),
        "rubric item 'training' has a breakpoint at 'guess'. "
        'Write a number from 0 to 1, "chance" for what guessing gets, or "95 % of reference" for a share of '
        "what the reference reaches.",
    ),
    (
        ("at = 0.8,", "at = 80,"),
        "rubric item 'training' has a breakpoint at '80'. "
        'Write a number from 0 to 1, "chance" for what guessing gets, or "95 % of reference" for a share of '
        "what the reference reaches.",
    ),
    (
        ('costs = "model"', 'costs = "modell"'),
        "the forbidden part 'timm' costs 'modell', which is neither a rubric item nor a component. "
        "Did you mean 'model'?",
    ),
    (
        ('"timm", ', '"torch nn", '),
        "the forbidden part 'torch nn' is not a dotted name such as 'torch.nn.Transformer*'. Fix it.",
    ),
    (
        ('"timm", "torch.nn.Transformer*"', '"timm", "timm"'),
        "the forbidden part 'timm' is there twice. Keep it in one [[forbidden]].",
    ),
    (
        ("[[forbidden]]", '[policies]\nstem = "flags"\n\n[[forbidden]]'),
        "[policies]: 'stem' is the text 'flags', which is not a choice. Did you mean 'flag'?",
    ),
    (
        ("[[forbidden]]", '[policies]\nstem = "never"\n\n[[forbidden]]'),
        "[policies]: 'stem' is the text 'never', which is not a choice. Choose 'allow', 'advise', 'flag' or "
        "'forbid'.",
    ),
    (
        ("[[forbidden]]", "[policies]\nstem = true\n\n[[forbidden]]"),
        "[policies]: 'stem' is true, which is not a choice. Choose 'allow', 'advise', 'flag' or 'forbid'.",
    ),
    (
        ("[[forbidden]]", '[policies.stem]\nis = "flag"\n\n[[forbidden]]'),
        "[policies]: 'stem' is a table, which is not a choice. Choose 'allow', 'advise', 'flag' or 'forbid'.",
    ),
    (
        ("[[forbidden]]", '[policies]\n"" = "flag"\n\n[[forbidden]]'),
        "[policies] has a key that is empty. Give it a name.",
    ),
    (
        ("[data]", 'policies = "flag"\n\n[data]'),
        "[files.required]: 'policies' is neither a list of suffixes nor a table with them. Write policies = "
        '[".csv"], or policies = { suffixes = [".csv"], stem = "{student_id}_policies" }.',
    ),
    (
        ("[files]", 'policies = "flag"\n\n[files]'),
        "'policies' is the text 'flag' but must be a table. Change it.",
    ),
    (
        ('title = "A small assignment"', 'title = "A"\ndeadline = 2026-01-31T23:59:00'),
        "the deadline has no time zone. Write it as in 2026-01-31T23:59:00+03:30.",
    ),
    (
        ('title = "A small assignment"', 'title = "A"\ndeadline = 2026-01-31'),
        "'deadline' is 2026-01-31 but must be a date and time with its zone, as in "
        "2026-01-31T23:59:00+03:30. "
        "Change it.",
    ),
    (
        ("[limits]", '[program]\nmodel = "evaluate"\n[limits]'),
        "[program]: model = 'evaluate' is not a component of kind class. There are: Attention.",
    ),
    (
        ("[limits]", '[program]\nfinal = "my model"\n[limits]'),
        "[program]: final = 'my model' is not the name of a variable. Change it.",
    ),
]


@pytest.mark.parametrize(("change", "sentence"), WRONG, ids=[sentence[:60] for _, sentence in WRONG])
def test_wrong_files(tmp_path: Path, change: tuple[str, str], sentence: str) -> None:
    assert fault_of(tmp_path, change) == f"assignment.toml: {sentence}"


def test_what_is_not_toml_is_reported_with_its_line(tmp_path: Path) -> None:
    message = fault_of(tmp_path, ('title = "A small assignment"', "title = "))
    assert message.startswith("assignment.toml:2: this is not valid TOML (Invalid value).")
    assert "(at line" not in message


def test_a_file_that_ends_too_early_is_not_toml(tmp_path: Path) -> None:
    message = fault_of(tmp_path, ('reason = "Write it yourself."', 'reason = """Write'))
    assert message.startswith(f"assignment.toml:{len(SMALL.splitlines())}: this is not valid TOML")
    assert "end of document" not in message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r"assignment\.toml does not exist\. Create it"):
        read_assignment(tmp_path)


def test_another_encoding_is_named(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "")
    (folder / "assignment.toml").write_bytes('title = "é"'.encode("latin-1"))
    with pytest.raises(CourseError, match=r"assignment\.toml is not UTF-8 text\. Save it again in UTF-8\."):
        read_assignment(folder)


# --- the digest -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "assignment.toml",
        "solution.py",
        "oracle.py",
        "checks/test_a.py",
        "checks/deep/b.py",
        "checks/expected.json",
        "oracle/deep/table.npz",
        "mistakes/c.py",
    ],
)
def test_the_digest_covers_what_grades_depend_on(tmp_path: Path, name: str) -> None:
    before = digest(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("one")
    first = digest(tmp_path)
    (tmp_path / name).write_text("two")
    assert len({before, first, digest(tmp_path)}) == 3


def test_the_digest_ignores_what_running_leaves_behind(tmp_path: Path) -> None:
    before = digest(tmp_path)
    (tmp_path / "checks" / "__pycache__").mkdir(parents=True)
    (tmp_path / "checks" / "__pycache__" / "test_a.pyc").write_text("x")
    (tmp_path / "checks" / "expected.json~").write_text("x")
    (tmp_path / "checks" / "#expected.json#").write_text("x")
    (tmp_path / "README.md").write_text("x")
    assert digest(tmp_path) == before


def test_the_students_digest_ignores_the_homework(tmp_path: Path) -> None:
    before = digest(tmp_path, public_only=True)
    (tmp_path / "homework.py").write_text("x")
    assert digest(tmp_path, public_only=True) == before
    (tmp_path / "test_public.py").write_text("x")
    assert digest(tmp_path, public_only=True) != before


def test_the_digest_tells_where_a_file_ends(tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "a.py").write_text("x")
    (tmp_path / "checks" / "b.py").write_text("y")
    before = digest(tmp_path)
    (tmp_path / "checks" / "b.py").rename(tmp_path / "checks" / "c.py")
    assert digest(tmp_path) != before


@pytest.mark.parametrize("place", ["", "[[component]]\nname = 'A'\n"])
def test_a_file_that_is_nested_too_deeply_is_told(tmp_path: Path, place: str) -> None:
    """It was told as a fault of the grader."""
    deep = f"x = {'[' * 5000}{']' * 5000}\n"
    (tmp_path / "assignment.toml").write_text(f'id = "a"\n{place}{deep}', encoding="utf-8")
    with pytest.raises(CourseError, match=r"assignment\.toml: its lists or tables are nested too deeply"):
        read_assignment(tmp_path)
