"""Static analysis: from a submission's source to a program that may be executed.

The package decides which statements are executed on loading and in training. It never executes them:
`grader.worker` does. `grader.scoring` decides what a submission is worth.

Tests: tests/analysis/test_loading_statements.py, tests/analysis/test_recipe.py
"""

from grader.analysis.programs import program

__all__ = ["program"]
