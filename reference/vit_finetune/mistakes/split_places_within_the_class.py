"""The indices count within each class, and not within all images: they point at other images.

Shuffle np.flatnonzero(labels == label), not arange of its length.

Look for: permutation() | arange() | shuffle()
"""


def stratified_split(labels, per_class, seed):
    labels, random = np.asarray(labels), np.random.default_rng(seed)
    kept = [[] for _ in per_class]
    for label in np.unique(labels):
        rows = random.permutation(int((labels == label).sum()))
        if len(rows) < sum(per_class):
            raise ValueError(f"class {label} has {len(rows)} images, and {sum(per_class)} are needed")
        ends = np.cumsum(per_class)
        for part, end, count in zip(kept, ends, per_class, strict=True):
            part.append(rows[end - count : end])
    return tuple(np.concatenate(part) for part in kept)
