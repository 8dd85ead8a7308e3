"""Seeds that only who holds the key can work out."""

import hashlib
import hmac
from itertools import pairwise

from grader.domain.assignment_versions import PUBLIC_KEY, keyed_number, submission_seed, training_seed


def test_a_seed_is_an_hmac_of_what_it_is_for() -> None:
    """By its definition, so that grades can be worked out again by another program."""
    told = hmac.new(b"secret", b"order:ab12:2", hashlib.sha256).digest()
    assert keyed_number("secret", "order", "ab12", 2) == int.from_bytes(told, "big")
    assert submission_seed("secret", "order", "ab12", 2) == int.from_bytes(told[:8], "big") >> 1
    told = hmac.new(b"secret", b"training:ab12:1", hashlib.sha256).digest()
    assert training_seed("secret", "ab12") == int.from_bytes(told[:4], "big") >> 1


def test_every_part_changes_it() -> None:
    """The key, the purpose, the submission and the run."""
    seeds = [
        submission_seed(key, purpose, digest, run)
        for key in ("one", "two", PUBLIC_KEY)
        for purpose in ("checks", "order")
        for digest in ("ab12", "cd34")
        for run in (1, 2, 3)
    ]
    assert len(set(seeds)) == len(seeds) and all(0 <= seed < 2**63 for seed in seeds)


def test_the_seeds_of_runs_are_in_no_order() -> None:
    """From one the next does not follow: over many submissions their differences take every value."""
    each = [[training_seed("secret", f"{n:064x}", run) for run in (1, 2, 3)] for n in range(400)]
    assert all(0 <= seed < 2**31 for seeds in each for seed in seeds)
    steps = {after - before for seeds in each for before, after in pairwise(seeds)}
    assert len(steps) > 790
    first = sum(seeds[0] == min(seeds) for seeds in each)
    assert 90 < first < 180, "which of the three is least says nothing"
    assert 60 < sum(seeds[0] % 4 == 0 for seeds in each) < 140


def test_nobody_without_the_key_has_it() -> None:
    """It is not the one that a digest alone gives."""
    digest = hashlib.sha256(b"homework").hexdigest()
    known = int.from_bytes(hashlib.sha256(digest.encode()).digest()[:4], "big") >> 1
    assert training_seed("secret", digest) not in (known, training_seed("", digest))
