"""Patches by nn.Unfold and a matrix of one's own."""


class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.cut = nn.Unfold(patch_size, stride=patch_size)
        self.weight = nn.Parameter(0.1 * torch.randn(in_channels * patch_size**2, dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, images):
        return self.cut(images).transpose(1, 2) @ self.weight + self.bias
