"""The tokens are dropped in training at a rate of ViT's own, whatever emb_dropout asks for; with
emb_dropout=0 nothing should be dropped.

Write nn.Dropout(emb_dropout), with the argument itself.

Look for: Dropout() | dropout()
"""


class ViT(ViT):
    def __init__(self, **options):
        super().__init__(**{**options, "emb_dropout": 0.3})
