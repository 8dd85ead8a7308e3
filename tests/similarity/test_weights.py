"""Checkpoints are compared by their tensors' bytes, and nothing is unpickled."""

import io
import json
import zipfile

import pytest
import torch
from safetensors.torch import save

from grader.domain.errors import SubmissionError
from grader.similarity.weights import likeness, read_weights, without_given


def test_the_same_tensors_under_other_names_in_another_order(weights_of, state):
    """Identical, also within more: an optimizer, an epoch."""
    mine = state(1)
    renamed = {f"net.{i}": tensor for i, (_, tensor) in enumerate(reversed(mine.items()))}
    assert likeness(weights_of(mine), weights_of(renamed)).identical
    assert likeness(weights_of(mine), weights_of({"model": mine, "step": torch.randn(7)})).identical


def test_a_little_more_training_or_noise_is_near(weights_of, state):
    """Whatever the order of the tensors."""
    mine = state(1)
    moved = {key: value * (1 + 0.01 * torch.randn_like(value)) for key, value in reversed(mine.items())}
    found = likeness(weights_of(mine), weights_of(moved))
    assert not found.identical
    assert found.near
    assert found.distance == pytest.approx(0.01, rel=0.5)


def test_other_weights_of_the_same_model_are_not_near(weights_of, state):
    """Ones and zeros, as normalizations begin, are nothing in common."""
    found = likeness(weights_of(state(1)), weights_of(state(2)))
    assert not found.identical
    assert not found.near
    assert found.distance > 0.5


def test_another_model_has_no_distance(weights_of, state):
    """Too little of it is of the same sizes."""
    other = {"a": torch.randn(100, 33), "b": torch.randn(64, 32)}
    found = likeness(weights_of(state(1)), weights_of(other))
    assert found.distance is None
    assert not found.near


def test_too_little_tells_nothing(weights_of):
    """A handful of numbers, or nothing but ones."""
    small = weights_of({"a": torch.randn(5)})
    ones = weights_of({"a": torch.ones(5000)})
    assert likeness(small, small) is None
    assert likeness(ones, ones) is None


def test_whole_numbers_and_nonsense_do_not_disturb(weights_of, state):
    """NaN, infinity and other types count neither for nor against."""
    odd = {
        "nan": torch.full((50,), float("nan")),
        "long": torch.arange(40),
        "double": torch.randn(30).double(),
    }
    assert likeness(weights_of({**state(1), **odd}), weights_of(state(1))).identical


def test_a_pickle_is_never_read(saved, state):
    """Not even one that would run something."""
    source = zipfile.ZipFile(io.BytesIO(saved(state(1))))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for entry in source.infolist():
            bad = b"cos\nabort\n(tR."
            archive.writestr(
                entry.filename, bad if entry.filename.endswith("data.pkl") else source.read(entry)
            )
    assert len(read_weights(file, "a.pth").sizes) == 6


def test_damage_is_told(saved, state):
    """As a sentence, not as an error of the zip's."""
    data = bytearray(saved(state(1)))
    at = data.index(b"data/0") + 400
    data[at : at + 8] = bytes(8)
    with pytest.raises(SubmissionError, match=r"a\.pth: is damaged"):
        read_weights(io.BytesIO(bytes(data)), "a.pth")
    with pytest.raises(SubmissionError, match="cannot be opened"):
        read_weights(io.BytesIO(b"no zip"), "a.pth")


def test_what_was_handed_out_is_in_nobodys_favor(weights_of, state):
    """Two who adapt one pretrained model have it in common, and a copy of the adapted one is still one."""
    pretrained = state(1)
    chance = torch.Generator().manual_seed(2)

    def adapted(*, head_alone=False):
        backbone = {
            key: value if head_alone else value + 0.01 * torch.randn(value.shape, generator=chance)
            for key, value in pretrained.items()
        }
        return {**backbone, "head.weight": torch.randn(4, 64, generator=chance)}

    def own(weights):
        return without_given(weights_of(weights), weights_of(pretrained))

    mine, theirs = adapted(), adapted()
    mine["head.weight"] = theirs["head.weight"]  # else it alone would tell them apart
    assert likeness(weights_of(mine), weights_of(theirs)).near, "so near does the common model bring them"
    assert not likeness(own(mine), own(theirs)).near
    assert likeness(own(mine), own({f"net.{key}": value for key, value in mine.items()})).identical
    assert likeness(own(mine), own({key: value * (1 + 1e-5) for key, value in mine.items()})).near
    assert likeness(own(adapted(head_alone=True)), own(adapted(head_alone=True))) is None


def test_safetensors_are_read_as_what_torch_saves(weights_of, state):
    mine = state(1)
    found = read_weights(io.BytesIO(save(mine, {"format": "pt"})), "a.safetensors")
    assert len(found.sizes) == 6 and likeness(found, weights_of(mine)).identical


@pytest.mark.parametrize(
    "entries",
    [
        {"a": {"data_offsets": [0, 10**9]}},
        {"a": {"data_offsets": [0, 16]}, "b": {"data_offsets": [8, 16]}},
        {"a": {"data_offsets": [-8, 16]}},
        {"a": {"data_offsets": ["x", None]}},
        {"a": []},
    ],
)
def test_a_header_that_lies_is_damage(entries):
    header = json.dumps(entries).encode()
    data = len(header).to_bytes(8, "little") + header + bytes(16)
    with pytest.raises(SubmissionError, match=r"a\.safetensors: is damaged; ask for the file again\."):
        read_weights(io.BytesIO(data), "a.safetensors")
