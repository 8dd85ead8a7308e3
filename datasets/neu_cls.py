"""The NEU surface defect data set: 1,800 gray images of hot-rolled steel strip, 300 of each of six defects.

Collected by K. Song and Y. Yan, Northeastern University. The course hands it out as a zip with one folder per
class; the folder that it unpacks to will do as well, and so will the original flat folder (`Cr_1.bmp`).
"""

from pathlib import Path

from grader.kit.image_folders import folder_images
from grader.kit.splits import Splits, split_images

NAME = "neu_cls"
TITLE = "NEU surface defects"
CLASSES = ("crazing", "inclusion", "patches", "pitted_surface", "rolled-in_scale", "scratches")

SHORT_FORMS = dict(zip(("cr", "in", "pa", "ps", "rs", "sc"), CLASSES, strict=True))


def load(source: Path | None, *, seed: int, train_share: float = 0.7, cache: Path | None = None) -> Splits:
    """The data set, split per class, with identical images on one side.

    Args:
        source: The course's zip or the unpacked folder. None is an error: the images come without a license,
            so that the course does not hold them.
        seed: Of the shuffle of each class's sorted names; 42 is the students'.
        train_share: The share of each class that trains, more than 0, less than 1.
        cache: Where decoded images are kept for the next time; None: nowhere.

    Returns:
        uint8 images, (n, 200, 200).

    Raises:
        UsageError: The source is missing, damaged or incomplete.
    """
    images = folder_images(source, NAME, CLASSES, short_forms=SHORT_FORMS, cache=cache)
    return split_images(NAME, CLASSES, images, seed=seed, train_share=train_share)
