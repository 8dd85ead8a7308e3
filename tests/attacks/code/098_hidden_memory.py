"""Hides memory in shared maps, after it was refused files that live in memory.

Stopped by: the memory cgroup, or the limit on address space
Outcome: its component fails
Fails: PreNorm
Says: memory|MemoryError
Runs: PreNorm
"""


class PreNorm(nn.Module):
    import mmap
    import os

    try:
        os.memfd_create("hidden")
    except PermissionError:
        taken = []
    while True:
        taken.append(mmap.mmap(-1, 50_000_000))
        taken[-1].write(bytes(50_000_000))
