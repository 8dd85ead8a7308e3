"""A row of the study differs from the base in more than one value, so nobody can tell which one mattered.

Change one value of the base, and put the others back.
"""


def study(table):
    return table.replace("4,48,2,4,2.0", "4,96,2,4,2.0")
