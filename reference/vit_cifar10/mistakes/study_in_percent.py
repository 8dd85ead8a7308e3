"""The validation accuracies of the study are percentages. A share from 0 to 1 is asked for.

Divide by 100, or write what `fit` has in its history.
"""


def study(table):
    head, *rows = table.splitlines()
    changed = [",".join((*row.split(",")[:-1], str(100 * float(row.split(",")[-1])))) for row in rows]
    return "\n".join((head, *changed)) + "\n"
