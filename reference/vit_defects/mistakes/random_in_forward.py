"""Something is drawn at random in forward, even in evaluation mode: the same images give different tokens
each time. Class token and positions are learned: parameters that are made once, in __init__.

Take what is drawn out of forward; in __init__ write self.class_token = nn.Parameter(torch.randn(1, 1, dim)),
and the same for positions.

Look for: randperm(), rand(), rand_like(), randn_like(), randn()
"""


class ViT(ViT):
    def forward(self, img):
        tokens = self.patch_projection(self.to_patches(img))
        class_tokens = repeat(self.class_token, "1 1 d -> b 1 d", b=len(img))
        positions = torch.randn_like(self.positions)
        tokens = torch.cat([class_tokens, tokens], dim=1) + positions + 0 * self.positions
        encoded = self.transformer(self.dropout(tokens))
        return self.head(encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1))
