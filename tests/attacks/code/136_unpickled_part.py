"""Has a forbidden function named by a pickle.

Stopped by: unpickling is noted, and the part tells the judge itself
Outcome: a person looks
Runs: Attention PreNorm
Notes: pickle.loads is used by Attention.*multi_head_attention_forward.*seen: unpickling
"""

import pickle


def attended(*args, **kwargs):
    whole = pickle.loads(b"ctorch.nn.functional\nmulti_head_attention" + b"_forward\n.")
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
