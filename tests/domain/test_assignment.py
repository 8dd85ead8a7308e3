"""What an assignment knows about its stubs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.domain.assignment import Assignment, Component, DataUse
from grader.domain.limits import Limits


@pytest.fixture
def with_stub() -> Callable[[str], Assignment]:
    """An assignment with one stub, `Part`, of a signature."""
    data = DataUse("real", "synthetic", ("a", "b"))
    return lambda signature: Assignment(
        "small", "Small", Path(), "", (), (Component("Part", "class", signature),), (), (), (), Limits(), data
    )


@pytest.mark.parametrize(
    ("signature", "required", "every"),
    [
        ("", (), ()),
        ("dim, fn", ("dim", "fn"), ("dim", "fn")),
        ("dim, heads=4, dropout=0.", ("dim",), ("dim", "heads", "dropout")),
        ("*, size, pool='cls', dim, rate=0.", ("size", "dim"), ("size", "pool", "dim", "rate")),
        ("dim, sizes=(1, 2), names={'a': 1, 'b': 2}", ("dim",), ("dim", "sizes", "names")),
        ("dim: int, sizes: dict[str, int], *, heads: int = 4", ("dim", "sizes"), ("dim", "sizes", "heads")),
        ("dim, /, depth=2, *, heads", ("dim", "heads"), ("dim", "depth", "heads")),
        ("dim=1, /, depth=2", (), ("dim", "depth")),
        ("dim, *args, **kwargs", ("dim",), ("dim",)),
        ("pool='a, b=c', *, text=\"d, e\"", (), ("pool", "text")),
    ],
)
def test_parameters_are_read_as_python_reads_them(
    with_stub: Callable[[str], Assignment], signature: str, required: tuple[str, ...], every: tuple[str, ...]
) -> None:
    """Commas within defaults and annotations divide nothing; stars are not names."""
    assignment = with_stub(signature)
    assert assignment.parameters_of("Part") == required
    assert assignment.all_parameters_of("Part") == every


def test_parameters_of_our_stubs(assignment: Assignment) -> None:
    assert assignment.parameters_of("train_epoch") == ("model", "optimizer", "data_loader", "loss_history")
    assert assignment.parameters_of("plot_classwise_predictions") == ("model", "data_loader", "class_names")
    assert assignment.all_parameters_of("Attention") == ("dim", "heads", "dim_head", "dropout")
    needed = ("image_size", "patch_size", "num_classes", "dim", "depth", "heads", "mlp_dim")
    assert assignment.parameters_of("ViT") == needed
    optional = ("pool", "channels", "dim_head", "dropout", "emb_dropout")
    assert assignment.all_parameters_of("ViT") == needed + optional


def test_a_stub_that_there_is_not_is_a_key_error(with_stub: Callable[[str], Assignment]) -> None:
    for ask in (Assignment.parameters_of, Assignment.all_parameters_of):
        with pytest.raises(KeyError, match="Other"):
            ask(with_stub("dim"), "Other")
