"""Patches that lie elsewhere, and the weights that may belong to their places."""

import pytest
import torch

from grader.kit.transformers.token_behavior import MOST_TENSORS, grids, places_rearranged, rearranged

ORDER = torch.tensor([3, 1, 0, 2])


@pytest.mark.parametrize(("side", "expected"), [(28, [2, 4, 7, 14]), (7, []), (1, []), (12, [2, 3, 4, 6])])
def test_a_grid_divides_the_side(side: int, expected: list[int]) -> None:
    assert grids(side) == expected


def test_each_patch_goes_to_its_new_place_as_a_whole() -> None:
    images = torch.arange(2 * 3 * 4 * 4.0).reshape(2, 3, 4, 4)
    moved = rearranged(images, 2, ORDER)
    patches = [images[:, :, row : row + 2, column : column + 2] for row in (0, 2) for column in (0, 2)]
    assert torch.equal(moved[:, :, :2, :2], patches[3])
    assert torch.equal(moved[:, :, :2, 2:], patches[1])
    assert torch.equal(moved[:, :, 2:, :2], patches[0])
    assert torch.equal(moved[:, :, 2:, 2:], patches[2])
    assert torch.equal(rearranged(moved, 2, ORDER.argsort()), images)


def test_nothing_is_tried_first_and_what_counts_places_then() -> None:
    positions = torch.randn(1, 4, 8)
    first, second, *rest = places_rearranged({"head": torch.randn(6, 9), "pos": positions}, 2, ORDER)
    assert first == {}
    assert list(second) == ["pos"] and torch.equal(second["pos"], positions[:, ORDER])
    assert rest == []


@pytest.mark.parametrize(("place", "kept"), [(0, 0), (1, 4)])
def test_a_class_token_may_stand_before_or_behind(place: int, kept: int) -> None:
    positions = torch.randn(5, 3)
    tried = list(places_rearranged({"pos": positions}, 2, ORDER))[1:]
    assert len(tried) == 2
    moved = tried[place]["pos"]
    assert torch.equal(moved[kept], positions[kept])
    others = [number for number in range(5) if number != kept]
    assert torch.equal(moved[others], positions[others][ORDER])


def test_a_list_with_one_tensor_for_each_place_is_moved_as_one() -> None:
    state = {f"at.{number}.bias": torch.full((3,), float(number)) for number in range(4)}
    moved = [found for found in places_rearranged(state, 2, ORDER) if len(found) == 4]
    assert [float(moved[0][f"at.{number}.bias"][0]) for number in range(4)] == ORDER.tolist()


def test_rows_and_columns_beside_each_other_move_together() -> None:
    state = {"pos_rows": torch.randn(4, 2), "pos_columns": torch.randn(4, 2)}
    assert any(set(found) == set(state) for found in places_rearranged(state, 2, ORDER))


def test_whole_numbers_are_no_positions_and_the_search_is_bounded() -> None:
    state = {"ids": torch.arange(4), **{f"layer{'x' * n}": torch.randn(4, n + 1) for n in range(60)}}
    tried = list(places_rearranged(state, 2, ORDER))
    assert not any("ids" in found for found in tried)
    assert len({name for found in tried for name in found}) <= MOST_TENSORS
