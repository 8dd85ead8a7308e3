"""The untrusted side: the process in which a student's code runs, and answers.

It imports nothing of ours but `domain`, `protocol` and, in `host`, the `sandbox` that locks it down before
the first line of a student's code runs. Whatever it says is decoded as hostile input.
"""
