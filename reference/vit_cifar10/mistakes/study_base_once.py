"""The base of the study was trained with one seed. So nobody knows how much chance alone changes.

Train the base with three seeds: three rows that differ in `seed` alone.
"""


def study(table):
    return "".join(
        line for line in table.splitlines(keepends=True) if ",1," not in line[20:] and ",2," not in line[20:]
    )
