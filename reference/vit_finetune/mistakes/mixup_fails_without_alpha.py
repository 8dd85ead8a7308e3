"""alpha=0 raises an error; it should mix nothing, with lam = 1.

Beta(0, 0) does not exist: check that alpha > 0 before you draw.

Look for: beta()
"""


def mixup(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha))
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    return lam * images + (1 - lam) * images[order], labels, labels[order], lam
