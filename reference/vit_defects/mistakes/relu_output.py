"""The scores go through a ReLU: no class can get a negative score, and gradients vanish where they are 0.

Return the scores of the last linear layer as they are.

Look for: relu() | ReLU()
"""


class ViT(ViT):
    def forward(self, img):
        return super().forward(img).relu()
