"""The parts of a submission that are compared: units of code, sampled weights, and pictures.

The module holds the types that readers of a submission fill, and limits on how much of it is kept. It reads
and compares nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SAMPLES = 64  # values of a storage that are compared
MOST_TENSORS = 2000  # of a checkpoint
MOST_FIGURES = 60  # of a notebook or a report
PREVIEW = 220  # pixels of a picture's small copy, the longer side

Token = tuple[str, int]
"""A token, and the line (1-based) that it is on."""


@dataclass(frozen=True)
class CodeUnit:
    """A simple statement, or the head of a compound one.

    Attributes:
        file: `homework.py` or `In [4], cell 9`.
        block: The number of the function, class body or top level that it belongs to.
        tokens: Never empty.
    """

    file: str
    block: int
    tokens: tuple[Token, ...]

    @property
    def form(self) -> tuple[str, ...]:
        """The tokens without their lines."""
        return tuple(token for token, _ in self.tokens)


@dataclass(frozen=True)
class Code:
    """A submission's code.

    Attributes:
        text: File or cell -> what the student wrote.
        units: In order.
    """

    text: dict[str, str]
    units: tuple[CodeUnit, ...]


@dataclass(frozen=True)
class SampledWeights:
    """The tensors of a checkpoint, none of which was loaded.

    Attributes:
        sizes: The size of each tensor's storage, in bytes.
        digests: SHA-256 of each storage's bytes, hexadecimal.
        samples: float32 values at even distances, (storages, SAMPLES).
    """

    sizes: tuple[int, ...]
    digests: tuple[str, ...]
    samples: NDArray[np.float32]


@dataclass(frozen=True)
class ComparedPicture:
    """A picture in a notebook's outputs or in a report.

    Attributes:
        digest: SHA-256 of its size and its pixels, hexadecimal.
        where: `In [7], cell 12` or `report, page 3`.
        preview: A small copy, uint8 (height, width, 3).
    """

    digest: str
    where: str
    width: int
    height: int
    preview: NDArray[np.uint8]


@dataclass(frozen=True)
class CodePrints:
    """What is kept of a student's own code for later terms: nothing from which it could be written again.

    Attributes:
        lengths: Block -> how many tokens it has.
        starts: (fingerprint, block, position of its first token) of each.
    """

    lengths: dict[int, int]
    starts: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Work:
    """One submission.

    Attributes:
        before: It is from an earlier class: it is compared with the class that is graded, not with its own.
        left_out: Sentences on the parts that could not be compared, and why.
        prints: In place of the code, for work of which only fingerprints were kept.
    """

    student_id: str
    before: bool = False
    code: Code | None = None
    weights: SampledWeights | None = None
    figures: tuple[ComparedPicture, ...] = ()
    left_out: tuple[str, ...] = ()
    prints: CodePrints | None = None
