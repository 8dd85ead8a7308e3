"""Each number of the gradients is clipped, and loss and hits are kept in lists.
"""


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for block in parts(model)[1]:
        block.train(any(p.requires_grad for p in block.parameters()))
    losses, hits, sizes = [], [], []
    for batch in loader:
        images, labels = (each.to(device) for each in batch)
        first, second, share = labels, labels, 1.0
        if mix is not None:
            images, first, second, share = mix(images, labels)
        optimizer.zero_grad(set_to_none=True)
        scores = model(images)
        loss = mixed_loss(criterion, scores, first, second, share)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.01)
        optimizer.step()
        best = scores.detach().argmax(dim=1)
        right = share * (best == first).float() + (1 - share) * (best == second).float()
        losses.append(loss.item() * len(labels))
        hits.append(right.sum().item())
        sizes.append(len(labels))
    return sum(losses) / sum(sizes), sum(hits) / sum(sizes)
