"""Capital letters are not counted.

Make the text small before it is counted: `text.lower()`.
"""

import torch
from torch import nn


class LetterCounts(LetterCounts):
    def __init__(self, text):
        nn.Module.__init__(self)
        self.counts = nn.Parameter(torch.tensor([float(text.count(letter)) for letter in ALPHABET]))
