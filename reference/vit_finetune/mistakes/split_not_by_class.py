"""The images are shuffled as a whole and cut: the parts have the right sizes, but not in every class.

Shuffle and cut the indices of each class separately.

Look for: permutation() | shuffle()
"""


def stratified_split(labels, per_class, seed):
    labels, random = np.asarray(labels), np.random.default_rng(seed)
    classes = np.unique(labels)
    if min((labels == label).sum() for label in classes) < sum(per_class):
        raise ValueError("too few images")
    rows, parts, start = random.permutation(len(labels)), [], 0
    for count in per_class:
        parts.append(rows[start : start + count * len(classes)])
        start += count * len(classes)
    return tuple(parts)
