"""The images that were given are changed in place: whoever holds them finds mixed ones.

No mul_, no +=, no images[:] = ...

Look for: mul_() | add_() | lerp_() | copy_()
"""


def mixup(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    order = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    other = images[order].clone()
    images.mul_(lam).add_((1 - lam) * other)
    return images, labels, labels[order], lam
