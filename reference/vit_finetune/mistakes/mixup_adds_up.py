"""The other image is added with the share lam, too: the shares do not add up to 1.

The other image's share is 1 - lam.

Look for: lam * images + _ | _ + lam * images
"""


def mixup(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    return lam * images + lam * images[order], labels, labels[order], lam
