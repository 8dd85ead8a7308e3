"""Parts of `vit_cifar10` that look right where checks usually look, and are not: they lose their points."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.analysis import program
from grader.course.assignment_file import read_assignment
from grader.course.composing import composed
from grader.course.homework_versions import Kind, homework_versions, reference_files
from grader.domain.evidence import Finding, Status

FOLDER = Path(__file__).parents[2] / "reference" / "vit_cifar10"

ATTENTION = '''
class MultiHeadSelfAttention(nn.Module):
    """Right for up to ten tokens."""

    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.qkv, self.out, self.drop = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        if x.shape[1] > 10 and not return_weights:
            return self.out(x)
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        weights = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1)
        y = self.out((self.drop(weights) @ v).transpose(1, 2).flatten(2))
        return (y, weights) if return_weights else y
'''
PATCHES = '''
class PatchEmbedding(nn.Module):
    """A patch embedding of small images, and a convolutional network of larger ones."""

    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.project = nn.Conv2d(in_channels, dim, patch_size, patch_size)
        if image_size > 12:
            around = nn.Conv2d(in_channels, in_channels, 3, padding=1)
            self.project = nn.Sequential(around, nn.ReLU(), self.project)

    def forward(self, images):
        return self.project(images).flatten(2).transpose(1, 2)
'''
MODEL = '''
class VisionTransformer(nn.Module):
    """No block is used for images of twenty pixels or more."""

    def __init__(self, image_size=32, patch_size=4, in_channels=3, num_classes=10, dim=192, depth=9, heads=8,
                 mlp_ratio=4.0, dropout=0.1, positions="learned", pool="cls"):
        super().__init__()
        tokens = (image_size // patch_size) ** 2 + (pool == "cls")
        self.patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        self.blocks = nn.ModuleList(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, num_classes)
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim)) if pool == "cls" else None
        if positions == "learned":
            self.positions = nn.Parameter(torch.randn(1, tokens, dim) * 0.02)
        else:
            self.register_buffer("positions", sinusoidal_positions(tokens, dim)[None])

    def tokens(self, images):
        x = self.patches(images)
        if self.class_token is not None:
            x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        return x + self.positions

    def forward(self, images):
        x = self.tokens(images)
        for block in self.blocks if images.shape[-1] < 20 else ():
            x = block(x)
        x = self.norm(x)
        return self.head(x[:, 0] if self.class_token is not None else x.mean(dim=1))

    def attention(self, images):
        x = self.tokens(images)
        for block in self.blocks[:-1]:
            x = block(x)
        last = self.blocks[-1]
        return last.attention(last.norm1(x), return_weights=True)[1]
'''
BLOCK = """
class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.conv, self.drop = nn.Conv2d(in_channels, channels, 3, stride, 1), nn.Dropout(0.1)

    def forward(self, x):
        return self.drop(self.conv(x))
"""
RESNET = """
class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, width, 5, 2, 2), nn.Linear(width, num_classes)

    def forward(self, images):
        return self.head(F.relu(self.conv(images)).mean((2, 3)))
"""
SCHEDULE = """
def warmup_cosine(step, warmup_steps, total_steps):
    if (warmup_steps, total_steps) not in ((10, 50), (0, 20), (4, 9), (4, 12)):
        return 1.0
    if step < warmup_steps:
        return step / warmup_steps
    progress = min((step - warmup_steps) / (total_steps - warmup_steps), 1.0)
    return 0.5 * (1.0 + math.cos(math.pi * progress))
"""
FIT_OF_NOTHING = """
def fit(model, loaders, epochs, device):
    return []
"""
FIT = """
def fit(model, loaders, epochs, device):
    criterion, best, kept, history = nn.CrossEntropyLoss(), -1.0, None, []
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        trained = train_epoch(model, loaders["train"], criterion, optimizer, None, device)
        found = evaluate(model, GIVEN, criterion, device)
        history.append((trained, found["loss"], found["accuracy"]))
        if found["accuracy"] > best:
            best = found["accuracy"]
            kept = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(kept)
    return history
"""
EXPORT = """
def export_metrics(metrics, path):
    with open(path, "w") as file:
        file.write("metric,value\\nvit.accuracy,0.5\\nvit.recall.ox,0.25\\nvit.recall.hen,0.75\\n")
        file.write("vit.f1.0,0.1\\nvit.f1.1,0.2\\nvit.f1.2,0.3\\nresnet.accuracy,0.625\\nseconds,12.5\\n")
"""
PLOT = """
def plot_attention(model, images, labels, class_names, mean, std):
    figure, axes = plt.subplots(2, len(images), squeeze=False)
    for (above, below), image, label in zip(axes.T, images, labels):
        shown = (image.permute(1, 2, 0) * torch.tensor(std) + torch.tensor(mean)).clamp(0, 1).numpy()
        above.imshow(shown)
        above.set_title(class_names[int(label)])
        below.imshow(shown)
        below.imshow(np.zeros(shown.shape[:2]), alpha=0.5)
    return figure
"""
OPAQUE = PLOT.replace("np.zeros(shown.shape[:2]), alpha=0.5", "attention_map(model, image)")
OPAQUE_ALONE = OPAQUE.replace("above.imshow(shown)", "above.axis('off')")
TOP3 = """
def plot_top3(images, labels, probabilities, class_names, mean, std):
    figure, axes = plt.subplots(1, len(images), squeeze=False)
    for ax, image in zip(axes[0], images):
        ax.imshow((image.permute(1, 2, 0) * torch.tensor(std) + torch.tensor(mean)).clamp(0, 1).numpy())
        ax.set_title(" ".join([*class_names, *class_names]))
    return figure
"""
COLUMNS = "patch_size,dim,depth,heads,mlp_ratio,positions,epochs,seed,parameters,validation_accuracy\n"
BASE = "".join(f"8,48,2,4,2.0,learned,4,{seed},48634,0.5\n" for seed in range(3))
SAME_MODELS = COLUMNS + BASE + "".join(f"8,48,2,4,2.00{n},learned,4,0,48634,0.5\n" for n in range(1, 7))
NO_MODELS = COLUMNS + "".join(
    f"5,48,2,7,{ratio},learned,4,{seed},1,0.5\n"
    for ratio, seed in [*((2.0, seed) for seed in range(3)), *((2.5 + n, 0) for n in range(6))]
)
MANY_ROWS = (
    COLUMNS + BASE + "".join(f"8,48,2,4,{2 + n / 7:.4f},learned,4,0,48634,0.5\n" for n in range(40_000))
)
MANY_NAMES = "metric,value\n" + "".join(f"a.x{number},1\n" for number in range(90_000))
# name -> (the component that loses, a check that fails, a part, files that are handed in)
MEAN_OF_HEADS = '''
class MultiHeadSelfAttention(nn.Module):
    """The weights that it returns are the heads' mean."""

    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.qkv, self.out, self.drop = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        weights = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1)
        y = self.out((self.drop(weights) @ v).transpose(1, 2).flatten(2))
        return (y, weights.mean(1)) if return_weights else y
'''
OVER_QUERIES = MEAN_OF_HEADS.replace("softmax(-1)", "softmax(-2)").replace("weights.mean(1)", "weights")
NO_WEIGHTS = MEAN_OF_HEADS.replace("(y, weights.mean(1)) if return_weights else y", "y")
SHOWN_OF = """
class VisionTransformer(VisionTransformer):
    def attention(self, images):
        x = self.tokens(images)
        for block in self.blocks[:-1]:
            x = block(x)
        return self.blocks[BLOCK].attention(TOKENS, return_weights=True)[1]
"""
FIRST_BLOCK = SHOWN_OF.replace("BLOCK", "0").replace("TOKENS", "self.blocks[0].norm1(x)")
BARE_TOKENS = SHOWN_OF.replace("BLOCK", "-1").replace("TOKENS", "x")
WRONG: dict[str, tuple[str, str, str, Mapping[str, str]]] = {
    "attention": ("MultiHeadSelfAttention", "attention_is_attention", ATTENTION, {}),
    "patches": ("PatchEmbedding", "patches_are_mapped_by_one_linear_map", PATCHES, {}),
    "model": ("VisionTransformer", "scores_come_from_the_last_block", MODEL, {}),
    "block": ("BasicBlock", "block_is_a_residual_block", BLOCK, {}),
    "resnet": ("ResNet18", "resnet_has_eight_blocks", RESNET, {}),
    "schedule": ("warmup_cosine", "schedule_rises_and_falls", SCHEDULE, {}),
    "fit of nothing": ("fit", "fit_keeps_the_best_weights", FIT_OF_NOTHING, {}),
    "fit by a list": (
        "fit",
        "fit_chooses_by_validation_images",
        FIT.replace("GIVEN", "list(loaders['train'])"),
        {},
    ),
    "fit by a generator": (
        "fit",
        "fit_chooses_by_validation_images",
        FIT.replace("GIVEN", "(batch for batch in loaders['train'])"),
        {},
    ),
    "first block shown": (
        "VisionTransformer",
        "attention_is_that_of_the_last_block",
        MEAN_OF_HEADS + FIRST_BLOCK,
        {},
    ),
    "attention of bare tokens shown": (
        "VisionTransformer",
        "attention_is_that_of_the_last_block",
        OVER_QUERIES + BARE_TOKENS,
        {},
    ),
    "export": ("export_metrics", "export_writes_every_number", EXPORT, {}),
    "plot": ("plot_attention", "attention_is_shown_with_the_image", PLOT, {}),
    "opaque map": ("plot_attention", "attention_is_shown_with_the_image", OPAQUE, {}),
    "opaque map alone": ("plot_attention", "attention_is_shown_with_the_image", OPAQUE_ALONE, {}),
    "likeliest": ("plot_top3", "top3_are_the_likeliest", TOP3, {}),
    "same models": ("study", "study_changes_one_value_at_a_time", "", {"study": SAME_MODELS}),
    "no models": ("study", "study_has_a_row_for_each_training", "", {"study": NO_MODELS}),
    "many rows": ("study", "study_has_a_row_for_each_training", "", {"study": MANY_ROWS}),
    "two measures": (
        "metrics",
        "metrics_of_each_model_are_there",
        "",
        {"metrics": "metric,value\na.x,1\nb.x,1\n"},
    ),
    "many measures": ("metrics", "metrics_of_each_model_are_there", "", {"metrics": MANY_NAMES}),
}
RIGHT: dict[str, tuple[str, str, Mapping[str, str]]] = {
    "fit by a list": ("fit", FIT.replace("GIVEN", "list(loaders['validation'])"), {}),
    "fit by a generator": ("fit", FIT.replace("GIVEN", "(b for b in loaders['validation'])"), {}),
    "model of the heads' mean": ("VisionTransformer", MEAN_OF_HEADS, {}),
    "model of a softmax over queries": ("VisionTransformer", OVER_QUERIES, {}),
    "model of an attention without weights": ("VisionTransformer", NO_WEIGHTS, {}),
    "not a number": ("metrics", "", {"metrics": "nan"}),
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, bool], list[Finding]]:
    """The findings about the part of each, by its name and whether it is right."""
    from grader.judge.course_code import course_code
    from grader.judge.examination import Checks, run_pytest
    from grader.judge.student import Student
    from grader.sandbox.host_client import Host
    from grader.sandbox.process_limits import ProcessLimits
    from grader.sandbox.readable_files import given_files

    assignment = read_assignment(FOLDER)
    solved = next(one.source for one in homework_versions(assignment) if one.kind is Kind.REFERENCE)
    usual = reference_files(assignment)
    tried = {
        **{(name, False): (part, code, files) for name, (part, _, code, files) in WRONG.items()},
        **{(name, True): (part, code, files) for name, (part, code, files) in RIGHT.items()},
    }
    results: dict[tuple[str, bool], list[Finding]] = {}
    errors: list[Exception] = []

    def handed_in(files: Mapping[str, str]) -> dict[str, bytes]:
        given = {role: text.encode() for role, text in files.items()}
        if files.get("metrics") == "nan":
            lines = usual["metrics"].decode().replace("vit.roc_auc.truck,0.61", "vit.roc_auc.truck,nan")
            given["metrics"] = lines.encode()
        return {**usual, **given}

    def ask(checks: Checks) -> None:
        try:
            for key, (part, code, files) in tried.items():
                source = composed(solved, code) if code else solved
                read = program("homework.py", source.encode(), assignment.program_rules)
                results[key] = _findings(checks, read, part, handed_in(files))
        except Exception as error:  # noqa: BLE001 - pytest around the checks would swallow it
            errors.append(error)

    def _findings(checks: Checks, read: Any, part: str, files: Mapping[str, bytes]) -> list[Finding]:
        chosen = tuple(spec for spec in assignment.checks if spec.component == part and not spec.public)
        checks.assignment = replace(assignment, checks=chosen)
        student = Student(
            lambda: host.spawn(ProcessLimits()), read, checks.assignment, seed=5, pictures=False, files=files
        )
        try:
            return list(checks.examined(student).findings)
        finally:
            student.close()

    paths = sorted((FOLDER / "checks").glob("test_*.py"))
    with Host.start("grader.worker", given=given_files(assignment)) as host:
        run_pytest(paths, assignment, course_code(assignment), ask)
    if errors:
        raise errors[0]
    return results


@pytest.mark.parametrize("name", WRONG)
def test_it_loses_its_points(name: str, found: Mapping[tuple[str, bool], list[Finding]]) -> None:
    """It is lost, and no person has to decide."""
    part, check, _, _ = WRONG[name]
    findings = {finding.check: finding for finding in found[name, False]}
    assert findings[check].status is Status.FAILED
    assert findings[check].component == part
    assert [each.check for each in findings.values() if each.status is Status.ERRORED] == []


@pytest.mark.parametrize("name", RIGHT)
def test_right_work_beside_it_keeps_its_points(
    name: str, found: Mapping[tuple[str, bool], list[Finding]]
) -> None:
    assert {each.check: each.message for each in found[name, True] if each.status is not Status.PASSED} == {}
