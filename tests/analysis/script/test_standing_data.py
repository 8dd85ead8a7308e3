"""Which of the grader's data stand in the place of a student's: the side that a name tells."""

import textwrap

import pytest

from grader.analysis import program
from grader.domain.assignment import Component, ProgramRules

COMPONENTS = (Component("ViT", "class", "*, dim"), Component("fit", "function", "model, loaders"))
HEAD = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets
class ViT(nn.Module):
    pass
def fit(model, loaders):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for images, labels in loaders["train"]:
            optimizer.step()
images = datasets.ImageFolder("data/train")
order = torch.randperm(len(images)).tolist()
"""
TAIL = """
model = ViT(dim=1)
fit(model, loaders)
torch.save(model.state_dict(), "handed_in.pth")
"""
FOR_TRAINING = "DataLoader(Subset(images, order[9:]), batch_size=8, shuffle=True)"
KEPT_APART = "DataLoader(Subset(images, order[:9]), batch_size=8)"


@pytest.mark.parametrize(
    "loaders",
    [
        f'loaders = {{"train": {FOR_TRAINING}, "validation": {KEPT_APART}}}',
        f"loaders = dict(train={FOR_TRAINING}, val={KEPT_APART})",
        f'loaders = {{}}\nloaders["train"] = {FOR_TRAINING}\nloaders["valid"] = {KEPT_APART}',
        f"""
        def made():
            train = {FOR_TRAINING}
            held_out_for_validation = {KEPT_APART}
            return {{"train": train, "validation": held_out_for_validation}}
        loaders = made()
        """,
    ],
)
def test_images_that_are_kept_apart_are_no_training_images(loaders: str) -> None:
    """In a dictionary, as a keyword, by a subscript, in a function: the name tells the side."""
    source = HEAD + textwrap.dedent(loaders) + TAIL
    script = program("homework.py", source.encode(), ProgramRules(COMPONENTS, (), "_handed_in")).script
    text = "\n".join(statement.source for statement in script.statements)
    train, validation = (text.find(f"_graders_data['{side}_loader']") for side in ("train", "test"))
    assert 0 < train < validation, text
    assert "DataLoader(" not in text
