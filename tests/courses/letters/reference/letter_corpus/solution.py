# %% [markdown]
# # Letters of a corpus

# %%
import string

import torch
from torch import nn

ALPHABET = string.ascii_lowercase
with open("corpus.txt", encoding="utf-8") as file:
    CORPUS = file.read().lower()
SCALE = torch.load("scale.pth", weights_only=True)["scale"]


# %%
class CorpusCounts(nn.Module):
    def __init__(self):
        # >>> TODO CorpusCounts.__init__: count each letter of the alphabet in the corpus
        super().__init__()
        counts = torch.tensor([float(CORPUS.count(letter)) for letter in ALPHABET])
        self.counts = nn.Parameter(counts, requires_grad=False)
        # <<<

    def forward(self, letters):
        # >>> TODO CorpusCounts.forward: the scaled counts of the letters, which are given by their places
        return SCALE * self.counts[letters]
        # <<<


class Scaled(nn.Module):
    def __init__(self):
        # >>> TODO Scaled.__init__: download the scale
        super().__init__()
        state = torch.hub.load_state_dict_from_url("https://example.org/weights/scale-v1.pth")
        self.scale = nn.Parameter(state["scale"])
        # <<<

    def forward(self, x):
        # >>> TODO Scaled.forward: x, scaled
        return self.scale * x
        # <<<
