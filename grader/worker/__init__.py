"""The untrusted side: the process in which a student's code runs, and answers.

It imports nothing of ours but `domain` and `protocol`, and is locked down before the first line of a
student's runs. Whatever it says is decoded as hostile input.
"""
