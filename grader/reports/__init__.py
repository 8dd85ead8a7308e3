"""What people read: a page per student, a page for the class, `results.json` and `scores.csv`."""
