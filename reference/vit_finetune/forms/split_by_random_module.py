"""The split by the module random, as lists of whole numbers.
"""


import random


def stratified_split(labels, per_class, seed):
    shuffler = random.Random(seed)
    by_class = {}
    for index, label in enumerate(labels):
        by_class.setdefault(int(label), []).append(index)
    parts = [[] for _ in per_class]
    for label in sorted(by_class):
        indices = by_class[label]
        if sum(per_class) > len(indices):
            raise ValueError("not enough images of class %d" % label)
        shuffler.shuffle(indices)
        for part, count in zip(parts, per_class):
            part.extend(indices.pop() for _ in range(count))
    return tuple(parts)
