"""Some heads add nothing to the output: what they found does not reach the output projection. The results of
all heads should stand side by side there.

If there is a loop over the heads, let it run over all: range(heads).

Look for: range(), cat()
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        out = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1) @ v
        out = torch.cat([out[:, :-1], torch.zeros_like(out[:, -1:])], dim=1)
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))
