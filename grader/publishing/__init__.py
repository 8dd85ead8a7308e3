"""Grades leave the house: what must be settled before, what left, and the pages for students."""
