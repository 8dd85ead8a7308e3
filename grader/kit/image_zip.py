"""A zip of labeled images as a course hands it out: one folder per class."""

import io
import zipfile
from contextlib import suppress
from pathlib import Path

from PIL import Image

from grader.domain.errors import UsageError
from grader.kit.splits import LabeledImages


def write_image_zip(destination: Path, data: LabeledImages) -> None:
    """Write the images as PNG files under their names, the same bytes for the same images.

    Args:
        destination: The zip file; its folder is made when it is absent. A file that is there is replaced.
        data: The images; a name is `<class>/<file>.png`.

    Raises:
        UsageError: The file cannot be written.
    """
    part = destination.with_name(destination.name + ".part")
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:  # PNG is compressed already
            for name, image in zip(data.names, data.images, strict=True):
                encoded = io.BytesIO()
                Image.fromarray(image).save(encoded, format="PNG", compress_level=6)
                about = zipfile.ZipInfo(name)  # with the earliest date that a zip can hold, not today's
                about.create_system = 3  # Unix, wherever it is written
                about.external_attr = 0o644 << 16
                archive.writestr(about, encoded.getvalue())
        part.replace(destination)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise UsageError(
            f"{destination} cannot be written ({error.strerror}). Choose another place with --out."
        ) from error
