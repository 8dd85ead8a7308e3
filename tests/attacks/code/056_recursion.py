"""Recurses without end.

Stopped by: the worker alone dies
Outcome: its component fails
Fails: PreNorm
Says: signal 11|RecursionError|memory|MemoryError|did not return
Runs: PreNorm
"""


def deeper(value):
    return deeper([value]) + 1


class PreNorm(nn.Module):
    import sys

    sys.setrecursionlimit(10**9)
    deeper(0)
