"""Every token gets the embedding of the last position.

A position for each token: torch.arange.
"""


class GPT(GPT):
    def forward(self, tokens):
        place = torch.tensor(tokens.shape[1] - 1)
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions(place))))
