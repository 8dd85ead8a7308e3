"""Writes zips whose bytes depend only on their content."""

import io
import zipfile
from collections.abc import Iterable

EARLIEST = (1980, 1, 1, 0, 0, 0)  # the earliest date that a zip can hold
Moment = tuple[int, int, int, int, int, int]


def zipped(files: Iterable[tuple[str, bytes]], moment: Moment = EARLIEST) -> bytes:
    """A zip of files that everybody may read; the same files and moment give the same bytes anywhere.

    Args:
        files: (path within the zip, content), in order.
        moment: Year, month, day, hour, minute, second of all of them.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files:
            entry = zipfile.ZipInfo(path, moment)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3  # Unix, on every system
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()
