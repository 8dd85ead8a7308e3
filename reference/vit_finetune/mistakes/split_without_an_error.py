"""A class that has too few images raises no ValueError: a part is smaller than it was asked for.

Compare the number of images with sum(per_class).
"""


def stratified_split(labels, per_class, seed):
    labels, random = np.asarray(labels), np.random.default_rng(seed)
    kept = [[] for _ in per_class]
    for label in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == label))
        ends = np.cumsum(per_class)
        for part, end, count in zip(kept, ends, per_class, strict=True):
            part.append(rows[end - count : end])
    return tuple(np.concatenate(part) for part in kept)
