"""The factor falls by a quarter of a cosine, cos(pi / 2 * progress); it should be half of one.

0.5 * (1 + cos(pi * progress))

Look for: cos()
"""


def warmup_cosine(step, warmup_steps, total_steps):
    if step < warmup_steps:
        return step / warmup_steps
    if step >= total_steps:
        return 0.0
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return math.cos(0.5 * math.pi * progress)
