"""The same seed gives other parts each time, so that nobody can repeat the split.

Draw from a generator that is made with the seed.

Look for: default_rng() | RandomState() | seed() | Random() | Generator()
"""


def stratified_split(labels, per_class, seed):
    labels, random = np.asarray(labels), np.random.default_rng()
    kept = [[] for _ in per_class]
    for label in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == label))
        if len(rows) < sum(per_class):
            raise ValueError(f"class {label} has {len(rows)} images, and {sum(per_class)} are needed")
        ends = np.cumsum(per_class)
        for part, end, count in zip(kept, ends, per_class, strict=True):
            part.append(rows[end - count : end])
    return tuple(np.concatenate(part) for part in kept)
