"""Two trained models of one submission are looked at again: in their own sizes and with their own weights."""

import ast
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import homework_versions

ASSIGNMENT = read_assignment(Path(__file__).parents[2] / "reference" / "vit_cifar10")
VIT, RESNET = ASSIGNMENT.measures
IMAGE = (3, 32, 32)
# tried at every change
QUICK = (
    "reference",
    "resnet_in_layers",
)
PARTS = {
    "PatchEmbedding",
    "MultiHeadSelfAttention",
    "EncoderBlock",
    "VisionTransformer",
    "BasicBlock",
    "ResNet18",
}
# known by their files: to compose them takes seconds, which every run of tests would wait for
MODELS = [
    "reference",
    *(
        path.stem
        for path in sorted(ASSIGNMENT.folder.glob("forms/*.py"))
        if PARTS
        & {node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.ClassDef)}
    ),
]


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    """The code of each version, by its name."""
    return {version.name: version.source for version in homework_versions(ASSIGNMENT)}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in MODELS]
)
@pytest.mark.parametrize("measure", ASSIGNMENT.measures, ids=lambda measure: measure.id)
def test_forms_are_what_was_checked(
    examined_trained_of: Callable[..., Any], sources: Mapping[str, str], name: str, measure: Any
) -> None:
    """However they are written, nothing is found in either model."""
    assert examined_trained_of(ASSIGNMENT, sources[name], measure=measure, image=IMAGE) == ()


# in the sizes of the training, and only there, each of them is another model
TURNED_VIT = {
    "a convolution in place of the blocks": (
        "class VisionTransformer(VisionTransformer):\n"
        "    def __init__(self, *args, **sizes):\n"
        "        super().__init__(*args, **sizes)\n"
        "        if sizes.get('dim') == 96:\n"
        "            convolution = nn.Conv2d(3, 8, 3, stride=2, padding=1)\n"
        "            head = nn.Linear(8 * 256, sizes['num_classes'])\n"
        "            self.body = nn.Sequential(convolution, nn.ReLU(), nn.Flatten(), head)\n"
        "    def forward(self, x):\n"
        "        return self.body(x) if hasattr(self, 'body') else super().forward(x)\n"
    ),
    "a convolution in front, in training mode": (
        "class VisionTransformer(VisionTransformer):\n"
        "    def forward(self, x):\n"
        "        if self.training and x.shape[-1] == 32:\n"
        "            x = (x + x.roll(1, dims=3)).relu()\n"
        "        return super().forward(x)\n"
    ),
    "a convolution in front of patches, in each size over twelve pixels": (
        "class PatchEmbedding(PatchEmbedding):\n"
        "    def __init__(self, image_size, patch_size, in_channels, dim):\n"
        "        super().__init__(image_size, patch_size, in_channels, dim)\n"
        "        if image_size > 12:\n"
        "            self.stem = nn.Conv2d(in_channels, in_channels, 3, padding=1)\n"
        "    def forward(self, images):\n"
        "        return super().forward(self.stem(images).relu() if hasattr(self, 'stem') else images)\n"
    ),
}
TURNED_RESNET = {
    "more channels than its width": (
        "class ResNet18(ResNet18):\n"
        "    def __init__(self, num_classes=10, width=64):\n"
        "        super().__init__(num_classes, width)\n"
        "        if width == 16:\n"
        "            self.more = BasicBlock(8 * width, 8 * width)\n"
        "    def forward(self, x):\n"
        "        if not hasattr(self, 'more'):\n"
        "            return super().forward(x)\n"
        "        return self.head(self.more(self.blocks(self.stem(x))).mean(dim=(2, 3)))\n"
    ),
    "rows are not treated as columns": (
        "class ResNet18(ResNet18):\n"
        "    def forward(self, x):\n"
        "        if self.head.in_features == 128:\n"
        "            x = x + x.roll(1, dims=2)\n"
        "        return super().forward(x)\n"
    ),
}


def turned_source(source: str, turned: str, before: str) -> str:
    """The reference with another class in front of the line that makes the model."""
    assert source.count(before) == 1
    return source.replace(before, f"{turned}\n{before}")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("turned", TURNED_VIT)
def test_a_vit_that_is_another_in_its_own_sizes_is_found(
    examined_trained_of: Callable[..., Any], sources: Mapping[str, str], turned: str
) -> None:
    """It goes to a person, with the mode in which it is so."""
    text = turned_source(sources["reference"], TURNED_VIT[turned], "vit = VisionTransformer(")
    found = examined_trained_of(ASSIGNMENT, text, measure=VIT, image=IMAGE)
    assert found and "its answer changes when the patches" in found[0].message
    assert ("training mode" in found[0].message) is ("training mode" in turned)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("turned", "said"),
    [
        ("more channels than its width", "Its kernels are not those of a ResNet-18 of width 16"),
        ("rows are not treated as columns", "It treats rows"),
    ],
)
def test_a_resnet_that_is_another_in_its_own_width_is_found(
    examined_trained_of: Callable[..., Any], sources: Mapping[str, str], turned: str, said: str
) -> None:
    """It goes to a person."""
    text = turned_source(sources["reference"], TURNED_RESNET[turned], "resnet = ResNet18(")
    found = examined_trained_of(ASSIGNMENT, text, measure=RESNET, image=IMAGE)
    assert [said in finding.message for finding in found] == [True]
