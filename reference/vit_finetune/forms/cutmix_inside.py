"""The rectangle is drawn inside the image, so that nothing is clipped; sizes rounded down.
"""


def cutmix(images, labels, alpha, generator):
    _, _, h, w = images.size()
    order = torch.as_tensor(generator.permutation(len(images)))
    share = generator.beta(alpha, alpha) if alpha > 0 else 1
    cut_h, cut_w = int(h * np.sqrt(1 - share)), int(w * np.sqrt(1 - share))
    y, x = generator.integers(0, h - cut_h + 1), generator.integers(0, w - cut_w + 1)
    result = torch.clone(images)
    result[:, :, y : y + cut_h, x : x + cut_w] = images[order, :, y : y + cut_h, x : x + cut_w]
    kept = h * w - cut_h * cut_w
    return result, labels, labels[order], kept / (h * w)
