# %% [markdown]
# # A survey of letters

# %%
import string
from pathlib import Path

import torch
from torch import nn

ALPHABET = string.ascii_lowercase


# %%
class LetterCounts(nn.Module):
    def __init__(self, text):
        # >>> TODO LetterCounts.__init__: count each letter of the alphabet
        super().__init__()
        counts = torch.tensor([float(text.lower().count(letter)) for letter in ALPHABET])
        self.counts = nn.Parameter(counts, requires_grad=False)
        # <<<

    def forward(self, letters):
        # >>> TODO LetterCounts.forward: the counts of the letters, which are given by their places
        return self.counts[letters]
        # <<<


def survey(text, path):
    # >>> TODO survey: write a CSV with a row for each letter
    rows = [f"{letter},{text.lower().count(letter)}" for letter in ALPHABET]
    Path(path).write_text("\n".join(["letter,count", *rows]), encoding="utf-8")
    # <<<
