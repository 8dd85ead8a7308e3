"""The export by pandas, tensors too, columns in another order."""


def export_metrics(metrics, path):
    import pandas as pd

    flat = {}

    def walk(prefix, value):
        if isinstance(value, dict):
            for key in value:
                walk(f"{prefix}{key}.", value[key])
        elif np.ndim(value) == 0:
            flat[prefix[:-1]] = float(value)
        elif np.ndim(value) == 1:
            walk(prefix, dict(enumerate(value)))

    walk("", metrics)
    pd.DataFrame({"value": flat.values(), "metric": flat.keys()}).to_csv(path, index=False)
