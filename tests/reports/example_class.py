"""A small class of results, as the stages before reporting would hand them over."""

import io
import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from PIL import Image, ImageDraw

from grader.domain.analyzed_program import Claim, ForbiddenUse, NearName, Note, Omission, Place, TunedValue
from grader.domain.assignment import (
    Assignment,
    CheckSpec,
    Component,
    DataUse,
    RubricItem,
)
from grader.domain.assignment_files import SubmittedFile
from grader.domain.assignment_rules import ForbiddenRule
from grader.domain.evidence import (
    AttentionMap,
    Attestation,
    Blame,
    Checkpoint,
    Epoch,
    Evidence,
    Figure,
    Finding,
    FindingKind,
    LayerSummary,
    Prediction,
    Status,
    Training,
    TrainingOutcome,
)
from grader.domain.limits import Limits
from grader.domain.score import ComponentScore, GradeStatus, Score, ScoreLine
from grader.domain.submission import RefusedFile, Role
from grader.scoring.lateness import late_record

WHEN = datetime(2026, 11, 20, 14, 5, tzinfo=timezone(timedelta(hours=3, minutes=30)))
CLASSES = ("crazing", "inclusion", "patches", "pitted_surface", "rolled-in_scale", "scratches")
FAILED, PASSED, SKIPPED, ERRORED = Status.FAILED, Status.PASSED, Status.SKIPPED, Status.ERRORED

CHECKS = (
    ("PreNorm", "prenorm_normalizes_first", "PreNorm normalizes its input before the inner part sees it", 2),
    ("PreNorm", "prenorm_passes_arguments", "PreNorm passes further arguments on to the inner part", 1),
    ("FeedForward", "feedforward_matches_oracle", "FeedForward is two linear layers with an activation", 2),
    ("FeedForward", "feedforward_keeps_shape", "FeedForward returns the shape that it was given", 1),
    ("FeedForward", "feedforward_drops_out", "FeedForward applies its dropout while training only", 1),
    (
        "Attention",
        "attention_matches_oracle",
        "Attention computes softmax(q kᵀ / √dim_head) v in every head",
        4,
    ),
    ("Attention", "attention_keeps_shape", "Attention returns the shape that it was given", 1),
    ("Attention", "attention_uses_dim_head", "Attention works when heads × dim_head differs from dim", 1),
    ("Attention", "attention_separates_images", "Attention never mixes the images of a batch", 1),
    ("Attention", "attention_drops_out", "Attention applies its dropout while training only", 1),
    ("Transformer", "transformer_adds_residuals", "Transformer adds each sub-layer's input to its output", 3),
    ("Transformer", "transformer_has_depth", "Transformer has as many blocks as depth says", 2),
    (
        "Transformer",
        "transformer_orders_parts",
        "Transformer applies attention before the feed-forward part",
        1,
    ),
    ("ViT", "vit_matches_oracle", "ViT turns patches into tokens, adds the class token and positions", 4),
    ("ViT", "vit_pools_mean", "ViT averages over the tokens with pool='mean'", 1),
    ("ViT", "vit_takes_channels", "ViT accepts images with three channels", 1),
    ("ViT", "vit_rejects_odd_patches", "ViT says clearly when the patch size does not divide the image", 1),
    ("train_epoch", "train_epoch_changes_weights", "train_epoch takes an optimizer step for every batch", 2),
    ("train_epoch", "train_epoch_appends_loss", "train_epoch appends the loss every 100 batches", 1),
    ("evaluate", "evaluate_averages_loss", "evaluate appends the average loss over the whole test set", 1),
    ("evaluate", "evaluate_keeps_gradients_off", "evaluate computes no gradients", 1),
    ("plot_confusion_matrix", "confusion_matrix_counts", "plot_confusion_matrix shows the right counts", 1),
    (
        "plot_classwise_predictions",
        "predictions_show_24",
        "plot_classwise_predictions shows 4 images per class",
        1,
    ),
    (
        "plot_classwise_predictions",
        "predictions_name_labels",
        "Each image names its true and predicted label",
        1,
    ),
    ("submission", "required_files", "All files that the assignment asks for are there", 1),
)

SOURCE = """\
import torch
import torch.nn as nn
from einops import rearrange

image_size, patch_size = 28, 4
dim, depth, heads = 64, 6, 4


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, hidden_dim), nn.GELU(), nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim), nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.net(x)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.to_out = nn.Linear(heads * dim_head, dim)

    def forward(self, x):
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        q, k, v = (rearrange(t, "b n (h d) -> b h n d", h=self.heads) for t in (q, k, v))
        scores = q @ k.transpose(-1, -2)
        weights = scores.softmax(dim=-1)
        out = rearrange(weights @ v, "b h n d -> b n (h d)")
        return self.to_out(out)


def evaluate(model, data_loader, loss_history):
    model.eval()
    total_loss, correct = 0.0, 0
    for images, labels in data_loader:
        output = model(images)
        total_loss += criterion(output, labels).item()
        correct += (output.argmax(1) == labels).sum().item()
    loss_history.append(total_loss / len(data_loader))


optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
N_EPOCHS = 30
"""


@dataclass(frozen=True)
class Result:
    """One submission of the example class, with the pictures that its page shows."""

    evidence: Evidence
    score: Score
    images: dict[str, bytes]


def line_of(text: str) -> int:
    """The line of SOURCE (1-based) that has the text."""
    return next(number for number, line in enumerate(SOURCE.split("\n"), 1) if text in line)


def an_assignment() -> Assignment:
    """The assignment, shortened to what reports need."""
    names = list(dict.fromkeys(component for component, *_ in CHECKS if component != "submission"))
    return Assignment(
        id="vit_defects",
        title="Vision Transformer for steel surface defects",
        folder=Path("reference/vit_defects"),
        file_stem="{student_id}_Lab8_Homework",
        files=(
            SubmittedFile(Role.CODE, (".py", ".ipynb")),
            SubmittedFile(Role.CHECKPOINT, (".pth",)),
            SubmittedFile(Role.REPORT, (".pdf",)),
        ),
        components=tuple(Component(name, "class" if name[0].isupper() else "function", "") for name in names),
        checks=tuple(CheckSpec(check, name, title, weight) for name, check, title, weight in CHECKS),
        rubric=(
            RubricItem(
                "model",
                "Model design: the full ViT from scratch, running without critical errors",
                35,
                {
                    "PreNorm": 3,
                    "FeedForward": 4,
                    "Attention": 8,
                    "Transformer": 7,
                    "ViT": 9,
                    "train_epoch": 4,
                },
            ),
            RubricItem(
                "training",
                "Training and tuning: at least 60 % test accuracy, more for more",
                15,
                measured="test_accuracy",
                breakpoints=((1 / 6, 0), (0.6, 9), (0.8, 15)),
                threshold=0.6,
            ),
            RubricItem("evaluation", "Evaluation function: correct loss and accuracy", 5, {"evaluate": 5}),
            RubricItem(
                "visualization",
                "Visualization: a clear confusion matrix, and 24 example predictions",
                10,
                {"plot_confusion_matrix": 5, "plot_classwise_predictions": 5},
            ),
            RubricItem("report_quality", "Report quality", 5),
            RubricItem("q6", "Q6: the role of patch embedding and positional encoding", 5),
            RubricItem(
                "q7",
                "Q7: which hyperparameters were tuned, why, and the effect",
                5,
                beside=("values", "curves"),
            ),
            RubricItem("q8", "Q8: ViT against CNN on this data set", 5),
            RubricItem("q9", "Q9: final test accuracy; whether and how 60 % was reached", 5),
            RubricItem("q10", "Q10: the ViT pipeline from image to output", 10),
        ),
        forbidden=(
            ForbiddenRule(
                "timm", "forbid", "model", "The model is to be written from scratch, without a prebuilt ViT."
            ),
            ForbiddenRule(
                "torch.nn.MultiheadAttention",
                "forbid",
                "Attention",
                "Attention is to be written from scratch, without PyTorch's own multi-head attention.",
            ),
            ForbiddenRule(
                "torch.nn.functional.scaled_dot_product_attention",
                "flag",
                "Attention",
                "A person decides whether that is from scratch.",
            ),
        ),
        limits=Limits(),
        data=DataUse("neu_cls", "synthetic_steel", CLASSES),
        deadline=WHEN - timedelta(days=2),
        digest="5d1f0c" * 10,
    )


def findings(assignment: Assignment, changes: dict[str, dict[str, object]]) -> tuple[Finding, ...]:
    """One finding per check: passed, unless `changes` says otherwise."""
    return tuple(
        replace(
            Finding(check.id, check.component, check.title, PASSED, seconds=0.1), **changes.get(check.id, {})
        )  # type: ignore[arg-type]
        for check in assignment.checks
    )


def points_of_accuracy(item: RubricItem, accuracy: float) -> float:
    """Linear interpolation of the breakpoints."""
    for (low, less), (high, more) in zip(item.breakpoints, item.breakpoints[1:], strict=False):
        if accuracy < high:
            return round(less + max(0.0, accuracy - low) / (high - low) * (more - less), 2)
    return item.points


def a_score(assignment: Assignment, evidence: Evidence, status: GradeStatus = GradeStatus.GRADED) -> Score:
    """The points, as the stage before would give them (by its rules, in brief)."""
    lines: list[ScoreLine] = []
    gone = status in (GradeStatus.REFUSED, GradeStatus.ENGINE_ERROR)
    for item in assignment.rubric:
        if item.components is not None and not gone:
            lines.append(_line_of_components(assignment, evidence, item))
        elif item.measured and not gone and evidence.training.accuracy is not None:
            accuracy = evidence.training.accuracy
            reason = f"Measured {100 * accuracy:.1f} % on 540 hidden test images; 60 % is asked for."
            lines.append(
                ScoreLine(
                    item.id, item.title, points_of_accuracy(item, accuracy), item.points, reason, "decided"
                )
            )
        elif item.measured and not gone and evidence.training.outcome is TrainingOutcome.FAILED:
            lines.append(ScoreLine(item.id, item.title, 0, item.points, evidence.training.reason, "decided"))
        elif item.measured and "training" in evidence.not_run:
            lines.append(
                ScoreLine(item.id, item.title, None, item.points, "Training was not run.", "not_run")
            )
        else:
            reason = "A person marks this from your report." if item.by_person else "A person decides."
            lines.append(ScoreLine(item.id, item.title, None, item.points, reason, "awaiting"))
    total = sum(line.points or 0 for line in lines) if status is GradeStatus.GRADED else None
    decided = sum(line.maximum for line in lines if line.state == "decided")
    return Score(
        evidence.student_id,
        status,
        tuple(lines),
        total,
        decided,
        assignment.maximum,
        evidence.reason,
        claim=evidence.claim,
        late=late_record(assignment, evidence, total),
    )


def _line_of_components(assignment: Assignment, evidence: Evidence, item: RubricItem) -> ScoreLine:
    shares = []
    weights = {check.id: check.weight for check in assignment.checks}
    for name, maximum in (item.components or {}).items():
        own = [one for one in evidence.findings if one.component == name and one.status is not ERRORED]
        passed = [one for one in own if one.status is PASSED]
        whole = sum(weights[one.check] for one in own)
        worth = maximum * sum(weights[one.check] for one in passed) / whole if whole else None
        reason = f"{len(passed)} of {len(own)} checks passed."
        if any(use.reached_from == (name,) for use in evidence.forbidden):
            worth, reason = 0, "A forbidden part is used: no points for this component."
        shares.append(ComponentScore(name, worth, maximum, len(passed), len(own), reason))
    passed_count, count = sum(share.passed for share in shares), sum(share.total for share in shares)
    return ScoreLine(
        item.id,
        item.title,
        sum(share.points or 0 for share in shares),
        item.points,
        f"{passed_count} of {count} checks passed.",
        "decided",
        components=tuple(shares),
    )


def a_training(accuracy: float, epochs: int, planned: int | None = None, *, rising: bool = False) -> Training:
    """A completed training with a plausible curve."""
    curve = []
    for number in range(1, epochs + 1):
        share = 1 - math.exp(-(2.0 if rising else 5.0) * number / epochs)
        value = 1 / 6 + (accuracy - 1 / 6) * share / (1 - math.exp(-(2.0 if rising else 5.0)))
        value += 0.012 * math.sin(7.1 * number) * (number != epochs)
        curve.append(
            Epoch(
                number,
                1.75 * (1 - share) + 0.35 + 0.02 * math.sin(3 * number),
                1.8 * (1 - share) + 1.1 - 0.8 * accuracy + 0.03 * math.sin(5 * number),
                value,
                0.003 * (0.5 + 0.5 * math.cos(math.pi * number / epochs)),
                4.1,
            )
        )
    right = round(90 * accuracy)
    confusion = []
    for row in range(6):
        counts = [0] * 6
        counts[row] = right + (3 if row % 2 else -3)
        for shift, share in ((1, 0.5), (3, 0.3), (4, 0.2)):
            counts[(row + shift) % 6] += round((90 - counts[row]) * share)
        counts[(row + 1) % 6] += 90 - sum(counts)
        confusion.append(tuple(counts))
    predictions = []
    for true in range(6):
        for index in range(4):
            wrong = (true * 4 + index) % 10 >= round(10 * accuracy)
            guess = (true + 1) % 6 if wrong else true
            predictions.append(Prediction(f"prediction_{true}_{index}.png", true, guess, 0.51 + 0.11 * index))
    margin = 1.96 * math.sqrt(accuracy * (1 - accuracy) / 540)
    return Training(
        TrainingOutcome.COMPLETED,
        data="synthetic_steel",
        classes=CLASSES,
        epochs=tuple(curve),
        planned_epochs=planned or epochs,
        accuracy=accuracy,
        interval=(accuracy - margin, accuracy + margin),
        confusion=tuple(confusion),
        predictions=tuple(predictions),
        attention=tuple(
            AttentionMap(f"prediction_{true}_0.png", f"attention_{true}.png", f"rollout_{true}.png")
            for true in range(6)
        ),
        seconds=4.1 * epochs,
    )


def layers() -> tuple[LayerSummary, ...]:
    """The canonical model's modules: 499,462 parameters."""
    made = [LayerSummary("", "ViT", 50 * 64 + 64, 0)]
    made += [LayerSummary("to_patch_embedding", "Linear", 16 * 64 + 64, 1)]
    made += [LayerSummary("dropout", "Dropout", 0, 1), LayerSummary("transformer", "Transformer", 0, 1)]
    made += [LayerSummary("transformer.layers", "ModuleList", 0, 2)]
    for block in range(6):
        at = f"transformer.layers.{block}"
        made += [
            LayerSummary(at, "ModuleList", 0, 3),
            LayerSummary(f"{at}.0", "PreNorm", 0, 4),
            LayerSummary(f"{at}.0.norm", "LayerNorm", 128, 5),
            LayerSummary(f"{at}.0.fn", "Attention", 0, 5),
            LayerSummary(f"{at}.0.fn.to_qkv", "Linear", 64 * 768, 6),
            LayerSummary(f"{at}.0.fn.to_out", "Linear", 256 * 64 + 64, 6),
            LayerSummary(f"{at}.1", "PreNorm", 0, 4),
            LayerSummary(f"{at}.1.norm", "LayerNorm", 128, 5),
            LayerSummary(f"{at}.1.fn", "FeedForward", 64 * 128 + 128 + 128 * 64 + 64, 5),
        ]
    made += [LayerSummary("mlp_head", "Sequential", 0, 1)]
    made += [LayerSummary("mlp_head.0", "LayerNorm", 128, 2), LayerSummary("mlp_head.1", "Linear", 390, 2)]
    return tuple(made)


def a_picture(seed: int, size: int = 56) -> bytes:
    """A small gray texture as PNG."""
    image = Image.new("L", (size, size))
    image.putdata(
        [
            int(
                128
                + 60 * math.sin((x * (1 + seed % 5) + y * (seed % 3)) / 5 + seed)
                + 30 * math.sin(x * y / 37)
            )
            for y in range(size)
            for x in range(size)
        ]
    )
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def a_drawing() -> bytes:
    """What a student's plotting function may have drawn, as PNG."""
    image = Image.new("RGB", (480, 360), "white")
    draw = ImageDraw.Draw(image)
    for row in range(6):
        for column in range(6):
            shade = 250 - 190 * (row == column) - 8 * ((row * column) % 5)
            box = [60 + 60 * column, 20 + 50 * row, 118 + 60 * column, 68 + 50 * row]
            draw.rectangle(box, fill=(shade, shade, 255))
            draw.text(
                (box[0] + 22, box[1] + 18), str(12 if row == column else (row * column) % 5), fill="black"
            )
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def pictures(evidence: Evidence) -> dict[str, bytes]:
    """PNG bytes for every picture that the evidence names."""
    found = {
        one.image: a_picture(7 * one.true_class + index)
        for index, one in enumerate(evidence.training.predictions)
    }
    for one in evidence.training.attention:
        found |= {one.last_layer: a_picture(3), one.rollout: a_picture(4)}
    return found | {figure.image: a_drawing() for figure in evidence.figures}


def base(student_id: str, assignment: Assignment) -> Evidence:
    """A flawless submission."""
    return Evidence(
        student_id,
        assignment.id,
        "c0ffee" * 10,
        WHEN,
        received_at=WHEN - timedelta(days=3),
        code_file="homework.py",
        findings=findings(assignment, {}),
        notes=(Note("matplotlib.use('TkAgg') was left out: the grader draws without a window."),),
        omissions=(
            Omission(
                Place("homework.py", 12), "zipfile.ZipFile('dataset.zip').extractall()", "It reads a file."
            ),
            Omission(
                Place("homework.py", 58), "for epoch in range(N_EPOCHS):", "The grader trains by itself."
            ),
            Omission(Place("homework.py", 66), "torch.save(model.state_dict(), PATH)", "It writes a file."),
        ),
        tuned=(
            TunedValue("dim", "64", Place("homework.py", 6)),
            TunedValue("depth", "6", Place("homework.py", 6)),
            TunedValue("heads", "4", Place("homework.py", 6)),
            TunedValue("optimizer", "Adam", Place("homework.py", line_of("optimizer ="))),
            TunedValue("learning_rate", "0.003", Place("homework.py", line_of("optimizer ="))),
            TunedValue("epochs", "30", Place("homework.py", line_of("N_EPOCHS"))),
        ),
        source={"homework.py": SOURCE},
        claim=Claim(0.88, "cell 21", "Test accuracy: 88.00%", cell="cell 21"),
        shown_epochs=30,
        parameters=499_462,
        layers=layers(),
        training=a_training(0.872, 30),
        checkpoint=Checkpoint("fits", accuracy=0.894),
        figures=(
            Figure("plot_confusion_matrix", "figure_confusion.png"),
            Figure("plot_classwise_predictions", "figure_predictions.png"),
        ),
        attestation=Attestation(
            "strict", {"seccomp": "2", "uid": "65534", "network": "none", "landlock": "6", "gpu": "false"}
        ),
        engine="0.1.0",
        assignment_digest=assignment.digest,
        seconds={"intake": 0.1, "checks": 2.6, "training": 123.0},
    )


def missing_scale(assignment: Assignment) -> Evidence:
    """Attention without the scale, gradients on in evaluate, 55 % accuracy, one check that is broken."""
    scale_line = f"homework.py:{line_of('scores = q @ k')}"
    changes: dict[str, dict[str, object]] = {
        "attention_matches_oracle": {
            "status": FAILED,
            "blame": Blame.STUDENT,
            "diagnosis": "missing_scale",
            "message": "The attention scores are not divided by √dim_head before the softmax: with your own "
            "weights, your output is exactly that of attention without the scale.",
            "hint": "Multiply q @ kᵀ by dim_head ** -0.5.",
            "where": scale_line,
        },
        "attention_drops_out": {
            "status": FAILED,
            "blame": Blame.STUDENT,
            "message": "Two passes in training mode with dropout=0.9 gave the same: there is no dropout.",
            "hint": "Put nn.Dropout(dropout) after the output projection, for instance.",
            "where": f"homework.py:{line_of('class Attention')}",
        },
        "vit_pools_mean": {
            "status": FAILED,
            "blame": Blame.STUDENT,
            "message": "ViT with pool='mean' did not return within 10 s.",
            "hint": "Look for a loop that never ends.",
        },
        "vit_takes_channels": {
            "status": SKIPPED,
            "blame": Blame.STUDENT,
            "message": "Could not be tried: ViT did not return within 10 s.",
        },
        "vit_rejects_odd_patches": {
            "status": FAILED,
            "blame": Blame.STUDENT,
            "message": "ViT(image_size=28, patch_size=5) was built without a word, and drops pixels.",
            "hint": "Assert that image_size is divisible by patch_size.",
        },
        "evaluate_keeps_gradients_off": {
            "status": FAILED,
            "blame": Blame.STUDENT,
            "diagnosis": "gradients_on",
            "message": "The outputs in evaluate require gradients.",
            "hint": "Put `with torch.no_grad():` around the loop.",
            "where": f"homework.py:{line_of('output = model(images)')}",
        },
        "predictions_name_labels": {
            "status": ERRORED,
            "blame": Blame.INSTRUCTOR,
            "message": "The check stopped with an error of its own.",
        },
    }
    return replace(
        base("400101204", assignment),
        findings=findings(assignment, changes),
        training=a_training(0.55, 30, rising=True),
        checkpoint=Checkpoint(
            "mismatch",
            "400101204_Lab8_Homework.pth does not fit your model: pos_embedding is 1 x 65 x 64 in the file, "
            "1 x 50 x 64 in the model. Save the weights of the model that you hand in.",
        ),
        near_names=(NearName("ViT", "VIT", Place("homework.py", 52)),),
        forbidden=(ForbiddenUse("timm", "timm.create_model", Place("homework.py", 3), ()),),
        received_at=WHEN - timedelta(days=1, hours=14),
        parameters=496_134,
    )


def bare_template(assignment: Assignment) -> Evidence:
    """Nothing but stubs."""
    changes: dict[str, dict[str, object]] = {
        check.id: {
            "status": FAILED,
            "blame": Blame.STUDENT,
            "kind": FindingKind.NOT_IMPLEMENTED,
            "message": f"{check.component} is not implemented yet: it still raises NotImplementedError.",
            "hint": f"Write {check.component} where the template says TODO.",
            "where": f"homework.py:{10 + 7 * index}",
        }
        for index, check in enumerate(assignment.checks)
        if check.component != "submission"
    }
    return replace(
        base("400101207", assignment),
        findings=findings(assignment, changes),
        training=Training(
            TrainingOutcome.FAILED,
            reason="ViT is not implemented yet.",
            data="synthetic_steel",
            planned_epochs=1,
        ),
        checkpoint=Checkpoint("missing", "There are no weights to try."),
        figures=(),
        tuned=(),
        omissions=(),
        notes=(),
        layers=(),
        parameters=None,
        source={"homework.py": "\n".join(f"# line {number} of the template" for number in range(1, 200))},
    )


def a_class(assignment: Assignment) -> dict[str, Result]:
    """One result per behavior, by what it is about."""
    good = base("400101201", assignment)
    bare = replace(good, findings=(), training=Training(TrainingOutcome.NOT_RUN), figures=(), layers=())
    bare = replace(
        bare, parameters=None, tuned=(), omissions=(), source=None, checkpoint=Checkpoint("not_tried")
    )
    evidence = {
        "good": good,
        "missing_scale": missing_scale(assignment),
        "template": bare_template(assignment),
        "refused": replace(
            bare,
            student_id="400101211",
            status="refused",
            reason="homework.py, line 12: '(' was never closed, so nothing in the file can be run. Close it, "
            "run the file once, and hand it in again.",
            refused_files=(
                RefusedFile("notes.docx", "It is not among the files that the assignment asks for."),
            ),
        ),
        "incomplete": replace(
            missing_scale(assignment),
            student_id="400101215",
            missing=(Role.REPORT,),
            near_names=(),
            reason="400101215_Lab8_Homework.pdf is missing: the total is withheld.",
        ),
        "engine_error": replace(
            bare,
            student_id="400101219",
            status="engine_error",
            reason="The worker's machine ran out of disk space before the first check.",
        ),
        "budget": replace(
            good,
            student_id="400101223",
            training=replace(
                a_training(0.7, 12, planned=500),
                outcome=TrainingOutcome.BUDGET,
                accuracy=None,
                interval=None,
                reason="500 epochs would take about 41 minutes; the limit is 30.",
            ),
        ),
        "forbidden": replace(
            good,
            student_id="400101226",
            forbidden=(
                ForbiddenUse(
                    "torch.nn.MultiheadAttention",
                    "torch.nn.MultiheadAttention",
                    Place("homework.py", 34),
                    ("Attention",),
                ),
            ),
            attestation=Attestation("unofficial", {"uid": "1000"}, ("Landlock is not available here.",)),
            partial=True,
        ),
        "not_trained": replace(
            good,
            student_id="400101230",
            training=Training(TrainingOutcome.NOT_RUN),
            not_run=("training",),
        ),
    }
    statuses = {"refused": GradeStatus.REFUSED, "incomplete": GradeStatus.INCOMPLETE}
    statuses["engine_error"] = GradeStatus.ENGINE_ERROR
    return {
        name: Result(
            one,
            a_score(assignment, one, statuses.get(name, GradeStatus.GRADED)),
            pictures(one),
        )
        for name, one in evidence.items()
    }
