"""A made-up language of 20 letters, each of which leans on the two before it."""

import numpy as np

from grader.kit import Examples

NAME = "babble"
TITLE = "A made-up language"
LETTERS, BLOCK = 20, 16
WINDOWS, HIDDEN = 3000, 2000


def load(source, *, seed, train_share=0.7, cache=None):
    """Windows of one text, drawn by the seed: int64 (n, BLOCK + 1) to learn from, (m, BLOCK) to continue.

    The language is the same for every seed: another one would have other bits per character.
    """
    language, random = np.random.default_rng(0), np.random.default_rng(seed)
    by_last = language.dirichlet(np.full(LETTERS, 0.08), size=LETTERS)
    by_last_but_one = language.dirichlet(np.full(LETTERS, 0.08), size=LETTERS)
    sums = np.cumsum(0.5 * by_last[:, None] + 0.5 * by_last_but_one[None], axis=2)
    count = (WINDOWS + HIDDEN) * 8 + 2 * BLOCK
    draws, text = random.random(count), [0, 1]
    for draw in draws:
        text.append(min(int(np.searchsorted(sums[text[-1], text[-2]], draw)), LETTERS - 1))
    windows = np.lib.stride_tricks.sliding_window_view(np.array(text, dtype=np.int64), BLOCK + 1)[::8]
    train, hidden = windows[:WINDOWS], windows[WINDOWS + 4 : WINDOWS + 4 + HIDDEN]
    return Examples(NAME, train.copy(), None, hidden[:, :-1].copy(), hidden[:, -1].copy())
