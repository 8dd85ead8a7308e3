"""labels_a and labels_b are exchanged: labels_a belongs to the images at their own places.

Look for: return
"""


def mixup(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    return lam * images + (1 - lam) * images[order], labels[order], labels, lam
