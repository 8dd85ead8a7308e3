"""The argument emb_dropout is not used: it makes no difference to what is dropped of the tokens in training.

Apply nn.Dropout(emb_dropout), and no other dropout, to the tokens once the positions are added.

Look for: emb_dropout, Dropout()
"""


class ViT(ViT):
    def __init__(self, **options):
        super().__init__(**{**options, "emb_dropout": 0.0})
