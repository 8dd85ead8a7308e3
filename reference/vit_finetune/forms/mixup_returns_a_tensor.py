"""The share is a tensor, labels are copies, and the batch is rolled by a step that is drawn.
"""


def mixup(images, labels, alpha, generator):
    batch = images.shape[0]
    step = int(generator.integers(1, batch)) if batch > 1 else 0
    lam = torch.tensor(generator.beta(alpha, alpha) if alpha else 1.0)
    others = images.roll(step, dims=0)
    return (images * lam + others * (1 - lam)).to(images.dtype), labels.clone(), labels.roll(step), lam
