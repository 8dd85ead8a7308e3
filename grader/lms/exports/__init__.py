"""Grades for other programs: a module per format, each a pure function from results to bytes."""
