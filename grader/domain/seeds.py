"""Seeds that only who holds the key can work out: HMAC-SHA256 of what they are for."""

import hmac

# In the secret's place on a student's own machine: what is drawn there is the same each time, and no secret.
PUBLIC_KEY = "vit-grader: a student's own machine"


def keyed_number(key: str, *about: str | int, bits: int = 256) -> int:
    """A number that nothing but the key and what it is about decide; from one, no other follows.

    Args:
        key: The course's secret, or `PUBLIC_KEY`.
        about: What it is for, then what it is of. Only the last part may hold a colon.
        bits: It is less than 2**bits, and not negative.
    """
    told = hmac.digest(key.encode(), ":".join(map(str, about)).encode(), "sha256")
    return int.from_bytes(told, "big") >> (256 - bits)


def submission_seed(key: str, purpose: str, digest: str, run: int = 1, *, bits: int = 63) -> int:
    """The seed of one purpose for one submission.

    Args:
        key: See `keyed_number`.
        purpose: `checks`, `order`, `training`, ...
        digest: The submission's.
        run: Which of several runs for the same purpose, 1-based: their seeds are in no order.
        bits: 63 for what a worker must not guess; 31 for what is told to it, as every generator takes them.
    """
    return keyed_number(key, purpose, digest, run, bits=bits)


def training_seed(key: str, digest: str, run: int = 1, further: str = "") -> int:
    """The seed of a training, which its worker is told; from that of one run the others do not follow.

    Args:
        key, digest, run: See `submission_seed`.
        further: The measure's id, of another model than the first.
    """
    return submission_seed(key, f"training {further}".strip(), digest, run, bits=31)
