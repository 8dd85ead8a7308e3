"""The console: pages in which people mark, served to a browser by one process.

It shows what students wrote as hostile text, runs none of it, and loads nothing from elsewhere. What is
marked, and by which rules, stands in `grader.marking`.
"""
