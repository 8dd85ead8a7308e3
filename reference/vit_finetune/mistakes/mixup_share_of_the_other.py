"""lam is the other image's share; it should be that of images[i] itself, whose labels are labels_a.

Look for: (1 - lam) * images + _ | lam * _ + (1 - lam) * images
"""


def mixup(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    return (1 - lam) * images + lam * images[order], labels, labels[order], lam
