"""Results with known totals."""

from tests.graded_results import a_result

__all__ = ["a_result"]
