"""The larger emb_dropout, the fewer values of the tokens are dropped in training: as if it were the share to
keep. It is the share to drop.

Write nn.Dropout(emb_dropout), with the argument itself.

Look for: Dropout() | dropout()
"""


class ViT(ViT):
    def __init__(self, **options):
        super().__init__(**{**options, "emb_dropout": 1 - options.get("emb_dropout", 0.0)})
