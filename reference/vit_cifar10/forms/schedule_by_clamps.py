"""The schedule in one expression for each part, by min and max."""


def warmup_cosine(step, warmup_steps, total_steps):
    rise = min(1.0, step / warmup_steps) if warmup_steps > 0 else 1.0
    fall = min(1.0, max(0.0, (step - warmup_steps) / max(1, total_steps - warmup_steps)))
    return rise * float(np.cos(fall * np.pi) + 1) / 2
