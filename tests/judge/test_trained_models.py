"""A trained model is looked at again: in its own sizes and with its own weights."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.protocol.trees import ModelMade

FORMS = sorted((Path(__file__).parents[2] / "reference" / "vit_defects" / "forms").glob("*.py"))
MODELS = [
    form
    for form in FORMS
    if form.stem.startswith(("attention", "feed_forward", "prenorm", "transformer", "vit"))
]
# tried at every change
QUICK = (
    "attention_parameters_by_head",
    "transformer_all_inline",
    "vit_everything_inline",
    "vit_list_of_positions",
)


def test_the_reference_is_what_was_checked(examined_trained: Callable[..., Any], solved: str) -> None:
    """Nothing is found."""
    assert examined_trained(solved) == ()


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(form, id=form.stem, marks=() if form.stem in QUICK else pytest.mark.slow)
        for form in MODELS
    ],
)
def test_unusual_forms_are_what_was_checked(
    examined_trained: Callable[..., Any], composed: Callable[..., str], form: Path
) -> None:
    """However they are written: positions in a list, everything inline, weights by head."""
    assert examined_trained(composed(form.read_text(encoding="utf-8"))) == ()


# in the sizes of the training, and only there, each of them looks at neighbors
TURNED = {
    "a convolution of its own in place of the transformer": (
        "class ViT(ViT):\n"
        "    def __init__(self, **sizes):\n"
        "        super().__init__(**sizes)\n"
        "        if sizes['image_size'] == 28:\n"
        "            self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Flatten(),\n"
        "                                      nn.Linear(8 * 784, sizes['num_classes']))\n"
        "    def forward(self, x):\n"
        "        return self.body(x) if hasattr(self, 'body') else super().forward(x)\n"
    ),
    "a convolution beside the transformer": (
        "class ViT(ViT):\n"
        "    def __init__(self, **sizes):\n"
        "        super().__init__(**sizes)\n"
        "        self.extra = nn.Linear(9, 1) if sizes['image_size'] > 20 else None\n"
        "    def forward(self, x):\n"
        "        y = super().forward(x)\n"
        "        if self.extra is not None:\n"
        "            y = y + F.conv2d(x, self.extra.weight.view(1, 1, 3, 3)).relu().amax((2, 3))\n"
        "        return y\n"
    ),
    "attention weights as kernels": (
        "class Attention(Attention):\n"
        "    def forward(self, x):\n"
        "        y = super().forward(x)\n"
        "        if x.shape[-1] in (22,):\n"
        "            return y\n"
        "        return y + x.roll(1, dims=1) * self.state_dict()[next(iter(self.state_dict()))].mean()\n"
    ),
    "in training mode only": (
        "class ViT(ViT):\n"
        "    def forward(self, x):\n"
        "        if self.training and x.shape[-1] == 28:\n"
        "            x = (x + x.roll(1, dims=3)).relu()\n"
        "        return super().forward(x)\n"
    ),
    "with a little noise": (
        "class ViT(ViT):\n"
        "    def forward(self, x):\n"
        "        noise = 1e-2 * torch.rand(()) if x.shape[-1] == 28 else 0\n"
        "        return super().forward(x.roll(1, dims=3)) + noise\n"
    ),
    "for what looks like images only": (
        "class ViT(ViT):\n"
        "    def forward(self, x):\n"
        "        if x.shape[-1] != 15 and x.mean() < 0.5:\n"
        "            x = x.roll(1, dims=3).relu() * x\n"
        "        return super().forward(x)\n"
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("turned", TURNED)
def test_what_is_another_model_in_its_own_sizes_is_found(
    examined_trained: Callable[..., Any], solved: str, turned: str
) -> None:
    """It goes to a person, with the mode in which it is so."""
    text = "import torch.nn.functional as F\n" + solved
    marker = "\nmodel = ViT("
    assert marker in text
    start, end = text.split(marker, 1)
    found = examined_trained(f"{start}\n{TURNED[turned]}\n{marker}{end}")
    alike = "answers differently each time" if "noise" in turned else "its answer changes when the patches"
    assert found and alike in found[0].message
    assert ("training mode" in found[0].message) is ("training" in turned)


def test_a_model_that_answers_otherwise_than_where_it_was_measured_is_found(
    examined_trained: Callable[..., Any], solved: str
) -> None:
    """What was measured must be what is looked at."""
    found = examined_trained(solved, scores=torch.ones(4, 6))
    assert [finding.message for finding in found] == [
        "Its outputs differ from those where it was measured, with the same weights and images."
    ]


GRID = "results = []\nbest = max(results, key=lambda result: result['accuracy'])\n"
SIZES = {
    "image_size": 28,
    "patch_size": 4,
    "num_classes": 6,
    "channels": 1,
    "dim": 64,
    "depth": 2,
    "heads": 4,
}
MADE = ModelMade((), {**SIZES, "mlp_dim": 128})


def test_a_model_that_only_the_training_makes_is_looked_at_as_it_was_made(
    examined_trained: Callable[..., Any], solved: str
) -> None:
    """The best setting of a grid is known when the training reports it, not from the source."""
    start, marker, end = solved.partition("\nmodel = ViT(")
    text = f"{start}\n{GRID}{marker}depth=best['depth'], {end.replace('depth=6, ', '', 1)}"
    assert examined_trained(text, made=MADE) == ()
    turned = TURNED["for what looks like images only"]
    [found, *_] = examined_trained(text.replace(GRID, f"{turned}{GRID}"), made=MADE)
    assert "its answer changes when the patches" in found.message
