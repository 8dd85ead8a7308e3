"""The images that students have: the zip that the course hands out, and how it is split."""

import math
import zipfile
from collections import Counter
from pathlib import Path, PurePosixPath

import numpy as np

from grader.course.dataset_file import dataset_file, load_dataset
from grader.domain.assignment import DataUse
from grader.files.known_folders import cache_folder
from grader.kit.image_folders import folder_images, opened_source, write_image_zip
from grader.kit.splits import LabeledImages, Splits, first_of_each, taken, united, without_named

PARTS = ("train", "test")


def student_split(datasets: Path, use: DataUse, source: Path | None) -> Splits:
    """The images in the students' own split.

    Args:
        datasets: The course's folder of data set files.
        use: Which data sets the assignment uses, and how.
        source: The zip that the course handed out, or the data set itself: a file or folder; None makes
            the synthetic images.

    Raises:
        UsageError: The images cannot be read.
        CourseError: The data set file is broken.
    """
    handed_out = _given_parts(datasets, use, source) if use.in_parts and source is not None else None
    if handed_out is not None:
        return handed_out
    loaded = load_dataset(
        datasets,
        use.synthetic if source is None else use.real,
        source,
        seed=use.student_seed,
        train_share=use.train_share,
        cache=cache_folder(),
    )
    data = united(loaded)
    train, test = (
        without_named(rows, data.names, use.without)
        for rows in np.split(np.arange(len(data.names), dtype=np.intp), [len(loaded.train_names)])
    )
    return taken(
        loaded.name,
        loaded.classes,
        data,
        first_of_each(train, data.labels, use.train_per_class),
        first_of_each(test, data.labels, use.test_per_class),
    )


def write_student_data(datasets: Path, use: DataUse, source: Path | None, destination: Path) -> Splits:
    """Write the zip of PNG files that students receive: `<class>/<file>`, or split `train/<class>/<file>`.

    Args:
        datasets, use, source: As in `student_split`.
        destination: The zip file; an existing one is replaced.

    Returns:
        Its images, in the students' own split.

    Raises:
        UsageError: The images cannot be read, or the file cannot be written.
    """
    splits = student_split(datasets, use, source)
    data = united(splits)
    if use.in_parts:
        write_image_zip(destination, LabeledImages(_numbered(splits), data.labels, data.images))
    else:
        order = sorted(range(len(data.names)), key=data.names.__getitem__)
        names = _as_png([data.names[row] for row in order])
        write_image_zip(destination, LabeledImages(names, data.labels[order], data.images[order]))
    return splits


def _numbered(splits: Splits) -> tuple[str, ...]:
    """`train/<class>/00001.png`: numbered in the order of the split, so that sorting by name restores it."""
    names = []
    for part, labels in zip(PARTS, (splits.train_labels, splits.test_labels), strict=True):
        counts: Counter[int] = Counter()
        for label in labels.tolist():
            counts[label] += 1
            names.append(f"{part}/{splits.classes[label]}/{counts[label]:05d}.png")
    return tuple(names)


def _as_png(names: list[str]) -> tuple[str, ...]:
    """The names of PNG files; if two would be the same, both keep their suffixes."""
    png_names = [str(PurePosixPath(name).with_suffix(".png")) for name in names]
    counts = Counter(png_names)
    return tuple(
        png_name if counts[png_name] == 1 else f"{name}.png"
        for name, png_name in zip(names, png_names, strict=True)
    )


def _given_parts(datasets: Path, use: DataUse, source: Path) -> Splits | None:
    """The split in a zip or folder that was handed out; None if it is the data set itself."""
    if not (source.is_dir() or zipfile.is_zipfile(source)):
        return None
    with opened_source(source) as opened:
        counts = Counter(PurePosixPath(file).parent.parts[-2:] for file in opened.files)
    if any(len(place) < 2 or place[0] not in PARTS for place in counts):
        return None
    most = {"train": use.train_per_class or math.inf, "test": use.test_per_class or math.inf}
    if any(count > most[part] for (part, _), count in counts.items()):
        return None
    for name in (use.real, use.synthetic):
        classes = dataset_file(datasets, name).classes
        if set(counts) == {(part, label) for part in PARTS for label in classes}:
            data = folder_images(source, name, classes, cache=cache_folder())
            rows: tuple[list[int], list[int]] = ([], [])
            for row in np.argsort(data.labels, kind="stable").tolist():  # by class, then by name
                rows[PARTS.index(PurePosixPath(data.names[row]).parts[-3])].append(row)
            return taken(name, classes, data, *(np.array(side, dtype=np.intp) for side in rows))
    return None
