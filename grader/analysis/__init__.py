"""From a submission's source to a program that may be executed. Nothing is executed here."""

from grader.analysis.programs import program

__all__ = ["program"]
