"""Schedules, listeners, and the predictions that both figures need."""

import copy
import math
from dataclasses import dataclass

import torch

from .contracts import LearningRateSchedule, TrainingListener


class WarmupCosineSchedule(LearningRateSchedule):
    def __init__(self, peak, warmup_epochs, total_epochs):
        self._peak, self._warmup, self._total = peak, warmup_epochs, total_epochs

    def get_rate(self, epoch):
        if epoch < self._warmup:
            return self._peak * (epoch + 1) / self._warmup
        done = (epoch - self._warmup) / max(1, self._total - self._warmup)
        return self._peak * max(0.02, 0.5 + 0.5 * math.cos(math.pi * done))


class ScheduleListener(TrainingListener):
    """Sets the rate of the following epoch."""

    def __init__(self, optimizer, schedule):
        self._optimizer, self._schedule = optimizer, schedule
        self.apply(0)

    def apply(self, epoch):
        for group in self._optimizer.param_groups:
            group["lr"] = self._schedule.get_rate(epoch)

    def on_epoch_end(self, epoch, model):
        self.apply(epoch + 1)


class WeightAverager(TrainingListener):
    """Keeps the mean of the weights of the last epochs (stochastic weight averaging)."""

    def __init__(self, first_epoch):
        self._first_epoch = first_epoch
        self._count = 0
        self._mean = None

    def on_epoch_end(self, epoch, model):
        if epoch < self._first_epoch:
            return
        self._count += 1
        state = model.state_dict()
        if self._mean is None:
            self._mean = copy.deepcopy(state)
        else:
            for name, value in state.items():
                self._mean[name] += (value - self._mean[name]) / self._count

    def has_average(self):
        return self._mean is not None

    def get_average(self):
        return self._mean


@dataclass(frozen=True)
class Prediction:
    """One image with what is known about it (a record)."""

    image: torch.Tensor
    true_label: int
    predicted_label: int

    def is_correct(self):
        return self.true_label == self.predicted_label


class Predictor:
    """Applies the model to all images of a loader."""

    def __init__(self, model, device):
        self._model, self._device = model, device

    def predict_all(self, data_loader):
        self._model.eval()
        predictions = []
        with torch.no_grad():
            for images, labels in data_loader:
                guesses = self._model(images.to(self._device)).argmax(dim=1)
                for image, label, guess in zip(images, labels, guesses, strict=True):
                    predictions.append(Prediction(image.cpu(), int(label), int(guess)))
        return predictions
