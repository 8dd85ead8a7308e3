"""Each part gets a share of the class and not a number of images: large classes have more in every part.

Every class gives exactly per_class[k] images.

Look for: _ // sum() | _ / sum()
"""


def stratified_split(labels, per_class, seed):
    labels, random = np.asarray(labels), np.random.default_rng(seed)
    kept = [[] for _ in per_class]
    for label in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == label))
        if len(rows) < sum(per_class):
            raise ValueError(f"class {label} has {len(rows)} images, and {sum(per_class)} are needed")
        sizes = [count * len(rows) // sum(per_class) for count in per_class]
        ends = np.cumsum(sizes)
        for part, end, count in zip(kept, ends, sizes, strict=True):
            part.append(rows[end - count : end])
    return tuple(np.concatenate(part) for part in kept)
