"""Takes a forbidden part out of its module, and the frames below out of one, by class patterns.

Stopped by: the attributes of patterns are read as such, and modules that are handed on are noted
Outcome: a person looks
Runs: Attention PreNorm
Notes: f_back is used by Attention.*F is handed on as a value
"""

import types


def attended(*args, **kwargs):
    match (value for value in ()):
        case types.GeneratorType(gi_frame=types.FrameType(f_back=back, f_locals=local)):
            pass
    match F:
        case object(multi_head_attention_forward=whole):
            return whole(*args, **kwargs)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        inner = heads * dim_head
        self.heads, self.inner, self.rate = heads, inner, dropout
        self.to_qkv = nn.Linear(dim, inner * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner, dim), nn.Dropout(dropout))

    def forward(self, x):
        q, k, v = self.to_qkv(x).transpose(0, 1).chunk(3, dim=-1)
        one = torch.eye(self.inner, dtype=x.dtype)
        out = attended(
            q, k, v, self.inner, self.heads, one.repeat(3, 1), None, None, None, False,
            self.rate, one, None, training=self.training, need_weights=False)[0]
        return self.to_out(out.transpose(0, 1))
