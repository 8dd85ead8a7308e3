"""A measure is a percentage. A share from 0 to 1 is asked for.

Write what `classification_metrics` gives.
"""


def metrics(table):
    return table.replace("vit.accuracy,0.61", "vit.accuracy,61")
