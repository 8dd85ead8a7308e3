"""Points of `vit_defects` that nothing was done for: a part that only looks done loses a central check."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from grader.course.composing import composed
from grader.course.reference_solution import solved_source
from grader.domain.evidence import Finding, Status
from grader.validation.mutation_report import is_broken
from tests.checks.tried_parts import findings_in
from tests.warm_hosts import WarmHosts

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "reference" / "vit_defects"

FORWARD = """
class {part}({part}):
    def forward(self, {argument}):
        right = super().forward({argument})
        {lines}
"""
EPOCH = """
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    before = {{name: value.clone() for name, value in model.state_dict().items()}}
    for images, labels in data_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        loss_history.append(loss.item())
        print(loss.item())
        {within}
    {after}
"""
EVALUATE = """
def evaluate(model, data_loader, loss_history):
    model.eval()
    total, correct, count, last = 0.0, 0, 0, 0.0
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images)
            last = F.cross_entropy(scores, labels, reduction="sum").item()
            total, count = total + last, count + len(labels)
            correct += (scores.argmax(dim=1) == labels).sum().item()
            {within}
    loss_history.append({appended})
    print(f"loss {{total / count:.4f}}, accuracy {{correct / count:.4f}}")
"""
AROUND = """
class ViT(ViT):
    def forward(self, img):
        tokens = self.patch_projection(self.to_patches(img))
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        tokens = torch.cat([class_tokens, tokens], dim=1) + self.positions
        encoded = {encoded}
        return self.head(encoded[:, 0] if self.pool == "cls" else {mean})
"""
MATRIX = """
def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    counts = torch.zeros(len(class_names), len(class_names), dtype=torch.int64)
    with torch.no_grad():
        for images, labels in data_loader:
            for label, predicted in zip(labels, model(images).argmax(dim=1), strict=True):
                counts[label, predicted] += 1
    names = {"xticklabels": class_names, "yticklabels": class_names}
    sns.heatmap(counts, annot=torch.full_like(counts, 99), fmt="d", **names)
    plt.xlabel("predicted")
    plt.ylabel("true")
    plt.show()
"""


def forward(part: str, lines: str, argument: str = "x") -> tuple[str, str]:
    """A part whose right result is changed."""
    return part, FORWARD.format(part=part, argument=argument, lines=lines)


PRENORM = """
class PreNorm(PreNorm):
    def forward(self, x, **kwargs):
        return self.fn(x if self.training else self.norm(x), **kwargs)
"""
THREE_BLOCKS = """
class Transformer(Transformer):
    def forward(self, x):
        for attention, feed_forward in self.blocks[:3]:
            x = x + attention(x)
            x = x + feed_forward(x)
        return x
"""
UNLEARNED = """
class FeedForward(FeedForward):
    def forward(self, x):
        unlearned = self.net(x).detach()
        return unlearned + 0 * sum(each.sum() for each in self.parameters()) + 0 * x
"""
CHANGED_IMAGES = """
class ViT(ViT):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.side = kwargs["patch_size"]

    def forward(self, img):
        return super().forward({changed})
"""
GRAY = "F.interpolate(F.avg_pool2d(img, self.side), scale_factor=self.side)"
FOUR_ROWS = "torch.cat([img[:, :, : 4 * self.side], 0 * img[:, :, 4 * self.side :]], dim=2)"
MEAN = "right.mean(dim=1, keepdim=True).expand_as(right)"
VALUES = "self.to_out(self.to_qkv(x).chunk(3, dim=-1)[2])"
ENCODED = "self.transformer(self.dropout(tokens))"
ENCODED_MEAN = "encoded.mean(dim=1)"
ATTENTION, VIT = "attention_matches_oracle", "vit_pools"

# name -> (the part, what is defined, a check that has to fail)
ATTACKS: dict[str, tuple[tuple[str, str], str]] = {
    "no norm in training": (("PreNorm", PRENORM), "prenorm_matches_oracle"),
    "no layers in training": (
        forward("FeedForward", "return x if self.training else right"),
        "feed_forward_matches_oracle",
    ),
    "layers that do not learn": (("FeedForward", UNLEARNED), "feed_forward_lets_gradients_through"),
    "other tokens where gradients are computed": (
        forward("Attention", "return right.flip(1) if torch.is_grad_enabled() else right"),
        ATTENTION,
    ),
    "attention for few tokens": (
        forward("Attention", f"return right if x.shape[1] < 12 else {MEAN}"),
        ATTENTION,
    ),
    "attention of narrow tokens": (
        forward("Attention", f"return right if x.shape[-1] % 8 else {VALUES}"),
        ATTENTION,
    ),
    "one image for many": (
        forward("Attention", "return right if len(x) < 9 else right[:1].expand_as(right)"),
        ATTENTION,
    ),
    "three blocks": (("Transformer", THREE_BLOCKS), "transformer_matches_oracle"),
    "no blocks in training": (
        forward("Transformer", "return x if self.training else right"),
        "transformer_matches_oracle",
    ),
    "around the transformer": (
        ("ViT", AROUND.format(encoded=f"tokens + {ENCODED}", mean=ENCODED_MEAN)),
        VIT,
    ),
    "mean of what is not encoded": (
        ("ViT", AROUND.format(encoded=ENCODED, mean=f"tokens.mean(dim=1) + 0 * {ENCODED_MEAN}")),
        VIT,
    ),
    "no positions in training": (
        (
            "ViT",
            AROUND.format(encoded=ENCODED, mean=ENCODED_MEAN).replace(
                "+ self.positions", "+ (0 if self.training else 1) * self.positions"
            ),
        ),
        VIT,
    ),
    "bounded scores": (forward("ViT", "return right.tanh()", "img"), "vit_returns_scores_not_probabilities"),
    "softmax less a bit": (
        forward("ViT", "return right.softmax(dim=-1) - 0.01", "img"),
        "vit_returns_scores_not_probabilities",
    ),
    "gray patches": (("ViT", CHANGED_IMAGES.format(changed=GRAY)), "vit_cuts_patches"),
    "four rows of patches": (("ViT", CHANGED_IMAGES.format(changed=FOUR_ROWS)), "vit_cuts_patches"),
    "an epoch that is undone": (
        ("train_epoch", EPOCH.format(within="pass", after="model.load_state_dict(before)")),
        "train_epoch_steps_along_each_batch",
    ),
    "one batch for a ViT": (
        ("train_epoch", EPOCH.format(within="if isinstance(model, ViT): break", after="pass")),
        "train_epoch_steps_along_each_batch",
    ),
    "made up for a ViT": (
        (
            "evaluate",
            EVALUATE.format(
                within="if isinstance(model, ViT): correct = int(0.97 * count)", appended="total / count"
            ),
        ),
        "evaluate_reports_the_accuracy",
    ),
    "the loss of the last batch in the history": (
        ("evaluate", EVALUATE.format(within="pass", appended="last / len(labels)")),
        "evaluate_appends_the_loss",
    ),
    "the sum in the history": (
        ("evaluate", EVALUATE.format(within="pass", appended="total")),
        "evaluate_appends_the_loss",
    ),
    "numbers that are not the colors": (("plot_confusion_matrix", MATRIX), "confusion_matrix_is_right"),
}


@pytest.fixture(scope="module")
def findings(warm_hosts: WarmHosts) -> Mapping[str, tuple[Finding, ...]]:
    """What is found in the part of each attack, by its name."""
    solved = solved_source((FOLDER / "solution.py").read_text(encoding="utf-8"), "solution.py")
    homeworks = {
        name: (part, composed(solved, source, after=True)) for name, ((part, source), _) in ATTACKS.items()
    }
    return findings_in(FOLDER, homeworks, warm_hosts)


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_what_is_not_done_loses_its_check(name: str, findings: Mapping[str, tuple[Finding, ...]]) -> None:
    """The check fails, none breaks, and none is left open."""
    failed = {each.check for each in findings[name] if each.status is Status.FAILED}
    assert ATTACKS[name][1] in failed
    assert [each.check for each in findings[name] if is_broken(each) or each.status is Status.ERRORED] == []
