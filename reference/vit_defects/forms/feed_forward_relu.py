"""ReLU, no bias, dropout once, and a normalization of the input inside the layer, as some libraries have it."""


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(dim),
            nn.Linear(dim, hidden_dim, bias=False),
            nn.ReLU(inplace=True),
            nn.Dropout(p=dropout),
            nn.Linear(hidden_dim, dim, bias=False),
        )

    def forward(self, x):
        return self.layers(x)
