"Schedules as functions of a share, joined by `combine_scheds`; see lesson 'The Learner from scratch'."
import math
from functools import partial, wraps

__all__ = ["annealer", "sched_lin", "sched_cos", "sched_no", "combine_scheds", "warmup_cosine"]


def annealer(f):
    @wraps(f)
    def _inner(start, end):
        return partial(f, start, end)

    return _inner


@annealer
def sched_no(start, end, pos):
    return start


@annealer
def sched_lin(start, end, pos):
    return start + (end - start) * pos


@annealer
def sched_cos(start, end, pos):
    return start + (1 - math.cos(math.pi * pos)) * (end - start) / 2


def combine_scheds(lengths, scheds, after):
    "Each of `scheds` for as many steps as `lengths` says, then the constant `after`"

    def _inner(step):
        for n, sched in zip(lengths, scheds):
            if step < n:
                return float(sched(step / n))
            step -= n
        return float(after)

    return _inner


def warmup_cosine(step, warmup_steps, total_steps):
    up, down = warmup_steps, max(total_steps - warmup_steps, 0)
    return combine_scheds([up, down], [sched_lin(0.0, 1.0), sched_cos(1.0, 0.0)], 0.0)(step)
