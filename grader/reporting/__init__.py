"""What one audience reads: a page per student, a page for the class, `results.json` and `scores.csv`."""
