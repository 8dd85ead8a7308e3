"""Each image has a share of its own, and lam is their mean: the loss then weighs labels by a share that no
image has.

Draw one share for the batch.

Look for: beta()
"""


def mixup(images, labels, alpha, generator):
    count = len(images)
    lam = torch.from_numpy(generator.beta(alpha, alpha, count)).float() if alpha > 0 else torch.ones(count)
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    each = lam.view(-1, 1, 1, 1)
    return each * images + (1 - each) * images[order], labels, labels[order], float(lam.mean())
