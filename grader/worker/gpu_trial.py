"""Whether a locked-down worker can use the GPU: a host whose children take one step of training on it.

No submission is involved. It loads what the worker host loads and forks as that does, so what fails here
fails there. Entry point `python -m grader.worker.gpu_trial`.

Tests: tests/grading/test_devices.py
"""

import json
from typing import BinaryIO

from grader.sandbox import forkserver
from grader.worker.worker_host import own_variables, prepare

MOST_CHARACTERS = 500


def main() -> None:
    """Run the host."""
    own_variables()
    forkserver.main(attempt, prepare)


def attempt(_: BinaryIO, writer: BinaryIO) -> None:
    """Take the step, and write a line of JSON: what failed, or an empty text."""
    try:
        train_a_step("cuda")
        fault = ""
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
    writer.write(json.dumps(fault[:MOST_CHARACTERS]).encode() + b"\n")
    writer.flush()


def train_a_step(device: str) -> None:
    """One step of a model with a convolution, attention and a linear layer.

    Raises:
        RuntimeError: The device cannot be used.
    """
    import torch
    from torch import nn

    images = torch.randn(8, 1, 16, 16, device=device)
    patches = nn.Conv2d(1, 32, 4, stride=4, device=device)
    head = nn.Linear(32, 6, device=device)
    optimizer = torch.optim.AdamW([*patches.parameters(), *head.parameters()])
    tokens = patches(images).flatten(2).transpose(1, 2)
    tokens = nn.functional.scaled_dot_product_attention(tokens, tokens, tokens)
    loss = nn.functional.cross_entropy(head(tokens.mean(1)), torch.zeros(8, dtype=torch.long, device=device))
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    loss.item()


if __name__ == "__main__":
    main()
