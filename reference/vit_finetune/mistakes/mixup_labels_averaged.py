"""Whole-number labels are averaged: class 2 and class 4 do not make class 3.

Return both rows of labels; the loss weighs them.

Look for: _ * labels + _
"""


def mixup(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    both = lam * labels + (1 - lam) * labels[order]
    return lam * images + (1 - lam) * images[order], both, both, lam
