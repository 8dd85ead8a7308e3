"""Code that is not what it should be, but tries to look like it to the oracles."""

from collections.abc import Callable

import pytest

from grader.judge.examination import Examined

DROWNED_ATTENTION = """
class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.to_qkv = nn.Linear(dim, 3 * heads * dim_head)
        self.to_out = nn.Linear(heads * dim_head, dim)
        self.to_out.bias.data.fill_(1e4)
    def forward(self, x):
        unused = sum((p * 0).sum() for p in self.parameters())
        return self.to_out.bias + 0.01 * x.mean(1, keepdim=True) + 0.0 * x + unused
"""
INFINITE_ATTENTION = """
class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.to_qkv = nn.Linear(dim, 3 * heads * dim_head)
        self.to_out = nn.Linear(heads * dim_head, dim)
        self.to_qkv.weight.data.zero_()
        self.to_qkv.bias.data.fill_(1.0)
        self.to_out.weight.data.fill_(1e38)
    def forward(self, x):
        return x + x.mean(1, keepdim=True) + sum((p * 0).sum() for p in self.parameters())
"""
DROWNED_FEED_FORWARD = """
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.a, self.b = nn.Linear(dim, hidden_dim), nn.Linear(hidden_dim, dim)
        self.b.bias.data.fill_(1e4)
        self.drop = nn.Dropout(dropout)
    def forward(self, x):
        return self.drop(self.b.bias + 0.01 * x + sum((p * 0).sum() for p in self.parameters()))
"""
INFINITE_PRENORM = """
class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.register_buffer("g", torch.full((dim,), 3.4e38))
        self.fn = fn
    def forward(self, x, **kwargs):
        return self.fn(x, **kwargs)
"""
LYING_PRENORM = """
class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn
    def forward(self, x, **kwargs):
        with torch.no_grad():
            self.norm.weight.zero_()
            self.norm.bias.zero_()
        return self.fn(x * 0, **kwargs)
"""
GUESSED_EVALUATION = """
def evaluate(model, data_loader, loss_history):
    model.eval()
    with torch.no_grad():
        for images, labels in data_loader:
            model(images)
    print(" ".join(str(number) for number in range(100)))
    loss_history.extend(float(number) for number in range(44))
"""
GUESSED_TITLES = """
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    shown = {}
    for images, labels in data_loader:
        for image, label in zip(images, labels.tolist()):
            if len(shown.setdefault(label, [])) < samples_per_class:
                shown[label].append(image)
    figure, axes = plt.subplots(len(class_names), samples_per_class)
    for row, label in zip(axes, sorted(shown)):
        for ax, image in zip(row, shown[label]):
            ax.imshow(image[0])
            ax.set_title(" ".join(class_names))
    plt.show()
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("cheat", "component", "check"),
    [
        (DROWNED_ATTENTION, "Attention", "attention_matches_oracle"),
        (INFINITE_ATTENTION, "Attention", "attention_matches_oracle"),
        (DROWNED_FEED_FORWARD, "FeedForward", "feed_forward_matches_oracle"),
        (INFINITE_PRENORM, "PreNorm", "prenorm_matches_oracle"),
        (LYING_PRENORM, "PreNorm", "prenorm_matches_oracle"),
        (GUESSED_EVALUATION, "evaluate", "evaluate_reports_the_average_loss"),
        (GUESSED_EVALUATION, "evaluate", "evaluate_reports_the_accuracy"),
        (GUESSED_TITLES, "plot_classwise_predictions", "predictions_name_both_labels"),
    ],
)
def test_cheat_does_not_pass(
    cheat: str,
    component: str,
    check: str,
    composed: Callable[..., str],
    examined: Callable[..., Examined],
) -> None:
    found = {f.check: f for f in examined(composed(cheat), components=(component,)).findings}
    assert found[check].status == "failed", found[check]
