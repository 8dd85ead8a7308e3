"""Which of the grader's data replace a student's: the side that a name tells."""

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


def test_a_data_set_that_is_cut_by_shares_is_one_for_each_part() -> None:
    """`random_split` hands back as many parts as it is given shares."""
    loaders = f"""
train_part, validation_part = torch.utils.data.random_split(
    images, [0.9, 0.1], generator=torch.Generator().manual_seed(1)
)
loaders = {{"train": {FOR_TRAINING}, "validation": DataLoader(validation_part, batch_size=8)}}
"""
    source = HEAD + loaders + TAIL
    script = program("homework.py", source.encode(), ProgramRules(COMPONENTS, (), "_handed_in")).script
    text = "\n".join(statement.source for statement in script.statements)
    compile(text, "script", "exec")
    parts = "(_graders_data['train_dataset'],_graders_data['test_dataset'],)"
    assert parts in "".join(text.split())


def test_a_graded_function_trains_through_methods_in_a_guarded_main() -> None:
    """What draws as well is no reason to leave it out; what prints over several lines is left out whole."""
    source = (
        HEAD.replace(
            "def fit(model, loaders):\n",
            "class Trainer:\n"
            "    def __init__(self, model, loaders):\n"
            "        self.model, self.loaders = model, loaders\n"
            "    def run(self):\n"
            "        return run(self.model, self.loaders)\n"
            "def fit(model, loaders):\n"
            "    return Trainer(model, loaders).run()\n"
            "def plot(history):\n"
            "    plt.plot(\n"
            "        history)\n"
            "def run(model, loaders):\n",
        )
        + f"loaders = {{'train': {FOR_TRAINING}}}\n"
        + """
import matplotlib.pyplot as plt
def main(wide=True):
    model = ViT(dim=1)
    history = fit(model, loaders)
    torch.save(model.state_dict(), "handed_in.pth")
    plot(history)
if __name__ == "__main__":
    main(wide=False)
"""
    )
    read = program("homework.py", source.encode(), ProgramRules(COMPONENTS, (), "_handed_in"))
    assert not read.script.missing
    text = "\n".join(statement.source for statement in read.script.statements)
    assert "main(" in text or "fit(" in text
    for statement in read.script.statements:
        compile(statement.source, "statement", "exec")


def test_the_key_of_a_loader_tells_whose_batch_size_it_is() -> None:
    """And a comprehension over transforms stands for each of them."""
    source = (
        HEAD.replace("images = ", "from torchvision import transforms as T\nimages = ")
        + f"""
plain = T.Compose([T.ToTensor()])
augment = T.Compose([T.RandomHorizontalFlip(), plain])
train_a, train_p = (datasets.ImageFolder("data/train", transform=t) for t in (augment, plain))
loaders = {{
    "train": DataLoader(Subset(train_a, order[9:]), batch_size=64, shuffle=True),
    "validation": DataLoader(Subset(train_p, order[:9]), batch_size=256),
}}
{TAIL}"""
    )
    recipe = program("homework.py", source.encode(), ProgramRules(COMPONENTS, (), "_handed_in")).recipe
    assert recipe.batch_size == "64"
    assert recipe.train_transform == "augment"
