"""An automated grader for deep-learning homework."""

__version__ = "0.1.0"
