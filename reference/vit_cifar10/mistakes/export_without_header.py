"""The CSV has no first row with the names of its columns, metric and value."""


def export_metrics(metrics, path):
    def rows(value, name):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from rows(inner, f"{name}.{key}" if name else str(key))
        elif np.ndim(value) == 1:
            for number, inner in enumerate(value):
                yield from rows(inner, f"{name}.{number}")
        elif np.ndim(value) == 0:
            yield name, float(value)

    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows(rows(metrics, ""))
