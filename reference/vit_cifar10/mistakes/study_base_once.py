"""The base of the study was trained with one seed. What chance alone makes of it is not known then.

Train the base with three seeds: three rows that differ in `seed` alone.
"""


def study(table):
    return "".join(
        line for line in table.splitlines(keepends=True) if ",1," not in line[20:] and ",2," not in line[20:]
    )
