"""The tokens are dropped in evaluation mode too, so that the same images get different scores.

Use nn.Dropout, which model.eval() switches off; {F = torch.nn.functional}.dropout has to be told: {F =
torch.nn.functional}.dropout(x, p, self.training).

Look for: dropout()
"""


class ViT(ViT):
    def __init__(self, *, emb_dropout=0.0, **options):
        super().__init__(**options)
        self.transformer = nn.Sequential(DroppingAlways(emb_dropout), self.transformer)


class DroppingAlways(nn.Module):
    def __init__(self, share):
        super().__init__()
        self.share = share

    def forward(self, x):
        return F.dropout(x, self.share, True)
