"""Rigged images and tokens of any shape are recognized one by one."""

import numpy as np
import pytest
import torch

from grader.kit import (
    Fake,
    FakeCall,
    Mismatch,
    classified_data,
    image_number,
    image_numbers,
    numbered_images,
    numbered_tokens,
    token_numbers,
)

SHAPES = [(1, 28, 28), (3, 32, 32), (3, 9, 17), (2, 5, 3), (1, 1, 10), (5, 10, 1)]


def asked(fake: Fake, *args: object) -> object:
    """What a fake answers to a call."""
    return fake.answer(FakeCall("model", 1, 0, args, {}, training=False, gradients=False))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_images_of_any_shape_are_recognized(shape: tuple[int, int, int]) -> None:
    """In any order, scaled, as tensors, and one by one as they are shown."""
    images = numbered_images(300, 4, shape)
    assert images.shape == (300, *shape)
    assert images.dtype == np.float32
    assert np.abs(images).max() <= 1
    order = np.random.default_rng(1).permutation(300)
    assert image_numbers(images[order]).tolist() == order.tolist()
    assert image_numbers(torch.from_numpy(images[order] * 0.3)).tolist() == order.tolist()
    if len(images[137]) in (1, 3):
        enlarged = images[137].repeat(2, axis=1).repeat(2, axis=2) * 0.5 + 0.5
        assert image_number(np.moveaxis(enlarged, 0, -1), shape[1:]) == 137


def test_images_are_the_seeds() -> None:
    one, same, other = (numbered_images(3, seed, (3, 8, 12)) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_what_cannot_be_numbered_is_told() -> None:
    with pytest.raises(ValueError, match="a number takes 10 pixels"):
        numbered_images(2, 1, (3, 3, 3))
    with pytest.raises(ValueError, match="at most 1023"):
        numbered_images(1024, 1)
    with pytest.raises(ValueError, match="take 4 tokens"):
        numbered_tokens(10, 1, vocabulary=2, length=3)
    with pytest.raises(ValueError, match="two tokens are needed"):
        numbered_tokens(10, 1, vocabulary=1, length=30)


@pytest.mark.parametrize(
    ("vocabulary", "length", "count"), [(2, 12, 300), (27, 9, 300), (50_000, 4, 300), (3, 1, 2)]
)
def test_tokens_are_recognized(vocabulary: int, length: int, count: int) -> None:
    """Also where they are cut, or more were generated."""
    tokens = numbered_tokens(count, 5, vocabulary=vocabulary, length=length)
    assert tokens.shape == (count, length)
    assert tokens.dtype == np.int64
    assert tokens.min() >= 0 and tokens.max() < vocabulary
    order = np.random.default_rng(1).permutation(count)
    longer = np.concatenate([tokens[order], np.zeros((count, 2), int)], axis=1)
    for given in (tokens[order], torch.from_numpy(tokens[order]), longer):
        assert token_numbers(given, count, vocabulary=vocabulary).tolist() == order.tolist()


def test_tokens_that_are_none_of_them_have_no_number() -> None:
    tokens = numbered_tokens(10, 5, vocabulary=4, length=3)
    given = np.array([[1, 2, 0], [3, 3, 0], [0, -4, 1], [9, 0, 0]])
    assert token_numbers(given, 10, vocabulary=4).tolist() == [9, -1, -1, -1]
    assert token_numbers(tokens[:, :1], 10, vocabulary=4).tolist() == [-1] * 10


def test_rigged_data_may_have_any_shape() -> None:
    data = classified_data(("a", "b"), (5, 3), accuracy=0.5, seed=1, shape=(3, 6, 11))
    assert image_numbers(data.arrays["images"]).tolist() == list(range(8))


def test_a_fake_answers_for_images_and_for_tokens() -> None:
    """By the numbers in them, whatever the shape; for others it does not answer."""
    rows = torch.arange(20).view(10, 2)
    images = torch.from_numpy(numbered_images(12, 1, (3, 4, 5)))
    answer = asked(Fake.rows(rows), images[[7, 2]])
    assert torch.equal(torch.as_tensor(answer), rows[[7, 2]])
    tokens = torch.from_numpy(numbered_tokens(10, 1, vocabulary=5, length=6))
    fake = Fake.rows(rows, vocabulary=5, further=(rows + 1,))
    answer, more = asked(fake, tokens[[3, 9]])  # type: ignore[misc]
    assert torch.equal(answer, rows[[3, 9]]) and torch.equal(more, rows[[3, 9]] + 1)
    with pytest.raises(Mismatch, match="images other than those it was meant to see"):
        asked(Fake.rows(rows), images[[11]])
    with pytest.raises(Mismatch, match="sequences of tokens other than those"):
        asked(fake, tokens[:1] + 4)
    with pytest.raises(Mismatch, match=r"shape \(10, 6\) instead of a batch of images"):
        asked(Fake.rows(rows), tokens)
