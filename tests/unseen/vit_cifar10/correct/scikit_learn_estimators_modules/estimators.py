"""fit / predict / predict_proba / score around a torch module, and the functions that the assignment names."""

import math

import numpy as np
import torch
from networks import ResNet18
from sklearn.base import BaseEstimator
from torch import nn
from torch.optim import SGD, AdamW
from torch.optim.lr_scheduler import LambdaLR


def warmup_cosine(step, warmup_steps, total_steps):
    """
    Examples
    --------
    >>> [round(warmup_cosine(step, 2, 6), 3) for step in range(8)]
    [0.0, 0.5, 1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """
    if 0 <= step < warmup_steps:
        return step / warmup_steps
    progress = min((step - warmup_steps) / max(total_steps - warmup_steps, 1), 1.0) if step < total_steps else 1.0
    return max(0.0, 0.5 * (1.0 + math.cos(math.pi * progress)))


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    n_samples, loss_sum, n_correct = 0, 0.0, 0
    for X, y in loader:
        X, y = X.to(device), y.to(device)
        decision = model(X)
        loss = criterion(decision, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        n_samples += len(y)
        loss_sum += loss.item() * len(y)
        n_correct += int(torch.sum(decision.argmax(dim=1) == y))
    return loss_sum / n_samples, n_correct / n_samples


def evaluate(model, loader, criterion, device):
    model.eval()
    y_true, y_proba, losses = [], [], []
    with torch.no_grad():
        for X, y in loader:
            decision = model(X.to(device))
            losses.append(criterion(decision, y.to(device)).item())
            y_proba.append(torch.softmax(decision, dim=1).cpu().numpy())
            y_true.append(y.cpu().numpy())
    sizes = [len(y) for y in y_true]
    y_true, y_proba = np.concatenate(y_true), np.vstack(y_proba)
    y_pred = np.argmax(y_proba, axis=1)
    return {
        "loss": float(np.average(losses, weights=sizes)),
        "accuracy": float(np.mean(y_true == y_pred)),
        "targets": y_true,
        "predictions": y_pred,
        "probabilities": y_proba,
    }


class NetworkClassifier(BaseEstimator):
    """
    Parameters
    ----------
    network : nn.Module
        Trained in place.
    epochs : int
    solver : {'auto', 'adamw', 'sgd'}
        'auto': SGD for a ResNet18, AdamW for all others.
    learning_rate : float or 'auto'
    weight_decay : float or 'auto'
    warmup : float
        Share of all steps.
    device : str or torch.device

    Attributes
    ----------
    loss_curve_, accuracy_curve_, validation_losses_, validation_scores_ : list of float
    best_epoch_ : int
    best_validation_score_ : float
    """

    def __init__(
        self, network=None, epochs=15, solver="auto", learning_rate="auto", weight_decay="auto", warmup=0.1, device="cpu"
    ):
        self.network = network
        self.epochs = epochs
        self.solver = solver
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.warmup = warmup
        self.device = device

    def _make_solver(self):
        solver = self.solver
        if solver == "auto":
            solver = "sgd" if isinstance(self.network, ResNet18) else "adamw"
        defaults = {"sgd": (0.05, 5e-4), "adamw": (1e-3, 0.05)}[solver]
        rate, decay = (
            default if given == "auto" else given
            for given, default in zip((self.learning_rate, self.weight_decay), defaults)
        )
        learnable = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        if solver == "sgd":
            return SGD(learnable, lr=rate, momentum=0.9, nesterov=True, weight_decay=decay)
        return AdamW(learnable, lr=rate, weight_decay=decay)

    def fit(self, loaders):
        network = self.network.to(self.device)
        optimizer = self._make_solver()
        n_steps = self.epochs * len(loaders["train"])
        n_warmup = round(self.warmup * n_steps)
        scheduler = LambdaLR(optimizer, lambda step: warmup_cosine(step, n_warmup, n_steps))
        self.criterion_ = nn.CrossEntropyLoss()
        self.loss_curve_, self.accuracy_curve_, self.validation_losses_, self.validation_scores_ = [], [], [], []
        checkpoint = None
        for epoch in range(self.epochs):
            loss, accuracy = train_epoch(
                network, loaders["train"], self.criterion_, optimizer, scheduler, self.device
            )
            result = evaluate(network, loaders["validation"], self.criterion_, self.device)
            self.loss_curve_.append(loss)
            self.accuracy_curve_.append(accuracy)
            self.validation_losses_.append(result["loss"])
            self.validation_scores_.append(result["accuracy"])
            # np.argmax gives the first of equals
            if np.argmax(self.validation_scores_) == epoch:
                checkpoint = {key: tensor.clone() for key, tensor in network.state_dict().items()}
        if checkpoint is not None:
            network.load_state_dict(checkpoint)
            self.best_epoch_ = int(np.argmax(self.validation_scores_)) + 1
            self.best_validation_score_ = max(self.validation_scores_)
        return self

    def predict_proba(self, loader):
        return evaluate(self.network, loader, nn.CrossEntropyLoss(), self.device)["probabilities"]

    def predict(self, loader):
        return self.predict_proba(loader).argmax(axis=1)

    def score(self, loader):
        return evaluate(self.network, loader, nn.CrossEntropyLoss(), self.device)["accuracy"]


def fit(model, loaders, epochs, device):
    """
    Returns
    -------
    history : NetworkClassifier
        The fitted estimator: its curves are its attributes with an underscore.
    """
    return NetworkClassifier(network=model, epochs=epochs, device=device).fit(loaders)
