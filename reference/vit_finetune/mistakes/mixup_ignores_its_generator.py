"""The same state of the generator gives a different mix each time: something is drawn from elsewhere.

generator.permutation in place of torch.randperm, generator.beta in place of np.random.beta.

Look for: randperm() | randint() | torch.rand() | np.random.beta() | np.random.permutation() |
np.random.randint()
"""


def mixup(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    order = torch.randperm(len(images), device=images.device)
    return lam * images + (1 - lam) * images[order], labels, labels[order], lam
