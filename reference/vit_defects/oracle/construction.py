"""What a constructor hands on to the parts that it makes."""

from grader.kit import Mismatch, quoted

DEFAULTS = {"heads": 4, "dim_head": 64, "dropout": 0.0}  # of the handout's signatures


def not_handed_on(part, sizes, given):
    """The names of the sizes that a part was not constructed with.

    Args:
        sizes: Name -> what the part should be given.
        given: Name -> what it was given; None for what is not a plain value and cannot be judged.
    """
    return [
        name for name, size in sizes.items() if given.get(name, DEFAULTS.get(name, size)) not in (size, None)
    ]


def ignored_size(whole, part, name, size, given):
    """What to raise when a size is not handed on."""
    value = given.get(name, DEFAULTS.get(name))
    return Mismatch(
        f"{whole} constructs its {part} with {name}={quoted(value) if isinstance(value, str) else value}; "
        f"it was asked for {size}.",
        hint=f"Hand {name} on as it was given: another number is in its place, or the arguments are in "
        "another order.",
        diagnosis="sizes_not_handed_on",
    )
