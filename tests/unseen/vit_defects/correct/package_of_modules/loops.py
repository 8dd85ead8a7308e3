"""Training and evaluation by hand."""

import torch
from torch import nn
from torch.nn import functional as F

import settings


def on_device_of(model, *tensors):
    """The tensors, moved to where the model is."""
    parameter = next(model.parameters(), None)
    return tensors if parameter is None else tuple(tensor.to(parameter.device) for tensor in tensors)


def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the data: a step for every batch, a report every 100 batches."""
    model.train()
    for step, (images, labels) in enumerate(data_loader):
        images, labels = on_device_of(model, images, labels)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), settings.CLIP_NORM)
        optimizer.step()
        if step % settings.PRINT_EVERY == 0:
            loss_history.append(loss.item())
            print(f"    step {step}: loss {loss.item():.4f}")


def predictions(model, data_loader):
    """Yields (images, labels, scores) of each batch, on the CPU, with the model in evaluation mode."""
    model.eval()
    for images, labels in data_loader:
        with torch.no_grad():
            (moved,) = on_device_of(model, images)
            scores = model(moved).cpu()
        yield images.cpu(), labels.cpu(), scores


def evaluate(model, data_loader, loss_history):
    """Appends the average loss per image, prints it and the accuracy, returns the accuracy."""
    weighted, correct, total = 0.0, 0, 0
    for _, labels, scores in predictions(model, data_loader):
        weighted += F.cross_entropy(scores, labels).item() * len(labels)
        correct += scores.argmax(dim=1).eq(labels).sum().item()
        total += len(labels)
    loss_history.append(weighted / total)
    print(f"    test loss {loss_history[-1]:.4f}, accuracy {correct / total:.2%} ({correct}/{total})")
    return correct / total


def learning_rate_factor(epoch):
    """Rises over the first epochs, then falls with the square root of the rest. Epochs count from 0."""
    warm = settings.WARMUP_EPOCHS
    if epoch < warm:
        return (epoch + 1) / warm
    rest = (settings.N_EPOCHS - epoch) / max(1, settings.N_EPOCHS - warm)
    return max(0.0025, rest) ** 0.5
