"""The worker host: loads what students use once, then forks a locked-down worker per request.

It holds no secret: neither the reference nor labels nor other submissions ever reach it. `grader.sandbox`
decides what a worker may use, and `service` what it answers.

Tests: tests/grading/test_limits_by_name.py, tests/students/warm/test_warm_process.py
"""

import json
import os
import sys
from collections.abc import Mapping
from typing import BinaryIO

from grader.sandbox import forkserver, libc

# what students import; loading them after the lock-down would be slow, and some of it would fail
LIBRARIES = (
    *("torchvision.transforms", "torchvision.datasets", "einops.layers.torch"),
    *("matplotlib.pyplot", "seaborn", "sklearn.metrics", "pandas", "tqdm.auto"),
)


WARM_FLAG = "--warm"
LATER_FLAG = "--later"
MOST_SURROUNDINGS = 10_000_000  # bytes


def main() -> None:
    """Run the host, or with `--local` one worker; with `--warm` too, one that loads everything beforehand.

    With `--later` it gets its surroundings when it is needed: see `serve_later`.
    """
    own_variables()
    libc.keep_freed_memory()
    cold = forkserver.LOCAL_FLAG in sys.argv and WARM_FLAG not in sys.argv
    forkserver.main(serve_later if LATER_FLAG in sys.argv else serve, prepare_little if cold else prepare)


def own_variables() -> None:
    """Set the environment variables that libraries read in a worker."""
    # one thread: a forked child of a process that ran several hangs, and two workers would fight for cores
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"
    os.environ["MPLBACKEND"] = "agg"


def serve(reader: BinaryIO, writer: BinaryIO) -> None:
    """Serve one judge."""
    from grader.worker.service import serve as serve_requests

    serve_requests(reader, writer)


def surroundings(environment: Mapping[str, str], folder: str) -> bytes:
    """The first line that a worker that serves later reads.

    Args:
        environment: All of it.
        folder: Where it works.
    """
    return json.dumps({"environment": dict(environment), "folder": folder}).encode() + b"\n"


def serve_later(reader: BinaryIO, writer: BinaryIO) -> None:
    """Serve one judge on a student's own machine, if one comes; it sends the surroundings first."""
    line = reader.readline(MOST_SURROUNDINGS)
    if not line.endswith(b"\n"):
        return
    surroundings = json.loads(line)
    os.environ.clear()
    os.environ.update(surroundings["environment"])
    own_variables()
    os.chdir(surroundings["folder"])
    del sys.argv[1:]  # a program that reads its arguments finds none
    serve(reader, writer)


def prepare_little() -> None:
    """Load nothing beforehand: a single worker loads only what its submission imports."""
    import grader.worker.service  # noqa: F401


def prepare() -> None:
    """Load torch and the students' libraries, and use them once.

    Without a backward pass and a step of an optimizer: both ask CUDA how many GPUs there are, and none of the
    forks of a process that has asked can use a GPU.
    """
    import importlib

    import torch
    import torch._dynamo  # the first step of an optimizer would load it
    from torch import nn

    import grader.worker.service  # noqa: F401
    from grader.protocol import typed_messages

    torch.set_num_threads(1)
    typed_messages.prepare_validators()
    for name in LIBRARIES:
        importlib.import_module(name)
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.Dropout(0.5), nn.Linear(4, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    examples = torch.utils.data.TensorDataset(torch.randn(3, 4), torch.tensor([0, 1, 0]))
    for inputs, labels in torch.utils.data.DataLoader(examples, batch_size=2):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels)
    _count()
    _draw()  # the first figure builds the font cache


def _count() -> None:
    """Count as students usually do; the first time, scikit-learn looks through all installed packages."""
    from sklearn.metrics import confusion_matrix

    confusion_matrix([0, 1], [1, 1])


def _draw() -> None:
    """Draw what students usually draw: an image, and a heat map with numbers and names."""
    import seaborn
    from matplotlib import pyplot as plt

    names = ["one", "two"]
    figure, (left, right) = plt.subplots(1, 2)
    left.imshow([[0.0, 1.0], [1.0, 0.0]], cmap="gray")
    left.set_title("warm", fontsize=8)
    seaborn.heatmap([[0, 1], [1, 0]], annot=True, ax=right, xticklabels=names, yticklabels=names)
    right.set_ylabel("warm")
    figure.tight_layout()
    figure.canvas.draw()
    plt.close(figure)
