"""Patches by einops and a linear layer."""


from einops import rearrange


class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.patch_size = patch_size
        self.to_token = nn.Linear(in_channels * patch_size * patch_size, dim)

    def forward(self, images):
        size = self.patch_size
        return self.to_token(rearrange(images, "b c (h p) (w q) -> b (h w) (c p q)", p=size, q=size))
