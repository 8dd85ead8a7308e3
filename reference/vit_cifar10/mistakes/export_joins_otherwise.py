"""Nested names are joined by something other than dots."""


def export_metrics(metrics, path):
    def rows(value, name):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from rows(inner, f"{name}/{key}" if name else str(key))
        elif np.ndim(value) == 1:
            for number, inner in enumerate(value):
                yield from rows(inner, f"{name}.{number}")
        elif np.ndim(value) == 0:
            yield name, float(value)

    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "value"])
        writer.writerows(rows(metrics, ""))
