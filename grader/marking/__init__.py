"""Marking by question, by several people at once, on one gradebook.

Marks are the edits that `grader.decisions` makes of a marking sheet: whoever works in a sheet sees them, and
the other way round. What else markers need (who has what open, drafts, notes, second marks) stands in tables
of its own, on which no grade depends.
"""
