"""The assignment of the old book: of types that are the same at the commit that made it and today."""

from datetime import UTC, datetime
from pathlib import Path

from grader.domain.assignment import (
    Assignment,
    CheckSpec,
    Component,
    DataUse,
    RubricItem,
    RubricPart,
)
from grader.domain.assignment_files import SubmittedFile
from grader.domain.assignment_rules import ForbiddenRule, LatePolicy
from grader.domain.limits import Limits
from grader.domain.submission import Role

DUE = datetime(2026, 1, 31, 20, tzinfo=UTC)
CHECKS = (
    CheckSpec("oracle", "Attention", "It is attention.", weight=2),
    CheckSpec("shape", "Attention", "The shape stays."),
    CheckSpec("scale", "Attention", "Scores are scaled."),
    CheckSpec("logits", "ViT", "One number per class."),
    CheckSpec("learns", "train_epoch", "It trains."),
)
ASSIGNMENT = Assignment(
    id="small",
    title="Small",
    folder=Path("small"),
    file_stem="{student_id}_homework",
    files=(SubmittedFile(Role.CODE, (".py", ".ipynb")), SubmittedFile(Role.REPORT, (".pdf",))),
    components=(
        Component("Attention", "class", ""),
        Component("ViT", "class", ""),
        Component("train_epoch", "function", ""),
    ),
    checks=CHECKS,
    rubric=(
        RubricItem("model", "Model", 15, components={"Attention": 8, "ViT": 4, "train_epoch": 3}),
        RubricItem(
            "training", "Training", 15, measured="test_accuracy", threshold=0.6,
            breakpoints=((0.2, 0), (0.6, 9), (0.8, 15)),
        ),
        RubricItem("q6", "Question 6", 5),
        RubricItem(
            "q10", "Question 10", 5,
            parts=(RubricPart("patches", "Patches", 2.5), RubricPart("token", "Token", 2.5)),
        ),
    ),
    forbidden=(ForbiddenRule("timm", "forbid", "model", "Write it yourself."),),
    limits=Limits(),
    data=DataUse("real", "synthetic", ("a", "b", "c", "d", "e")),
    deadline=DUE,
    late=LatePolicy(points_per_day=2.0),
)  # fmt: skip
