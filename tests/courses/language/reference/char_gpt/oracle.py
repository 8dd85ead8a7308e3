"""What each mistake computes, from a student's own weights."""

import torch
import torch.nn.functional as F

DIM, HEADS = 22, 2
VOCABULARY, BLOCK = 19, 12


def attended(x, parts, *, kind="right"):
    """Causal attention with these projections, right or by one of the mistakes."""
    q, k, v = (
        torch.einsum("bnd,hfd->bhnf", x, weight) + bias[:, None]
        for weight, bias in ((parts.q, parts.q_bias), (parts.k, parts.k_bias), (parts.v, parts.v_bias))
    )
    tokens, dim_head = x.shape[1], q.shape[-1]
    scale = {"attention_without_scale": 1.0, "attention_scaled_by_dim": x.shape[-1] ** -0.5}.get(
        kind, dim_head**-0.5
    )
    scores = q @ k.transpose(-2, -1) * scale
    first = {"attention_without_mask": tokens, "attention_sees_the_next": 2}.get(kind, 1)
    behind = torch.ones(tokens, tokens, dtype=torch.bool).triu(first)
    if kind == "attention_masked_after_softmax":
        weights = scores.softmax(dim=-1).masked_fill(behind, 0.0)
    elif kind == "attention_softmax_over_queries":
        weights = scores.masked_fill(behind, float("-inf")).softmax(dim=-2).nan_to_num()
    else:
        weights = scores.masked_fill(behind, float("-inf")).softmax(dim=-1)
    mixed = weights @ v
    if kind == "attention_mixes_heads":
        mixed = mixed.reshape(x.shape[0], tokens, -1).view(x.shape[0], tokens, *q.shape[1::2]).transpose(1, 2)
    if parts.out is None:
        return mixed.transpose(1, 2).flatten(2)
    return torch.einsum("bhnf,dhf->bnd", mixed, parts.out) + parts.out_bias


ATTENTIONS = (
    "attention_without_mask",
    "attention_sees_the_next",
    "attention_masked_after_softmax",
    "attention_without_scale",
    "attention_scaled_by_dim",
    "attention_softmax_over_queries",
    "attention_mixes_heads",
)


def mlp_of(weights, activation):
    """The perceptron among a block's weights at their beginning, when its norms change nothing."""
    wide = next(w for w in weights.values() if w.shape == (4 * DIM, DIM))
    narrow = next(w for w in weights.values() if w.shape == (DIM, 4 * DIM))
    bias = sum((w for w in weights.values() if w.shape == (4 * DIM,)), torch.zeros(4 * DIM))
    last = sum(
        (w for w in weights.values() if w.shape == (DIM,) and not bool((w == 1).all())), torch.zeros(DIM)
    )
    return lambda x: activation(x @ wide.T + bias) @ narrow.T + last


def blocks(x, attend, weights):
    """What a block computes: right (with each GELU), and by each of the mistakes."""

    def norm(each):
        return F.layer_norm(each, (DIM,))

    mlp, tanh = mlp_of(weights, F.gelu), mlp_of(weights, lambda z: F.gelu(z, approximate="tanh"))
    relu, linear = mlp_of(weights, F.relu), mlp_of(weights, lambda z: z)
    h = x + attend(norm(x))
    bare = attend(norm(x))
    after = norm(x + attend(x))
    right = [h + each(norm(h)) for each in (mlp, tanh)]
    wrong = {
        "block_without_residual": bare + mlp(norm(bare)),
        "block_mlp_without_residual": mlp(norm(h)),
        "block_norm_after": norm(after + mlp(after)),
        "block_without_second_norm": h + mlp(h),
        "block_parallel": h + mlp(norm(x)),
        "block_with_relu": h + relu(norm(h)),
        "block_without_activation": h + linear(norm(h)),
    }
    return right, wrong


def models(tokens, weights, through):
    """What a GPT computes for each way in which its weights can be read: (right, by each of the mistakes)."""
    tables = [w for w in weights.values() if w.shape == (VOCABULARY, DIM)]
    learned = (w for w in weights.values() if w.shape in ((BLOCK, DIM), (1, BLOCK, DIM)))
    places = next(learned, torch.zeros(BLOCK, DIM)).reshape(BLOCK, DIM)
    bias = sum((w for w in weights.values() if w.shape == (VOCABULARY,)), torch.zeros(VOCABULARY))
    pairs = [(tables[0], tables[-1]), (tables[-1], tables[0])] if tables else []
    for table, head in pairs:
        embedded, own = table[tokens], places[: tokens.shape[1]]

        def scored(x, head=head, norm=True):
            return (F.layer_norm(x, (DIM,)) if norm else x) @ head.T + bias

        x = embedded + own
        yield (
            scored(through(x)),
            {
                "gpt_without_positions": scored(through(embedded)),
                "gpt_positions_from_the_end": scored(through(embedded + places[-tokens.shape[1] :])),
                "gpt_one_position": scored(through(embedded + places[tokens.shape[1] - 1])),
                "gpt_without_norm": scored(through(x), norm=False),
                "gpt_without_blocks": scored(x),
            },
        )
