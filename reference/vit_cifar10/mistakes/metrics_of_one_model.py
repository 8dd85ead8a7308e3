# >>> ONLY full
"""The table of measures has the numbers of one model. Both are asked for, each with its name before the dot.

Put both into one dictionary: `export_metrics({"vit": ..., "resnet": ...}, path)`.
"""


def metrics(table):
    return "".join(line for line in table.splitlines(keepends=True) if "resnet" not in line)


# <<< ONLY
