"""How the student trains is found wherever it stands, and what it depends on can be executed."""

import warnings
from pathlib import Path

import pytest

from grader.domain.analyzed_program import Loop, Place
from grader.domain.assignment import Component, ProgramRules

MODEL = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Subset, random_split
from torchvision import datasets, transforms

class ViT(nn.Module):
    def __init__(self, *, dim=8, depth=1, num_classes=6, **others):
        super().__init__()
        self.layer = nn.Linear(dim, num_classes)
        self.norm = nn.LayerNorm(dim)

def train_epoch(model, optimizer, data_loader, loss_history):
    pass

def evaluate(model, data_loader, loss_history):
    pass
"""


@pytest.fixture(autouse=True)
def _quiet_schedules():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*lr_scheduler.step.*")
        yield


def tuned(made):
    return {value.name: value.value for value in made.tuned}


def test_the_handed_out_form(analyzed, cooked):
    made = analyzed(
        MODEL
        + """
transform = transforms.Compose([transforms.Resize(28, 28), transforms.ToTensor()])
train_set = datasets.ImageFolder("data/train", transform=transform)
test_set = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=100)
model = ViT(dim=16, depth=2).to("cpu")
optimizer = optim.Adam(model.parameters(), lr=0.003)
N_EPOCHS = 7
for epoch in range(1, N_EPOCHS + 1):
    train_epoch(model, optimizer, train_loader, [])
    evaluate(model, test_loader, [])
"""
    )
    recipe = made.recipe
    assert recipe.model == "ViT(dim=16, depth=2)" and recipe.model_name == "model"
    assert (recipe.train_transform, recipe.test_transform) == ("transform", "transform")
    assert recipe.batch_size == "32" and made.script.loops == (Loop(Place("homework.py", 27), 29),)
    assert "transform" not in [omission.first_line.split(" ")[0] for omission in made.omissions]
    values = cooked(made)
    assert type(values["optimizer"]).__name__ == "Adam" and values["epochs"] == 7
    assert values["train_transform"].transforms[0].size == (28, 28)
    assert tuned(made) == {
        "dim": "16",
        "depth": "2",
        "optimizer": "Adam",
        "learning_rate": "0.003",
        "epochs": "7",
        "batch_size": "32",
        "transform": "Resize((28, 28)), ToTensor()",
    }


def test_everything_within_main_and_helpers(analyzed, cooked):
    made = analyzed(
        MODEL
        + """
import argparse

def build(args):
    net = ViT(dim=args.dim, depth=1)
    return net.to("cpu")

def loaders(size, augment=True):
    train_tf = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor()])
    test_tf = transforms.ToTensor()
    train_ds = datasets.ImageFolder("data/train", train_tf, transform=train_tf)
    test_ds = datasets.ImageFolder("data/test", transform=test_tf)
    return DataLoader(train_ds, batch_size=size, shuffle=True), DataLoader(test_ds, 99)

def fit(net, epochs, lr, decay=0.01):
    opt = optim.AdamW(net.parameters(), lr=lr, weight_decay=decay)
    sched = optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)
    train_loader, test_loader = loaders(48)
    for epoch in range(epochs):
        train_epoch(net, opt, train_loader, [])
        sched.step()

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dim", type=int, default=24)
    args = parser.parse_args()
    device = torch.device("cpu")
    model = build(args)
    rate = 1e-3 * 2
    fit(model, 5, lr=rate)

if __name__ == "__main__":
    main()
"""
    )
    values = cooked(made)
    assert values["model"].layer.in_features == 24
    group = values["optimizer"].param_groups[0]
    assert (group["lr"], group["weight_decay"]) == (2e-3, 0.01)
    assert values["scheduler"].T_max == 5
    assert (values["epochs"], values["batch_size"]) == (5, 48)
    assert len(values["train_transform"].transforms) == 2
    assert type(values["test_transform"]).__name__ == "ToTensor"
    assert tuned(made)["dim"] == "24" and tuned(made)["learning_rate"] == "0.002"


def test_steps_groups_and_warm_up_come_in_their_order(analyzed, cooked):
    made = analyzed(
        MODEL
        + """
train_loader, test_loader = get_loaders()
classes = train_loader.dataset.classes
EPOCHS = 4
num_classes = len(classes)
model = ViT(num_classes=num_classes)
decay, rest = [], []
for name, parameter in model.named_parameters():
    if parameter.ndim == 1:
        rest.append(parameter)
    else:
        decay.append(parameter)
groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest}]
optimizer = optim.AdamW(groups, lr=1e-3)
total = EPOCHS * len(train_loader)
warm = optim.lr_scheduler.LinearLR(optimizer, total_iters=2)
cosine = optim.lr_scheduler.CosineAnnealingLR(optimizer, total)
scheduler = optim.lr_scheduler.SequentialLR(optimizer, [warm, cosine], milestones=[2])
for epoch in range(EPOCHS):
    train_epoch(model, optimizer, train_loader, [])
    scheduler.step()
"""
    )
    bound = [name for statement in made.script.statements for name in statement.binds]
    assert bound[:4] == ["EPOCHS", "model", "decay", "rest"] and bound[-2:] == ["scheduler", "epoch"]
    values = cooked(made)
    assert [len(group["params"]) for group in values["optimizer"].param_groups] == [1, 3]
    assert cooked(made)["scheduler"]._schedulers[1].T_max == 24
    assert made.script.data["train_loader"] == "train_loader"


def test_a_configuration_object_is_followed(analyzed, cooked):
    made = analyzed(
        MODEL
        + """
from dataclasses import dataclass

@dataclass
class Config:
    dim: int = 32
    depth: int = 3
    lr: float = 5e-4
    epochs: int = 9
    batch: int = 16

cfg = Config(depth=4)
OPTIONS = dict(dim=cfg.dim, depth=cfg.depth, pool="mean")
model = ViT(**OPTIONS)
optimizer = torch.optim.SGD(model.parameters(), cfg.lr, momentum=0.9)
loader = DataLoader(dataset, cfg.batch, shuffle=True)
for e in range(0, cfg.epochs):
    train_epoch(model, optimizer, loader, [])
"""
    )
    assert tuned(made) == {
        "dim": "32",
        "depth": "4",
        "pool": "mean",
        "optimizer": "SGD",
        "learning_rate": "0.0005",
        "momentum": "0.9",
        "epochs": "9",
        "batch_size": "16",
    }
    values = cooked(made)
    assert (values["epochs"], values["batch_size"], values["model"].layer.in_features) == (9, 16, 32)


def test_the_last_training_counts_with_the_values_that_it_had(analyzed, cooked):
    made = analyzed(
        MODEL
        + """
lr = 1e-2
model = ViT(dim=8)
optimizer = optim.SGD(model.parameters(), lr=lr)
for epoch in range(1):
    train_epoch(model, optimizer, None, [])
lr = 1e-3
model = ViT(dim=12)
optimizer = optim.Adam(model.parameters(), lr=lr)
from tqdm import tqdm
for epoch in tqdm(range(20), desc="epochs"):
    train_epoch(model, optimizer, None, [])
lr = 5
plot(model)
"""
    )
    values = cooked(made)
    assert values["model"].layer.in_features == 12 and values["epochs"] == 20
    assert values["optimizer"].param_groups[0]["lr"] == 1e-3
    assert tuned(made)["learning_rate"] == "0.001"


def test_a_search_over_values_alone_is_trained_whole(analyzed, cooked):
    made = analyzed(
        MODEL
        + """
for lr, (depth, dim) in [(1e-2, (1, 8)), (1e-3, (2, 20))]:
    model = ViT(dim=dim, depth=depth)
    optimizer = optim.Adam(model.parameters(), lr=lr)
    for epoch in range(3):
        train_epoch(model, optimizer, None, [])
"""
    )
    assert not made.script.single and len(made.script.loops) == 1


@pytest.mark.parametrize(
    ("source", "train", "test"),
    [
        (
            "full = datasets.ImageFolder('data', transform=A)\n"
            "train_set, test_set = random_split(full, [1, 2])",
            "A",
            "A",
        ),
        (
            "train_set = Subset(datasets.ImageFolder('data', transform=A), [1])\n"
            "test_set = Subset(datasets.ImageFolder('data', transform=B), [2])",
            "A",
            "B",
        ),
        (
            "first = datasets.ImageFolder('data', transform=A)\n"
            "second = datasets.ImageFolder('data', transform=B)\n"
            "x = DataLoader(first, shuffle=True)\ny = DataLoader(second, shuffle=False)",
            "A",
            "B",
        ),
        (
            "full = datasets.ImageFolder('data', transform=A)\na, b = random_split(full, [1, 2])\n"
            "test_set = b\ntest_set.dataset.transform = B",
            "A",
            "B",
        ),
        (
            "def make(root, tf):\n    return datasets.ImageFolder(root, transform=tf)\n"
            "train_set = make('data/train', A)\ntest_set = make('data/test', tf=B)",
            "A",
            "B",
        ),
        (
            "sets = {name: datasets.ImageFolder(name, transform=A) for name in ('train', 'test')}",
            "A",
            "A",
        ),
        (
            "transform_train = transforms.Compose([A])\ntransform_test = transforms.Compose([B])",
            "transform_train",
            "transform_test",
        ),
        (
            "class Steel(torch.utils.data.Dataset):\n    pass\n"
            "train_ds = Steel('data/train', A)\ntest_ds = Steel('data/test', tf=B)",
            "A",
            "B",
        ),
        (
            "def make(root, tf):\n    return datasets.ImageFolder(root, tf)\ntrain_set = make('x', A)",
            "A",
            "A",
        ),
        ("train_tf = transforms.Compose([A])", "train_tf", "train_tf"),
        ("only = 1", None, None),
    ],
)
def test_transforms_are_told_apart(analyzed, cooked, source, train, test):
    made = analyzed(MODEL + "A = transforms.ToTensor()\nB = transforms.Grayscale()\n" + source)
    assert (made.recipe.train_transform, made.recipe.test_transform) == (train, test)
    if train is not None:
        assert cooked(made)["train_transform"] is not None


def test_a_transform_that_a_function_puts_together_is_that_of_each_call(analyzed, cooked):
    """The arguments of the training images' call are not those of the test images'."""
    made = analyzed(
        MODEL
        + """
def folder(name, *more):
    steps = [*more, transforms.Grayscale(), transforms.ToTensor()]
    return datasets.ImageFolder(f"data/{name}", transform=transforms.Compose(steps))

augmented = folder("train", transforms.RandomHorizontalFlip(), transforms.RandomCrop(28, 2))
plain, test_images = folder("train"), folder("test")
"""
    )
    values = cooked(made)
    kinds = [
        [type(step).__name__ for step in values[f"{side}_transform"].transforms] for side in ("train", "test")
    ]
    assert kinds == [
        ["RandomHorizontalFlip", "RandomCrop", "Grayscale", "ToTensor"],
        ["Grayscale", "ToTensor"],
    ]
    assert not [note for note in made.notes if "taken over" in note.text]


def test_transforms_and_batch_size_of_lambdas_and_partials_are_found(analyzed, cooked):
    """Two data sets in one line, too: each has the transform of its own call."""
    made = analyzed(
        MODEL
        + """
plain = transforms.Compose([transforms.ToTensor()])
augmented = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor()])
folder_of = lambda part, how: datasets.ImageFolder(f"data/{part}", transform=how)
first, second = folder_of("train", augmented), folder_of("test", plain)
loader_of = functools.partial(DataLoader, batch_size=48)
train_loader, test_loader = loader_of(first, shuffle=True), loader_of(second)
"""
    )
    values = cooked(made)
    assert (made.recipe.train_transform, made.recipe.test_transform) == ("augmented", "plain")
    assert values["batch_size"] == 48
    assert not [note for note in made.notes if "taken over" in note.text]


@pytest.mark.parametrize(
    "folder",
    [
        "datasets.ImageFolder('data/train', transform={})",
        "images('data/train', {})",
    ],
)
def test_transforms_are_those_of_what_loaders_are_given(analyzed, folder):
    """Both read the same folder, and another is only counted."""
    made = analyzed(
        MODEL
        + f"""
plain = transforms.ToTensor()
augmented = transforms.Compose([transforms.RandomHorizontalFlip(), plain])

def images(folder, transform):
    return datasets.ImageFolder(folder, transform=transform)

rows = list(range(len({folder.format("plain")})))
loaders = {{
    "train": DataLoader(Subset({folder.format("augmented")}, rows[10:]), batch_size=8, shuffle=True),
    "validation": DataLoader(Subset({folder.format("plain")}, rows[:10]), batch_size=8),
}}
model = ViT()
optimizer = optim.Adam(model.parameters())
for epoch in range(3):
    train_epoch(model, optimizer, loaders["train"], [])
"""
    )
    assert (made.recipe.train_transform, made.recipe.test_transform) == ("augmented", "plain")


def test_what_needs_the_data_cannot_be_a_transform(analyzed):
    made = analyzed(
        MODEL
        + """
train_set = datasets.ImageFolder("data/train")
mean = compute_mean(train_set)
transform = transforms.Compose([transforms.Normalize(mean, 0.5)])
other = datasets.ImageFolder("data/train", transform=transform)
"""
    )
    assert made.recipe.train_transform is None
    notes = [note.text for note in made.notes if "taken over" in note.text]
    assert "`transform` could not be taken over: it needs `transform`" in notes[0]
    assert notes[0].endswith("not executed on loading. The handed-out one is used in its place.")


def test_a_model_of_another_make_is_not_taken_for_the_students(analyzed):
    made = analyzed(MODEL + "from torchvision.models import vit_b_16\nmodel = vit_b_16()\n")
    assert made.recipe.model is None
    assert [use.reached_from for use in made.forbidden] == [(), ()]


def test_lambdas_and_local_functions_of_a_schedule_are_lifted(analyzed, cooked):
    made = analyzed(
        MODEL
        + """
def main():
    epochs, warm = 10, 2
    factor = lambda e: min(1.0, (e + 1) / warm)

    def shrink(e):
        '''
        A docstring.
        '''
        return factor(e) * (1 - e / epochs)

    model = nn.DataParallel(ViT())
    model = model.cpu()
    optimizer = optim.Adam(model.parameters())
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=shrink)
    for epoch in range(epochs):
        train_epoch(model, optimizer, None, [])
        scheduler.step()
main()
"""
    )
    assert cooked(made)["scheduler"].get_last_lr() == [0.001 * 0.5]


def test_a_choice_by_a_constant_is_followed(analyzed, cooked):
    made = analyzed(
        MODEL
        + """
KIND = "step"
model = ViT()
optimizer = optim.Adam(model.parameters())
if KIND == "cosine":
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
else:
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1)
for epoch in range(2):
    train_epoch(model, optimizer, None, [])
    scheduler.step()
"""
    )
    assert type(cooked(made)["scheduler"]).__name__ == "StepLR"


def test_a_notebook_is_read_across_cells(analyzed, notebook, cooked):
    cells = (
        MODEL,
        "BATCH = 64\ntrain_loader = DataLoader(train_set, BATCH, shuffle=True)",
        "model = ViT(dim=8)\nmodel.to('cpu');",
        "optimizer = optim.Adam(model.parameters(), lr=3e-4)",
        "%%time\nfor epoch in range(3):\n    train_epoch(model, optimizer, train_loader, [])",
    )
    made = analyzed(notebook(*cells), "homework.ipynb")
    assert cooked(made)["batch_size"] == 64
    places = {value.name: str(value.place) for value in made.tuned}
    assert places["dim"] == "In [3], line 1 (cell 3)" and places["learning_rate"] == "In [4], line 1 (cell 4)"
    assert places["epochs"] == "In [5], line 2 (cell 5)"


OWN_DATA = """
class Steps:
    def __init__(self, *steps):
        self.steps = steps
    def __call__(self, image):
        for step in self.steps:
            image = step(image)
        return image

class Pictures(torch.utils.data.Dataset):
    def __init__(self, folder, steps):
        self.steps = steps
    def part(self, order, steps=None):
        return Pictures("", steps or self.steps)

plain = Steps(transforms.ToTensor())
augmented = Steps(transforms.RandomCrop(32, 4), transforms.ToTensor())
model = ViT(dim=8)
optimizer = optim.Adam(model.parameters(), lr=3e-4)
for epoch in range(3):
    train_epoch(model, optimizer, loader, [])
"""


@pytest.mark.parametrize(
    ("loaders", "train", "test"),
    [
        (
            "pictures = Pictures('data/train', plain)\n"
            "loader = DataLoader(pictures.part(order, augmented), 64, shuffle=True)\n"
            "test_loader = DataLoader(Pictures('data/test', plain), 64)",
            "augmented",
            "plain",
        ),
        (
            "train_set = Pictures('data/train', [transforms.RandomCrop(32, 4), plain])\n"
            "test_set = Pictures('data/test', [plain])\n"
            "loader, test_loader = DataLoader(train_set, 64, shuffle=True), DataLoader(test_set)",
            "[transforms.RandomCrop(32, 4), plain]",
            "[plain]",
        ),
    ],
    ids=["given to a part of it", "steps in a list"],
)
def test_transforms_of_ones_own_data_set_are_found(analyzed, loaders, train, test):
    recipe = analyzed(MODEL + OWN_DATA.replace("model = ViT", f"{loaders}\nmodel = ViT", 1)).recipe
    assert (recipe.train_transform, recipe.test_transform) == (train, test)


@pytest.mark.parametrize(
    ("others", "found"),
    [
        ("test_loader = DataLoader(test_set, 64)", "mixed"),
        ("test_loader = DataLoader(test_set, 64, collate_fn=mixed)", None),
    ],
)
def test_only_what_the_training_loader_alone_makes_batches_with_is_taken(analyzed, others, found):
    """What all loaders do is not an augmentation: it belongs to the student's own data sets."""
    made = analyzed(
        MODEL
        + f"""
def mixed(samples):
    return samples
train_loader = DataLoader(train_set, 64, shuffle=True, collate_fn=mixed)
{others}
model = ViT(dim=8)
optimizer = optim.Adam(model.parameters(), lr=3e-4)
for epoch in range(3):
    train_epoch(model, optimizer, train_loader, [])
"""
    )
    assert made.recipe.collate == found


def test_epochs_without_a_loop_of_ones_own_stand_where_they_are_stated(analyzed):
    """As where a function of the student's is called with them."""
    made = analyzed(MODEL + "\nEPOCHS = (3, 12)\nmodel = ViT(dim=8)\nfit(model, EPOCHS)\n")
    [epochs] = [value for value in made.tuned if value.name == "epochs"]
    line = MODEL.count("\n") + 2
    assert (epochs.value, epochs.place) == ("(3, 12)", Place("homework.py", line))


def test_without_training_there_is_no_recipe_and_no_complaint(analyzed):
    made = analyzed("import torch\nclass ViT(torch.nn.Module):\n    pass\n")
    assert made.recipe.model is None and made.script.missing and made.notes == ()
    assert made.tuned == ()


def test_our_own_solution_is_read_completely(cooked):
    import tomllib

    from grader.analysis import program

    folder = (
        next(p for p in Path(__file__).parents if (p / "pyproject.toml").exists()) / "reference/vit_defects"
    )
    described = tomllib.loads((folder / "assignment.toml").read_text())
    components = [Component(**entry) for entry in described["component"]]
    made = program("solution.py", (folder / "solution.py").read_bytes(), ProgramRules(components, ()))
    assert set(made.defined) == {component.name for component in components}
    assert made.unresolved == () and made.near_names == () and made.notes == ()
    values = cooked(made)
    assert sum(p.numel() for p in values["model"].parameters()) == 499_462
    assert type(values["optimizer"]).__name__ == "AdamW" and values["epochs"] == 30
    assert values["scheduler"] is not None
    assert values["batch_size"] == 64 and values["train_transform"] is values["test_transform"]
    assert {"dim", "heads", "optimizer", "learning_rate", "epochs", "transform"} <= tuned(made).keys()
