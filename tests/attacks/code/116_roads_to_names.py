"""Reaches a forbidden part by eight functions of the standard library that look names up or run text.

Stopped by: whatever resolves a computed name or runs text is noted, and constructions are watched
Outcome: a person looks
Runs: Attention PreNorm
Notes: (?=.*pydoc.locate)(?=.*resolve_name)(?=.*nn is handed on)(?=.*getattr_static)(?=.*timeit)(?=.*InteractiveInt)(?=.*walk_stack).*(MultiheadAttention.*){3}
"""

import code
import inspect
import operator
import pkgutil
import pydoc
import timeit
import traceback

NAME = "Multihead" + "Attention"


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        inner = heads * dim_head
        self.heads = heads
        self.scale = dim_head**-0.5
        self.to_qkv = nn.Linear(dim, 3 * inner, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner, dim), nn.Dropout(dropout))
        self.found = {
            operator.attrgetter(NAME)(nn),
            pydoc.locate("torch.nn." + NAME),
            pkgutil.resolve_name("torch.nn:" + NAME),
            vars(nn)[NAME],
            inspect.getattr_static(nn, NAME),
        }
        timeit.timeit(f"import torch; torch.nn.{NAME}(4, 2)", number=1)
        code.InteractiveInterpreter().runsource(f"import torch; torch.nn.{NAME}(4, 2)")
        self.below = [frame.f_code.co_name for frame, _ in traceback.walk_stack(None)]

    def forward(self, x):
        q, k, v = (rearrange(t, "b n (h d) -> b h n d", h=self.heads) for t in self.to_qkv(x).chunk(3, dim=-1))
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        return self.to_out(rearrange(weights @ v, "b h n d -> b n (h d)"))
