"""The split by torch's generator, as tensors that are shuffled once more.
"""


def stratified_split(labels, per_class, seed):
    labels = torch.as_tensor(labels)
    generator = torch.Generator().manual_seed(seed)
    collected = [[] for _ in per_class]
    for label in labels.unique().tolist():
        own = (labels == label).nonzero().flatten()
        if own.numel() < sum(per_class):
            raise ValueError(f"class {label}")
        own = own[torch.randperm(own.numel(), generator=generator)]
        for number, piece in enumerate(own[: sum(per_class)].split(list(per_class))):
            collected[number].append(piece)
    joined = [torch.cat(pieces) for pieces in collected]
    return tuple(each[torch.randperm(len(each), generator=generator)] for each in joined)
