"""What is compared of one submission."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grader.similarity.shape import Unit


@dataclass(frozen=True)
class Code:
    """A submission's code.

    Attributes:
        text: File or cell -> what the student wrote.
        units: In order.
    """

    text: dict[str, str]
    units: tuple[Unit, ...]


@dataclass(frozen=True)
class Weights:
    """The tensors of a checkpoint, none of which was loaded.

    Attributes:
        sizes: Of each tensor's storage, in bytes.
        digests: SHA-256 of each one's bytes, hexadecimal.
        samples: float32 values at even distances, (storages, SAMPLES).
    """

    sizes: tuple[int, ...]
    digests: tuple[str, ...]
    samples: NDArray[np.float32]


@dataclass(frozen=True)
class Figure:
    """A picture in a notebook's outputs or in a report.

    Attributes:
        digest: SHA-256 of its size and its pixels, hexadecimal.
        where: `cell 12` or `report, page 3`.
        preview: A small copy, uint8 (height, width, 3).
    """

    digest: str
    where: str
    width: int
    height: int
    preview: NDArray[np.uint8]


@dataclass(frozen=True)
class Work:
    """One submission.

    Attributes:
        before: It is of an earlier class, and is compared with this one only.
        left_out: Sentences: what of it could not be compared, and why.
    """

    student_id: str
    before: bool = False
    code: Code | None = None
    weights: Weights | None = None
    figures: tuple[Figure, ...] = ()
    left_out: tuple[str, ...] = ()
