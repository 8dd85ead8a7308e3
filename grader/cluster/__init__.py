"""A class examined by many machines: `grader grade --cluster`.

Dask distributed carries the work. Only the coordinator, which is the command itself, reads uploads and writes
the gradebook. A node gets a submission when it has a free place, and answers with the evidence.
"""
