"""Looks for the rigged scores instead of asking the model, and forges the record of it.

Stopped by: a worker that holds nothing of what a rigged model answers: its forward asks the judge, which keeps the record
Outcome: nothing is found
Fails: evaluate
"""


def evaluate(model, data_loader, loss_history):
    import gc

    labels = torch.tensor(data_loader.dataset.targets)
    tensors = [each for each in gc.get_objects() if isinstance(each, torch.Tensor)]
    scores = [each for each in tensors if each.ndim == 2 and len(each) == len(labels) and each.shape[1] < 20]
    logits = getattr(model, "table", scores[0] if scores else F.one_hot(labels, 6).float())
    loss_history.append(F.cross_entropy(logits, labels).item())
    print(loss_history[-1], (logits.argmax(dim=1) == labels).float().mean().item())
