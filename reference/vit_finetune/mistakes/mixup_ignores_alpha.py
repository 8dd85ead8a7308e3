"""The share is drawn uniformly, whatever alpha is.

generator.beta(alpha, alpha)

Look for: random() | uniform() | rand()
"""


def mixup(images, labels, alpha, generator):
    lam = float(generator.random()) if alpha > 0 else 1.0
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    return lam * images + (1 - lam) * images[order], labels, labels[order], lam
