"""What the tests of similarity share: solutions, the template's part, checkpoints and pictures."""

import base64
import importlib.util
import io
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from PIL import Image

from grader.similarity.compared_pairs import Own, own
from grader.similarity.compared_work import SampledWeights
from grader.similarity.normalized_code import given_forms, read_code, units_not_given
from grader.similarity.weights import read_weights


@pytest.fixture(scope="session")
def solutions() -> ModuleType:
    """The module beside this one."""
    spec = importlib.util.spec_from_file_location("solutions", Path(__file__).with_name("solutions.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def given(solutions: ModuleType) -> frozenset[tuple[str, ...]]:
    """What the course handed out."""
    return given_forms(read_code("homework.py", solutions.template().encode()))


@pytest.fixture(scope="session")
def own_of(given: frozenset[tuple[str, ...]]) -> Callable[..., Own]:
    """The own part of a source."""

    def of(text: str, name: str = "homework.py") -> Own:
        return own(units_not_given(read_code(name, text.encode()), given))

    return of


@pytest.fixture(scope="session")
def saved() -> Callable[..., bytes]:
    """A checkpoint's bytes."""

    def of(state: object) -> bytes:
        file = io.BytesIO()
        torch.save(state, file)
        return file.getvalue()

    return of


@pytest.fixture(scope="session")
def weights_of(saved: Callable[..., bytes]) -> Callable[..., SampledWeights]:
    """The tensors of a checkpoint, read as a student's would be."""
    return lambda state: read_weights(io.BytesIO(saved(state)), "a.pth")


@pytest.fixture(scope="session")
def state() -> Callable[[int], dict[str, torch.Tensor]]:
    """Weights of a small model, from a seed."""

    def of(seed: int) -> dict[str, torch.Tensor]:
        chance = torch.Generator().manual_seed(seed)
        made = {f"blocks.{i}.weight": torch.randn(64, 32, generator=chance) for i in range(4)}
        return {**made, "norm.weight": torch.ones(64), "norm.bias": torch.zeros(64)}

    return of


@pytest.fixture(scope="session")
def picture() -> Callable[..., bytes]:
    """A picture of noise, from a seed, in a format."""

    def of(seed: int, kind: str = "PNG", size: tuple[int, int] = (120, 90)) -> bytes:
        pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, kind)
        return file.getvalue()

    return of


@pytest.fixture(scope="session")
def in_base64() -> Callable[[bytes], str]:
    """As a notebook holds a picture."""
    return lambda data: base64.b64encode(data).decode("ascii")
