"""The weights are cut off from the gradients: only the values and the output projection are trained; queries
and keys stay as they were initialized.

Leave out detach(), .data and torch.no_grad().

Look for: detach() | no_grad() | _.data
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) * self.scale
        out = scores.softmax(dim=-1).detach() @ v
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))
