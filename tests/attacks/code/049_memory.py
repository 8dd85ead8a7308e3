"""Takes memory without end.

Stopped by: the memory cgroup, or the limit on address space
Outcome: its component fails
Fails: PreNorm
Says: memory|MemoryError
Runs: PreNorm
"""


class PreNorm(nn.Module):
    taken = []
    while True:
        taken.append(torch.ones(25_000_000))
