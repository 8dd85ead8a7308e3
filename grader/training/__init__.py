"""The trusted side of training: hands out images, keeps the test labels, scores what comes back."""

from grader.training.measurement import Job, Measured, measured_checkpoint, measured_training

__all__ = ["Job", "Measured", "measured_checkpoint", "measured_training"]
