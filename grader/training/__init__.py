"""The trusted side of training: hands out images, keeps the test labels, scores what comes back."""

from grader.training.checkpoint import measured_checkpoint
from grader.training.job import EpochReport, Job, Measured, Report, TrainedModel
from grader.training.measurement import measured_training
from grader.training.repetition import is_near, repeated_training

__all__ = [
    "EpochReport",
    "Job",
    "Measured",
    "Report",
    "TrainedModel",
    "is_near",
    "measured_checkpoint",
    "measured_training",
    "repeated_training",
]
