"""The trusted side of training: hands out images, keeps the test labels, and measures trained weights."""

from grader.training.measured_training import (
    is_near,
    job_of,
    made_up_images,
    measured_training,
    rehearsed,
    rehearsed_call,
    repeated_training,
    trained_once,
)
from grader.training.submitted_weights import measured_checkpoint
from grader.training.training_job import AnyJob, CalledJob, EpochReport, FinalModel, Job, Measured, Report

__all__ = [
    "AnyJob",
    "CalledJob",
    "EpochReport",
    "FinalModel",
    "Job",
    "Measured",
    "Report",
    "is_near",
    "job_of",
    "made_up_images",
    "measured_checkpoint",
    "measured_training",
    "rehearsed",
    "rehearsed_call",
    "repeated_training",
    "trained_once",
]
