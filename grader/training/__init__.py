"""The trusted side of training: hands out images, keeps the test labels, scores what comes back."""

from grader.training.measured_training import measured_training
from grader.training.rehearsal import made_up_images, rehearsed
from grader.training.repetition import is_near, repeated_training
from grader.training.submitted_weights import measured_checkpoint
from grader.training.training_job import EpochReport, FinalModel, Job, Measured, Report

__all__ = [
    "EpochReport",
    "FinalModel",
    "Job",
    "Measured",
    "Report",
    "is_near",
    "made_up_images",
    "measured_checkpoint",
    "measured_training",
    "rehearsed",
    "repeated_training",
]
