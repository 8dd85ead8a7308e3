"""The partners are drawn with replacement: some images are mixed in twice and others never.

generator.permutation(len(images)) is a permutation.

Look for: integers() | randint() | choice()
"""


def mixup(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    order = torch.from_numpy(generator.integers(0, len(images), len(images))).to(images.device)
    return lam * images + (1 - lam) * images[order], labels, labels[order], lam
