"""What a training may be at most, where the assignment says so: nobody wins by a larger machine."""

from grader.domain.formatting import counted
from grader.domain.measure import Measure
from grader.domain.plan import Rehearsal


def beyond_what_is_allowed(measure: Measure, rehearsal: Rehearsal | None, epochs: int = 0) -> tuple[str, ...]:
    """Sentences: what is more than the assignment allows.

    Args:
        rehearsal: The trial of the training; None: there was none.
        epochs: That were trained.
    """
    told = []
    size = rehearsal.multiply_adds if rehearsal is not None else None
    most = measure.most_multiply_adds
    if most is not None and size is not None and size > most:
        told.append(
            f"The model takes {size / 1e6:.1f} million multiply-adds for an image; at most "
            f"{most / 1e6:g} million are allowed."
        )
    planned = max(epochs, (rehearsal.epochs or 0) if rehearsal is not None else 0)
    if measure.most_epochs is not None and planned > measure.most_epochs:
        told.append(
            f"It is trained for {counted(planned, 'epoch')}; at most {measure.most_epochs} are allowed."
        )
    return tuple(told)
