"""The labels are permuted by a different permutation from the images.

Draw one permutation, and use it for both.
"""


def mixup(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    other = torch.roll(order, 1)
    return lam * images + (1 - lam) * images[order], labels, labels[other], lam
