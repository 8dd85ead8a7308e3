"""Every weight is one parameter for all blocks, stacked over the depth, and used through functions."""


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        inner = heads * dim_head
        self.cfg = (dim, heads, dim_head, dropout)

        def weight(*shape):
            return nn.Parameter(torch.randn(depth, *shape) * shape[-1] ** -0.5)

        def const(value, *shape):
            return nn.Parameter(torch.full((depth, *shape), float(value)))

        self.ln = const(1, 2, dim)
        self.ln_bias = const(0, 2, dim)
        self.wq, self.wk, self.wv = weight(inner, dim), weight(inner, dim), weight(inner, dim)
        self.wo, self.bo = weight(dim, inner), const(0, dim)
        self.w1, self.b1 = weight(mlp_dim, dim), const(0, mlp_dim)
        self.w2, self.b2 = weight(dim, mlp_dim), const(0, dim)

    def forward(self, x):
        dim, heads, dim_head, p = self.cfg
        drop = lambda t: F.dropout(t, p, self.training)
        for ln, lb, wq, wk, wv, wo, bo, w1, b1, w2, b2 in zip(
            self.ln,
            self.ln_bias,
            self.wq,
            self.wk,
            self.wv,
            self.wo,
            self.bo,
            self.w1,
            self.b1,
            self.w2,
            self.b2,
        ):
            z = F.layer_norm(x, (dim,), ln[0], lb[0])
            q, k, v = (F.linear(z, w).unflatten(2, (heads, dim_head)).transpose(1, 2) for w in (wq, wk, wv))
            z = ((q * dim_head**-0.5) @ k.transpose(2, 3)).softmax(3) @ v
            x = x + drop(F.linear(z.transpose(1, 2).flatten(2), wo, bo))
            z = F.layer_norm(x, (dim,), ln[1], lb[1])
            x = x + drop(F.linear(drop(F.gelu(F.linear(z, w1, b1))), w2, b2))
        return x
