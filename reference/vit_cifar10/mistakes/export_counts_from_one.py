"""The numbers of an array are counted from 1; they should be counted from 0.

Look for: enumerate()
"""


def export_metrics(metrics, path):
    def rows(value, name):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from rows(inner, f"{name}.{key}" if name else str(key))
        elif np.ndim(value) == 1:
            for number, inner in enumerate(value, start=1):
                yield from rows(inner, f"{name}.{number}")
        elif np.ndim(value) == 0:
            yield name, float(value)

    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "value"])
        writer.writerows(rows(metrics, ""))
