"""The last part gets all images that the others leave; it should get exactly as many as were asked for.

What a class has beyond the sum of per_class is left out.

Look for: _[_:]
"""


def stratified_split(labels, per_class, seed):
    labels, random = np.asarray(labels), np.random.default_rng(seed)
    kept = [[] for _ in per_class]
    for label in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == label))
        if len(rows) < sum(per_class):
            raise ValueError(f"class {label} has {len(rows)} images, and {sum(per_class)} are needed")
        start = 0
        for part, count in zip(kept[:-1], per_class[:-1], strict=True):
            part.append(rows[start : start + count])
            start += count
        kept[-1].append(rows[start:])
    return tuple(np.concatenate(part) for part in kept)
