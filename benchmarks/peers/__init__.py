"""The same notebooks, graded by nbgrader, by Otter and by this grader."""
