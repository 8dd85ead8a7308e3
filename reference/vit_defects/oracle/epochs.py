"""An epoch on a rigged model, whose weights are known: what was computed of each of its batches."""

from functools import cached_property

import numpy as np

from grader.kit import Cause, Mismatch, losses

from .gradients_of_losses import cross_entropy_factor, softmax

SUFFICIENT = 50  # batches that show what loss was taken


class Epoch:
    """What train_epoch was given, and what it did with it.

    Attributes:
        data: Features and labels in batches, and the weights at the beginning.
        run: What was called, which gradients reached the scores, and what was reported.
    """

    def __init__(self, data, run):
        self.data = data
        self.run = run
        self._mean_losses = {}

    @property
    def count(self):
        """How many batches it has."""
        return len(self.data.batch_sizes)

    @cached_property
    def is_moved_otherwise(self):
        """Whether the weights have changed although the optimizer that was passed took no step."""
        run = self.run
        return run.steps == 0 and not np.array_equal(run.arrays["weights"], self.data.arrays["weights"])

    @property
    def are_gradients_finite(self):
        """Whether each image's scores got a gradient, and each number of it is finite."""
        return bool(np.isfinite(self.run.arrays["logit_gradients"]).all())

    def weights_after_its_steps(self):
        """What the optimizer's steps make of the weights."""
        steps = self.run.arrays["step_gradients"]
        return self.data.arrays["weights"] - self.data.learning_rate * steps.sum(axis=0)

    def asks_for_small_weights(self):
        """Whether each step's gradient is that of its batch and a multiple of the weights: a penalty."""
        weights = self.data.arrays["weights"].astype(np.float64)
        for used, own in zip(self.run.arrays["step_gradients"], self.weight_gradients(), strict=True):
            rest = used - own
            share = (rest * weights).sum() / (weights * weights).sum()
            if share <= 0 or np.abs(rest - share * weights).max() > 0.02 * np.abs(rest).max() + 1e-6:
                return False
            weights -= self.data.learning_rate * used
        return True

    def rows(self):
        """Which images each batch has."""
        ends = np.cumsum(self.data.batch_sizes)
        return [slice(end - size, end) for end, size in zip(ends, self.data.batch_sizes, strict=True)]

    def weight_gradients(self):
        """The weight's gradient of every batch by itself, from the gradients that reached the scores."""
        features, reached = self.data.arrays["features"], self.run.arrays["logit_gradients"]
        return [features[rows].T @ reached[rows] for rows in self.rows()]

    def scores(self, *, after=0):
        """The scores of each batch, float64 (images, classes), by the weights that the steps before it left.

        Args:
            after: So many further steps are taken.
        """
        initial = self.data.arrays["weights"].astype(np.float64)
        gradients = self.run.arrays.get("step_gradients", np.zeros((0, *initial.shape)))
        # row k: the sum of the first k steps' gradients; a worker sends those of the first steps only
        sums = np.concatenate([np.zeros((1, *initial.shape)), np.cumsum(gradients, axis=0, dtype=np.float64)])
        features = self.data.arrays["features"]
        return [
            features[rows] @ (initial - self.data.learning_rate * sums[min(taken + after, len(gradients))])
            for rows, taken in zip(self.rows(), self._steps_before(), strict=True)
        ]

    def _steps_before(self):
        """How many steps the optimizer had taken before each batch's forward pass."""
        taken, steps = [], 0
        for event in self.run.events:
            steps += event == "step"
            if event == "forward":
                taken.append(steps)
        return [*taken, *[steps] * self.count][: self.count]

    @cached_property
    def batches(self):
        """For each batch: the gradient that reached the scores, their softmax, and their labels one-hot.

        After a step that is not the optimizer's, nobody knows the weights: only the first batch is here then.
        """
        known = 1 if self.is_moved_otherwise else self.count
        reached = self.run.arrays["logit_gradients"].astype(np.float64)
        return [
            (reached[rows], softmax(scores), np.eye(scores.shape[1])[self.data.labels[rows]])
            for rows, scores in zip(self.rows()[:known], self.scores()[:known], strict=True)
        ]

    @cached_property
    def _loss(self):
        """(factor, smoothing) of the cross-entropy that was learned from; None when it is another loss."""
        large = [batch for batch in self.batches[:SUFFICIENT] if np.abs(batch[0]).max() > 0.05]
        found = [cross_entropy_factor(*batch) for batch in large]
        if not found or max(rest for _, _, rest in found) > 1e-2:
            return None
        factor, smoothing, _ = np.median(found, axis=0)
        return (factor, smoothing) if factor > 0 and -0.001 < smoothing < 0.6 else None

    def mean_losses(self, *, after=0):
        """The mean loss of each batch as the gradients say that train_epoch has it: a list of (batches,).

        Plain, with the label smoothing that was used, and with the factor that was used too. None when the
        loss is not a cross-entropy, or the weights are changed by something else than the optimizer, which
        other checks judge.

        Args:
            after: 1: by the weights after the step of the batch.
        """
        if after not in self._mean_losses:
            self._mean_losses[after] = self._computed_losses(after)
        return self._mean_losses[after]

    def _computed_losses(self, after):
        if self.is_moved_otherwise or not self.are_gradients_finite or self._loss is None:
            return None
        factor, smoothing = self._loss
        labels = [self.data.labels[rows] for rows in self.rows()]
        each = self.scores(after=after)
        plain, smooth = (
            np.array([losses(scores, own, share).mean() for scores, own in zip(each, labels, strict=True)])
            for share in (0.0, max(smoothing, 0.0))
        )
        return [plain, smooth, factor * np.array(self.data.batch_sizes) * smooth]


def model_never_called(epoch):
    """What every check says of a run in which the model was not called: folded under what is first named."""
    size = epoch.data.batch_sizes[0]
    message = f"For batches of {size} images train_epoch never calls the model."
    return Mismatch(message, cause=Cause.NOT_CALLED, concerns="model")
