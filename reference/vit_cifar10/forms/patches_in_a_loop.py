"""Patches cut in two loops."""


class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.patch = patch_size
        self.linear = nn.Linear(in_channels * patch_size**2, dim)

    def forward(self, images):
        tokens = []
        for row in range(0, images.shape[2], self.patch):
            for column in range(0, images.shape[3], self.patch):
                patch = images[:, :, row : row + self.patch, column : column + self.patch]
                tokens.append(self.linear(patch.reshape(len(images), -1)))
        return torch.stack(tokens, dim=1)
