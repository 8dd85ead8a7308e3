"""Finding the query, key, value and output projections among a student's weights.

Names and layout are the student's business. Shapes show which tensors are which, but not in which order the
rows of the projections must be read. So every legitimate reading is tried: fused, separate or per head;
query, key and value in any order; role, head and feature in any nesting; with or without bias.
"""

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grader.domain.errors import Interruption

Tensor = Any
MAX_TENSORS = 80  # more cannot be distinguished in a reasonable time


@dataclass(frozen=True)
class Projections:
    """One reading of a student's attention weights.

    Attributes:
        q, k, v: (heads, dim_head, dim).
        q_bias, k_bias, v_bias: (heads, dim_head); zeros if there is none.
        out: (dim, heads, dim_head), or None if there is no output projection.
        out_bias: (dim,); zeros if there is none.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    q_bias: Tensor
    k_bias: Tensor
    v_bias: Tensor
    out: Tensor | None
    out_bias: Tensor


class UnreadableWeights(Interruption):
    """The weights cannot be read as projections; the message says what is there instead."""


@dataclass(frozen=True)
class _Sizes:
    dim: int
    heads: int
    dim_head: int

    @property
    def inner(self) -> int:
        return self.heads * self.dim_head


def readings(weights: Mapping[str, Tensor], *, dim: int, heads: int, dim_head: int) -> Iterator[Projections]:
    """Every legitimate reading of the weights.

    Args:
        weights: Parameters by name, in order of registration. Sizes should be distinct, so that shapes show
            roles: dim, heads * dim_head, dim_head, 3 * dim_head all different.

    Raises:
        UnreadableWeights: On the first `next`, before any reading: their sizes do not add up to three
            projections of heads * dim_head rows.
    """
    import torch

    sizes, weights = _Sizes(dim, heads, dim_head), squeezed(weights)
    matrices = {name: value for name, value in weights.items() if value.ndim >= 2 and dim in value.shape}
    if len(weights) > MAX_TENSORS:
        raise UnreadableWeights(f"{len(weights)} tensors, far more than an attention needs")
    is_readable = False
    for out_names in (*_out_candidates(matrices, sizes), ()):
        ins = {name: value for name, value in matrices.items() if name not in out_names}
        outs = [matrices[name] for name in out_names]
        # of a square one the shape does not tell by which side it is multiplied
        of_ins = (True, False) if _has_square(ins.values(), dim) else (True,)
        of_outs = (False, True) if _has_square(outs, dim) else (False,)
        for rows_last, columns_last in itertools.product(of_ins, of_outs):
            rows = {name: _rows(value, dim, last=rows_last) for name, value in ins.items()}
            if sum(len(value) for value in rows.values()) != 3 * sizes.inner:
                continue
            is_readable = True
            columns = [_columns(value, dim, last=columns_last) for value in outs]
            out = torch.cat(columns, dim=1) if columns else None
            for biases, out_bias in _all_biases(weights, rows, out_names, sizes):
                yield from _arranged(rows, biases, out, out_bias, sizes)
    if not is_readable:
        shapes = ", ".join(str(tuple(value.shape)) for value in matrices.values()) or "none"
        raise UnreadableWeights(shapes)


def squeezed(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights without axes of length one: a bias (1, 1, n) as (n,), a convolution (n, m, 1) as (n, m).

    So sizes by which weights are told apart must be above one.
    """
    return {name: value.squeeze() for name, value in weights.items()}


def attention(x: Tensor, parts: Projections, *, scale: float | None = None) -> Tensor:
    """Multi-head self-attention of x, (batch, tokens, dim), by PyTorch's own function.

    Source: Vaswani et al. (2017), equation 1; scale defaults to dim_head ** -0.5.
    """
    import torch
    from torch.nn import functional as F

    q, k, v = (
        torch.einsum("bnd,hfd->bhnf", x, weight) + bias[:, None]
        for weight, bias in ((parts.q, parts.q_bias), (parts.k, parts.k_bias), (parts.v, parts.v_bias))
    )
    mixed = F.scaled_dot_product_attention(q, k, v, scale=scale)
    if parts.out is None:
        return mixed.transpose(1, 2).flatten(2)
    return torch.einsum("bhnf,dhf->bnd", mixed, parts.out) + parts.out_bias


def _out_candidates(matrices: Mapping[str, Tensor], sizes: _Sizes) -> list[tuple[str, ...]]:
    """Tensors that can be the output projection, the likeliest (the last registered) first.

    It is one tensor, or one for every head, with names that differ only in numbers.
    """
    alike: dict[str, list[str]] = {}
    for name in matrices:
        alike.setdefault(re.sub(r"\d+", "#", name), []).append(name)
    groups = [(name,) for name in matrices] + [tuple(names) for names in alike.values() if len(names) > 1]
    fitting = [g for g in groups if sum(matrices[n].numel() for n in g) == sizes.dim * sizes.inner]
    return fitting[::-1]


def _has_square(values: Iterable[Tensor], dim: int) -> bool:
    """Whether in one of them several axes can be the input's, or the output's."""
    return any(tuple(value.shape).count(dim) > 1 for value in values)


def _rows(value: Tensor, dim: int, *, last: bool) -> Tensor:
    """A projection of the input as (rows, dim), from any axes."""
    axis = _dim_axis(value, dim, last=last)
    return value.movedim(axis, -1).reshape(-1, dim)


def _columns(value: Tensor, dim: int, *, last: bool) -> Tensor:
    """The output projection as (dim, columns), from any axes."""
    axis = _dim_axis(value, dim, last=last)
    return value.movedim(axis, 0).reshape(dim, -1)


def _dim_axis(value: Tensor, dim: int, *, last: bool) -> int:
    axes = [axis for axis, size in enumerate(value.shape) if size == dim]
    return axes[-1] if last else axes[0]


def _all_biases(
    weights: Mapping[str, Tensor], rows: Mapping[str, Tensor], out_names: tuple[str, ...], sizes: _Sizes
) -> Iterator[tuple[Tensor, Tensor]]:
    """What the biases of the projections' rows, (3 * inner,), and of the output, (dim,), can be."""
    beside = _biases_beside(weights, rows)
    yield _biases(weights, rows, out_names, sizes), _out_bias(weights, {*beside.values()}, out_names, sizes)
    alike = _biases_alike(weights, rows, out_names, sizes.dim)
    if alike is not None:
        biases, out_bias, taken = alike
        yield biases, _out_bias(weights, taken, out_names, sizes) if out_bias is None else out_bias
    if not beside:
        yield from _loose_biases(weights, rows, out_names, sizes)


def _biases_beside(weights: Mapping[str, Tensor], rows: Mapping[str, Tensor]) -> dict[str, str]:
    """The names of biases that stand by their names beside the projections of the input, by those."""
    found: dict[str, str] = {}
    for name, value in rows.items():
        for bias in _beside(weights, name):
            if weights[bias].numel() == len(value):
                found.setdefault(name, bias)
    return found


def _biases(
    weights: Mapping[str, Tensor], rows: Mapping[str, Tensor], out_names: tuple[str, ...], sizes: _Sizes
) -> Tensor:
    """The biases of the projections' rows, (3 * inner,): by name beside the weight, else by size."""
    import torch

    beside = _biases_beside(weights, rows)
    if not beside:
        loose = [
            value.reshape(-1)
            for name, value in weights.items()
            if name not in rows and name not in out_names and value.numel() % sizes.dim_head == 0
            if value.numel() != sizes.dim and value.numel() > 1
        ]
        if sum(map(len, loose)) == 3 * sizes.inner:
            return torch.cat(loose)
    return torch.cat(
        [
            weights[beside[name]].reshape(-1) if name in beside else torch.zeros(len(value)).to(value)
            for name, value in rows.items()
        ]
    )


def _loose_biases(
    weights: Mapping[str, Tensor], rows: Mapping[str, Tensor], out_names: tuple[str, ...], sizes: _Sizes
) -> Iterator[tuple[Tensor, Tensor]]:
    """The same of vectors for one projection each, by whose names nobody knows for which.

    BEiT (Bao et al. 2022) has them for q and v alone: the softmax takes no notice of a bias of k.
    """
    import torch

    of_output = {bias for name in out_names for bias in _beside(weights, name)}
    loose = [
        name
        for name, value in weights.items()
        if value.ndim == 1 and len(value) == sizes.inner and name not in of_output
    ]
    may_be_output = sizes.inner == sizes.dim and not of_output
    for own in (loose, loose[:-1])[: 1 + may_be_output]:
        out_bias = _out_bias(weights, set(own), out_names, sizes)
        for places in itertools.combinations(range(3), len(own)):
            biases = torch.zeros(3, sizes.inner).to(out_bias)
            for place, name in zip(places, own, strict=True):
                biases[place] = weights[name]
            if own:
                yield biases.reshape(-1), out_bias


def _out_bias(
    weights: Mapping[str, Tensor], taken: Collection[str], out_names: tuple[str, ...], sizes: _Sizes
) -> Tensor:
    """The bias of the output projection: by name beside its weight, else the last vector that is not taken.

    Args:
        taken: The biases of other projections, which may be as long.
    """
    import torch

    names = [bias for name in out_names for bias in _beside(weights, name)]
    beside = [weights[name].reshape(-1) for name in names if weights[name].numel() == sizes.dim]
    if beside:
        return torch.stack(beside).sum(dim=0)
    loose = [
        value
        for name, value in weights.items()
        if value.ndim == 1 and len(value) == sizes.dim and name not in taken
    ]
    example = next(iter(weights.values()))
    return loose[-1] if loose else torch.zeros(sizes.dim).to(example)


WEIGHT_AND_BIAS = (("weight", "bias"), ("kernel", "bias"), ("matrix", "bias"), ("w", "b"))


def _beside(weights: Mapping[str, Tensor], name: str) -> Iterator[str]:
    """The names of what can be the bias of a weight by its name: `q.bias` of `q.weight`, `b_q` of `w_q`."""
    path, dot, own = name.rpartition(".")
    by_lower_case = {key.lower(): key for key in weights}
    for weight, bias in WEIGHT_AND_BIAS:
        for pattern in (rf"{weight}$", rf"^{weight}(?=_|[a-z]$)"):
            renamed, count = re.subn(pattern, bias, own, flags=re.IGNORECASE)
            found = by_lower_case.get(f"{path}{dot}{renamed}".lower())
            if count and found not in (None, name):
                yield found


def _biases_alike(
    weights: Mapping[str, Tensor], rows: Mapping[str, Tensor], out_names: tuple[str, ...], dim: int
) -> tuple[Tensor, Tensor | None, set[str]] | None:
    """The biases of rows and output by names that differ in one word: `offset_q` and `W_q`, `b.q` and `w.q`.

    Returns:
        Those of the rows, (3 * inner,), that of the output, None if there is none, and the names of all of
        them; None where no vector has such a name, or one fits several matrices.
    """
    import torch

    lengths = {**{name: len(value) for name, value in rows.items()}, **dict.fromkeys(out_names, dim)}
    found: dict[str, Tensor] = {}
    taken = set()
    for other, value in weights.items():
        owners = [
            name for name in lengths if value.ndim < weights[name].ndim and _differ_in_a_word(name, other)
        ]
        if other not in lengths and len(owners) == 1 and value.numel() == lengths[owners[0]]:
            found[owners[0]] = value.reshape(-1)
            taken.add(other)
    parts = [found.get(name, torch.zeros(len(value)).to(value)) for name, value in rows.items()]
    if not found or any(len(part) != len(value) for part, value in zip(parts, rows.values(), strict=True)):
        return None
    out_bias = found.get(out_names[0]) if len(out_names) == 1 else None
    return torch.cat(parts), out_bias, taken


def _differ_in_a_word(name: str, other: str) -> bool:
    words, others = re.split("[._]", name), re.split("[._]", other)
    return 1 < len(words) == len(others) and sum(map(str.__ne__, words, others)) == 1


def _arranged(
    rows: Mapping[str, Tensor], biases: Tensor, out: Tensor | None, out_bias: Tensor, sizes: _Sizes
) -> Iterator[Projections]:
    """The readings of given rows: axes in any nesting, roles in any order."""
    import torch

    matrix = torch.cat(list(rows.values()))
    table = torch.cat([matrix, biases[:, None]], dim=1)  # a row's bias travels with it
    outs = [None] if out is None else _out_readings(out, sizes)
    for stacked in _stackings(table, [len(value) for value in rows.values()], sizes):
        for roles in itertools.permutations(range(3)):
            q, k, v = (stacked[role] for role in roles)
            for reading in outs:
                yield Projections(
                    q[..., :-1],
                    k[..., :-1],
                    v[..., :-1],
                    q[..., -1],
                    k[..., -1],
                    v[..., -1],
                    reading,
                    out_bias,
                )


def _out_readings(out: Tensor, sizes: _Sizes) -> list[Tensor]:
    by_head = out.reshape(sizes.dim, sizes.heads, sizes.dim_head)
    by_feature = out.reshape(sizes.dim, sizes.dim_head, sizes.heads).transpose(1, 2)
    return [by_head, by_feature]


def _stackings(table: Tensor, counts: list[int], sizes: _Sizes) -> Iterator[Tensor]:
    """The rows as (3, heads, dim_head, dim + 1) in every nesting."""
    import torch

    names = {"role": 3, "head": sizes.heads, "feature": sizes.dim_head}
    separate = len(counts) == 3 and len(set(counts)) == 1
    for order in itertools.permutations(names):
        if separate and order[0] != "role":
            continue  # the roles are separate tensors
        shaped = table.reshape(*(names[name] for name in order), -1)
        yield shaped.permute(*(order.index(name) for name in names), 3)
    if sorted(counts) == [sizes.inner, 2 * sizes.inner]:
        single_first = counts[0] == sizes.inner
        single = table[: sizes.inner] if single_first else table[2 * sizes.inner :]
        double = table[sizes.inner :] if single_first else table[: 2 * sizes.inner]
        pair = {"role": 2, "head": sizes.heads, "feature": sizes.dim_head}
        for order in itertools.permutations(pair):
            pairs = double.reshape(*(pair[name] for name in order), -1)
            pairs = pairs.permute(*(order.index(name) for name in pair), 3)
            for shape in ((sizes.heads, sizes.dim_head), (sizes.dim_head, sizes.heads)):
                single_rows = single.reshape(*shape, -1)
                single_rows = single_rows if shape[0] == sizes.heads else single_rows.transpose(0, 1)
                yield torch.cat([single_rows[None], pairs])
