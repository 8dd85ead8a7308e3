"""Marks that people give, as spreadsheets: what they mark by, and what they wrote, checked cell by cell."""
