"""The term: what the assignments of a course come to together, for each student."""
