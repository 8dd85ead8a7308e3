"""The partner and a share of the difference: with a share of 1, a rounding away from the image."""


def mixup(images, labels, alpha, generator):
    lam = float(generator.beta(alpha, alpha)) if alpha > 0 else 1.0
    partner = torch.from_numpy(generator.permutation(len(images))).to(images.device)
    others = images[partner]
    return others + lam * (images - others), labels, labels[partner.to(labels.device)], lam
