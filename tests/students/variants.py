"""Homeworks whose training is written in many ways: edits of the solution, and what must be said of each.

    python tests/students/variants.py FOLDER      writes them all, to look at

A student reads the last line of `grader check` as a promise. Each variant says what must be in it.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

MODEL = "model = ViT(image_size=28, patch_size=4, num_classes=6, dim=64, depth=6, heads=4, mlp_dim=128)"
SMALL = MODEL.replace("depth=6", "depth=2")
_MODEL_PLACE, _TRAINING_PLACE = "### MODEL ###", "### TRAINING ###"


@dataclass(frozen=True)
class Variant:
    """A homework and what `grader check` must say of it.

    Attributes:
        name: Of the file.
        training: What stands in the place of the optimizer and the loop over epochs.
        model: What stands in the place of the model's construction.
        edits: Replacements in the rest: each must occur.
        last: What the last line holds of the training.
        code: The exit code.
    """

    name: str
    training: str
    model: str = SMALL + "\nmodel.to(device)"
    edits: tuple[tuple[str, str], ...] = ()
    last: str = "the training runs: 3 epochs of `model`"
    code: int = 0

    def source(self, solved: str) -> str:
        """The homework's text.

        Args:
            solved: The solution as a student may have handed it in.
        """
        text = _cut(solved, "model = ViT(", "N_EPOCHS = 30", _MODEL_PLACE)
        text = _cut(text, "N_EPOCHS = 30", "# %% [markdown]\n# Save the weights", _TRAINING_PLACE)
        for before, after in self.edits:
            assert before in text, f"{self.name}: {before!r} does not occur"
            text = text.replace(before, after)
        text = text.replace(_MODEL_PLACE, self.model + "\n")
        return text.replace(_TRAINING_PLACE, self.training.strip("\n") + "\n")


def _cut(text: str, begin: str, end: str, place: str) -> str:
    start = text.index(begin)
    return f"{text[:start]}{place}\n{text[text.index(end, start) :]}"


ADAM = "optimizer = optim.Adam(model.parameters(), lr=3e-3)\ntrain_loss_history, test_loss_history = [], []\n"
MAIN = (
    ADAM
    + """
N_EPOCHS = 3
for epoch in range(N_EPOCHS):
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
"""
)
STUDY_BODY = """
    small = ViT(image_size=28, patch_size=4, num_classes=6, dim=32, depth=depth, heads=heads, mlp_dim=64)
    small.to(device)
    study_optimizer = optim.AdamW(small.parameters(), lr=1e-3)
    for epoch in range(2):
        train_epoch(small, study_optimizer, train_loader, [])
    evaluate(small, test_loader, [])
"""
STUDY = "\nfor depth, heads in [(2, 2), (4, 4)]:" + STUDY_BODY
SAME_NAMES = STUDY.replace("small", "model").replace("study_optimizer", "optimizer")
RUN = (
    "\ndef run_experiment(depth, heads):"
    + STUDY_BODY
    + "    return small\n\nfor depth, heads in [(2, 2), (4, 4)]:\n    run_experiment(depth, heads)\n"
)
FIT = """
def fit(model, optimizer, epochs):
    for epoch in range(epochs):
        train_epoch(model, optimizer, train_loader, train_loss_history)
        evaluate(model, test_loader, test_loss_history)

"""
HISTORIES = "train_loss_history, test_loss_history = [], []\n"
LR_STUDY = """
for lr in [1e-2, 1e-3]:
    model = ViT(image_size=28, patch_size=4, num_classes=6, channels=1, dim=32, depth=1, heads=2, mlp_dim=64)
    model.to(device)
    optimizer = optim.AdamW(model.parameters(), lr=lr)
    for epoch in range(2):
        train_epoch(model, optimizer, train_loader, [])
    evaluate(model, test_loader, [])
"""
TWO_STAGES = MAIN.replace("N_EPOCHS = 3", "N_EPOCHS = 1") + (
    """
optimizer = optim.Adam(model.parameters(), lr=3e-4)
for epoch in range(2):
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
"""
)
SAVED_BEST = """
best = 0.0
for depth, heads in [(1, 2), (2, 4)]:
    candidate = ViT(
        image_size=28, patch_size=4, num_classes=6, channels=1, dim=32, depth=depth, heads=heads, mlp_dim=64
    ).to(device)
    optimizer = optim.AdamW(candidate.parameters(), lr=1e-3)
    for epoch in range(2):
        train_epoch(candidate, optimizer, train_loader, [])
    correct = 0
    with torch.no_grad():
        for images, labels in test_loader:
            correct += (candidate(images.to(device)).argmax(1) == labels.to(device)).sum().item()
    if correct >= best:
        best, model = correct, candidate
"""
IN_TRAINER = """
class Trainer:
    def __init__(self, model, lr, epochs):
        self.model, self.epochs = model, epochs
        self.optimizer = optim.Adam(model.parameters(), lr=lr)

    def fit(self):
        for epoch in range(self.epochs):
            train_epoch(self.model, self.optimizer, train_loader, train_loss_history)
            evaluate(self.model, test_loader, test_loss_history)

trainer = Trainer(model, 3e-3, 3)
trainer.fit()
"""
WHILE_STOP = (
    ADAM
    + """
epoch, bad, best, patience = 0, 0, 1e9, 2
while epoch < 4 and bad < patience:
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
    if test_loss_history[-1] < best:
        best, bad = test_loss_history[-1], 0
    else:
        bad += 1
    epoch += 1
"""
)
COSINE = (
    ADAM
    + """
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
for epoch in range(3):
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
    scheduler.step()
"""
)
OWN_LOOP = (
    ADAM
    + """
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    model.train()
    for images, labels in train_loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    evaluate(model, test_loader, test_loss_history)
"""
)
RESTORED = (
    ADAM
    + """
best_loss = float("inf")
for epoch in range(3):
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
    if test_loss_history[-1] < best_loss:
        best_loss = test_loss_history[-1]
        torch.save(model.state_dict(), "best.pth")
model.load_state_dict(torch.load("best.pth"))
"""
)
IN_MAIN = """
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    train_loss_history, test_loss_history = [], []
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        train_epoch(model, optimizer, train_loader, train_loss_history)
        evaluate(model, test_loader, test_loss_history)

main()
"""
ARGPARSE_TOP = """
parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()
""" + MAIN.replace("N_EPOCHS = 3", "N_EPOCHS = args.epochs")
TIMM = (
    ADAM
    + """
scheduler = CosineLRScheduler(optimizer, t_initial=3, warmup_t=1)
for epoch in range(3):
    train_epoch(model, optimizer, train_loader, train_loss_history)
    scheduler.step(epoch)
"""
)
CONFIG = {
    "image_size": 28,
    "patch_size": 4,
    "num_classes": 6,
    "dim": 64,
    "depth": 2,
    "heads": 4,
    "mlp_dim": 128,
}
AMP_EPOCH = """
    model.train()
    scaler = torch.amp.GradScaler("cuda", enabled=torch.cuda.is_available())
    total = len(data_loader.dataset)
    for index, (images, labels) in enumerate(data_loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if index % 100 == 0:
            print(f"[{index * len(images):5d}/{total}] loss {loss.item():.4f}")
            loss_history.append(loss.item())
"""
IMPORT = ("import random\n", "import argparse\nimport random\n")


EPOCH = """    model.train()
    total = len(data_loader.dataset)
    for index, (images, labels) in enumerate(data_loader):
        images, labels = augment(images.to(device)), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        if index % 100 == 0:
            print(f"[{index * len(images):5d}/{total}] loss {loss.item():.4f}")
            loss_history.append(loss.item())
"""

TRAININGS = (
    Variant("main", MAIN),
    Variant("study", MAIN + STUDY),
    Variant("study_same_names", MAIN + SAME_NAMES, last="again at line"),
    Variant("run_experiment_after", MAIN + RUN),
    Variant(
        "fit_study_after",
        FIT + ADAM + "fit(model, optimizer, 3)\n\nfor depth in [1, 2]:\n    small = ViT("
        "image_size=28, patch_size=4, num_classes=6, dim=32, depth=depth, heads=2, mlp_dim=64).to(device)\n"
        "    fit(small, optim.AdamW(small.parameters(), lr=1e-3), 2)\n",
    ),
    Variant("lr_study_after", MAIN + LR_STUDY, last="2 epochs of `model` (line 4"),
    Variant(
        "guarded_study",
        MAIN
        + "\nRUN_STUDY = False\nif RUN_STUDY:\n    "
        + LR_STUDY.strip("\n").replace("\n", "\n    ")
        + "\n",
    ),
    Variant("study_before", STUDY + "\n" + MAIN),
    Variant("study_best", SAVED_BEST, model="", last="2 epochs of `model`"),
    Variant(
        "seeds_ensemble",
        HISTORIES
        + "for seed in [0, 1, 2]:\n    torch.manual_seed(seed)\n    "
        + SMALL
        + "\n    model.to(device)\n    optimizer = optim.Adam(model.parameters(), lr=3e-3)\n"
        "    for epoch in range(2):\n"
        "        train_epoch(model, optimizer, train_loader, train_loss_history)\n"
        "    evaluate(model, test_loader, test_loss_history)\n",
        model="",
        last="2 epochs of `model`",
    ),
    Variant("two_stages", TWO_STAGES),
    Variant(
        "two_stages_of_one_optimizer",
        TWO_STAGES.replace(
            "optimizer = optim.Adam(model.parameters(), lr=3e-4)\n",
            "for group in optimizer.param_groups:\n    group['lr'] = 3e-4\n",
        ),
    ),
    Variant(
        "fit_twice",
        FIT + ADAM + "fit(model, optimizer, 3)\nfit(model, optimizer, 2)\n",
        last="5 epochs of `model`",
    ),
    Variant("fit", FIT + ADAM + "fit(model, optimizer, 3)\n"),
    Variant(
        "fit_with_scheduler",
        FIT.replace("epochs):", "epochs, scheduler=None):", 1).replace(
            "test_loss_history)\n",
            "test_loss_history)\n        if scheduler is not None:\n            scheduler.step()\n",
        )
        + ADAM
        + "fit(model, optimizer, 3)\n",
    ),
    Variant(
        "fit_verbose",
        FIT.replace("epochs):", "epochs, verbose=True):", 1).replace(
            "test_loss_history)\n",
            "test_loss_history)\n        if verbose:\n            print(epoch, test_loss_history[-1])\n",
        )
        + ADAM
        + "fit(model, optimizer, 3)\n",
    ),
    Variant("own_loop", OWN_LOOP),
    Variant("best_restored", RESTORED),
    Variant("argparse_in_main", IN_MAIN, edits=(IMPORT,)),
    Variant("cosine", COSINE),
    Variant(
        "config_dictionary",
        MAIN.replace("N_EPOCHS = 3", "N_EPOCHS = CFG['epochs']"),
        model=f"CFG = {{'model': {CONFIG}, 'epochs': 3}}\nmodel = ViT(**CFG['model']).to(device)",
    ),
    Variant(
        "tqdm",
        MAIN.replace("range(N_EPOCHS)", "tqdm(range(N_EPOCHS))"),
        edits=(("import random\n", "import random\nfrom tqdm import tqdm\n"),),
    ),
    Variant("compile", MAIN, model=SMALL + "\nmodel = torch.compile(model.to(device))"),
    Variant(
        "wandb",
        "wandb.init(project='vit')\n"
        + MAIN
        + "    wandb.log({'loss': test_loss_history[-1]})\nwandb.finish()\n",
        edits=(("import random\n", "import random\nimport wandb\n"),),
    ),
    Variant(
        "while_constant",
        ADAM
        + "epoch = 0\nwhile epoch < 4:\n    train_epoch(model, optimizer, train_loader, train_loss_history)\n"
        "    evaluate(model, test_loader, test_loss_history)\n    epoch += 1\n",
        last="4 epochs of `model`",
    ),
    Variant("while_stop", WHILE_STOP, last="4 epochs of `model`"),
    Variant("class_trainer", HISTORIES + IN_TRAINER),
    Variant("argparse_top", ARGPARSE_TOP, edits=(IMPORT,)),
    Variant(
        "timm_scheduler",
        TIMM,
        edits=(("import random\n", "import random\nfrom timm.scheduler import CosineLRScheduler\n"),),
        last="but `timm.scheduler.CosineLRScheduler` is not allowed",
        code=1,
    ),
    Variant(
        "own_dataset",
        MAIN,
        edits=(
            (
                'train_set = datasets.ImageFolder("data/train", transform=transform)\n',
                "class Flipped(torch.utils.data.Dataset):\n    def __init__(self, inner, then):\n"
                "        self.inner, self.then = inner, then\n"
                "        self.classes, self.targets = inner.classes, inner.targets\n"
                "    def __len__(self):\n        return len(self.inner)\n"
                "    def __getitem__(self, index):\n        image, label = self.inner[index]\n"
                "        return self.then(image), label\n\n\n"
                "flips = transforms.Compose([*transform.transforms, transforms.RandomHorizontalFlip()])\n"
                'train_set = Flipped(datasets.ImageFolder("data/train"), flips)\n',
            ),
        ),
    ),
    Variant(
        "dataclass",
        MAIN.replace("N_EPOCHS = 3", "N_EPOCHS = cfg.epochs").replace(
            "lr=3e-3", "lr=cfg.lr, betas=cfg.betas"
        ),
        model="@dataclass\nclass Config:\n    dim: int = 64\n    depth: int = 2\n    heads: int = 4\n"
        "    lr: float = 3e-3\n"
        "    betas: tuple = (0.9, 0.99)\n    epochs: int = 3\n\n    def model(self):\n"
        "        return {'dim': self.dim, 'depth': self.depth, 'heads': self.heads, 'mlp_dim': 128}\n\n"
        "cfg = Config()\nmodel = ViT(image_size=28, patch_size=4, num_classes=6, **cfg.model()).to(device)",
        edits=(("import random\n", "import random\nfrom dataclasses import dataclass\n"),),
    ),
    Variant("mixed_precision", MAIN, edits=((EPOCH, AMP_EPOCH.lstrip("\n")),)),
    Variant(
        "tensorboard",
        "writer = SummaryWriter()\n" + MAIN + "    writer.add_scalar('loss', test_loss_history[-1], epoch)\n",
        edits=(("import random\n", "import random\nfrom torch.utils.tensorboard import SummaryWriter\n"),),
    ),
)


def main() -> None:
    """Write them all."""
    from grader.course.reference_solution import solved_source

    root = Path(__file__).resolve().parents[2]
    solved = solved_source(
        (root / "reference/vit_defects/solution.py").read_text(encoding="utf-8"), "solution.py"
    )
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for variant in TRAININGS:
        (folder / f"{variant.name}.py").write_text(variant.source(solved), encoding="utf-8")


if __name__ == "__main__":
    main()
