"""With pool='mean' there is a class token all the same; it should exist only with pool='cls'."""


class VisionTransformer(VisionTransformer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.pool == "mean":
            dim = self.head.in_features
            self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
            if "positions" in dict(self.named_parameters()):
                self.positions = nn.Parameter(0.02 * torch.randn(1, self.positions.shape[1] + 1, dim))
            else:
                self.positions = sinusoidal_positions(self.positions.shape[1] + 1, dim)[None]

    def tokens(self, images):
        x = self.patches(images)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        return self.dropout(x + self.positions)
