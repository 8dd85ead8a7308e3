"""A model's modules as an indented table with the parameters of each and of all below it."""

from collections.abc import Sequence
from dataclasses import dataclass

from grader.domain.evidence import LayerSummary


@dataclass(frozen=True)
class LayerRow:
    """One module.

    Attributes:
        name: The last part of its path; the type for the model itself.
        type: The class's name.
        depth: 0 for the model itself.
        own: Trainable numbers that it holds itself.
        whole: The same with all modules below it.
    """

    name: str
    type: str
    depth: int
    own: int
    whole: int


def layer_rows(layers: Sequence[LayerSummary]) -> tuple[LayerRow, ...]:
    """The rows in the order of the layers (each module before those within it)."""
    rows: list[LayerRow] = []
    # from the end: what follows a module and is deeper belongs to it
    below: dict[int, int] = {}
    for layer in reversed(layers):
        deeper = sum(count for depth, count in below.items() if depth > layer.depth)
        below = {depth: count for depth, count in below.items() if depth <= layer.depth}
        whole = layer.parameters + deeper
        below[layer.depth] = below.get(layer.depth, 0) + whole
        name = layer.path.rpartition(".")[2] or layer.type
        rows.append(LayerRow(name, layer.type, layer.depth, layer.parameters, whole))
    return tuple(reversed(rows))
