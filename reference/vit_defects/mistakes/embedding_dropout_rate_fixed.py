"""In training the tokens are dropped at another rate than emb_dropout asks for; with emb_dropout=0 nothing
should be dropped.

Write nn.Dropout(emb_dropout), with the argument itself.

Look for: Dropout() | dropout()
"""


class ViT(ViT):
    def __init__(self, **options):
        super().__init__(**{**options, "emb_dropout": 0.3})
