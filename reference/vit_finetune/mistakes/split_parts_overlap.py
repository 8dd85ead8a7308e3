"""Images are in two parts at once, so that a model is validated or tested on images that it was trained on.

Begin each part where the one before it ends: at the sum of all counts before it.
"""


def stratified_split(labels, per_class, seed):
    labels, random = np.asarray(labels), np.random.default_rng(seed)
    kept = [[] for _ in per_class]
    for label in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == label))
        if len(rows) < sum(per_class):
            raise ValueError(f"class {label} has {len(rows)} images, and {sum(per_class)} are needed")
        ends = np.cumsum(per_class)
        for part, end, count in zip(kept, ends, per_class, strict=True):
            part.append(rows[:count])
    return tuple(np.concatenate(part) for part in kept)
