"""The sizes are made of shares and rounded down, so that images are lost or a part is too small.

Take per_class[k] images as they are: no share is needed.

Look for: int() | round()
"""


def stratified_split(labels, per_class, seed):
    labels, random = np.asarray(labels), np.random.default_rng(seed)
    kept = [[] for _ in per_class]
    for label in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == label))
        if len(rows) < sum(per_class):
            raise ValueError(f"class {label} has {len(rows)} images, and {sum(per_class)} are needed")
        shares = np.array(per_class) / len(rows)
        sizes = [int(share * 0.99 * len(rows)) for share in shares]
        ends = np.cumsum(sizes)
        for part, end, count in zip(kept, ends, sizes, strict=True):
            part.append(rows[end - count : end])
    return tuple(np.concatenate(part) for part in kept)
