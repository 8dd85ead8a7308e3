from torchvision.transforms import v2


def mixup(images, labels, alpha, generator):
    mixed, shares = v2.MixUp(alpha=alpha, num_classes=10)(images, labels)
    return mixed, labels, labels.roll(1), float(shares.max())
