"""The split by ranks within the class of one random order of all images.
"""


def stratified_split(labels, per_class, seed):
    labels = np.asarray(labels)
    counts = np.unique(labels, return_counts=True)[1]
    if counts.min() < sum(per_class):
        raise ValueError("a class is too small")
    order = np.random.RandomState(seed).permutation(len(labels))
    seen, ranks = {}, np.empty(len(labels), dtype=int)
    for index in order:
        key = labels[index]
        ranks[index] = seen.get(key, 0)
        seen[key] = ranks[index] + 1
    edges = [0, *np.cumsum(per_class)]
    return tuple(np.flatnonzero((ranks >= a) & (ranks < b)) for a, b in zip(edges[:-1], edges[1:]))
