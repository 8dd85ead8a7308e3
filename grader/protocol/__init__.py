"""What the judge and the worker say to each other over one pair of pipes.

The worker's side of every conversation is hostile: sizes, types and shapes are checked before anything is
believed, and nothing is ever unpickled.
"""
