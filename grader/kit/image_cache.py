"""Decoded images on disk, so that a data set is decoded or made once."""

import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import numpy as np

from grader.kit.splits import LabeledImages

# Part of every key: raise it when the layout of the file changes.
_LAYOUT = "2"
# Files of one data set, of up to 72 MB each: a source that was changed leaves an older one behind.
_MOST = 3
_DIGITS = 20  # of the digest, in a file's name


def cached_images(
    cache: Path | None, name: str, key: str, made: Callable[[], LabeledImages]
) -> LabeledImages:
    """The images that `made` returns, from the cache where it holds them.

    A cached file that is damaged, or that belongs to another key, is made anew. A cache that cannot be
    written (full, read-only) is done without: it saves time and decides nothing. It holds the few files of a
    data set that were used last.

    Args:
        cache: The folder of the cache, made when it is absent; None: no cache.
        name: The data set's name, for the file's name.
        key: Whatever the images depend on: a digest of the source, a seed.
        made: Decodes or makes the images.
    """
    if cache is None:
        return made()
    digest = sha256(f"{_LAYOUT}\n{name}\n{key}".encode()).hexdigest()
    path = cache / f"{name}-{digest[:_DIGITS]}.npz"
    kept = _kept(path, digest)
    if kept is not None:
        with suppress(OSError):
            os.utime(path)  # it was used just now
        return kept
    data = made()
    with suppress(OSError):
        _keep(path, digest, data)
        _prune(path, name)
    return data


def _prune(newest: Path, name: str) -> None:
    """Delete what was not used for longest, whatever the clock says of the newest."""
    others = set(newest.parent.glob(f"{name}-{'?' * _DIGITS}.npz")) - {newest}
    for old in sorted(others, key=lambda file: file.stat().st_mtime_ns, reverse=True)[_MOST - 1 :]:
        old.unlink(missing_ok=True)


def _kept(path: Path, digest: str) -> LabeledImages | None:
    """What the file holds; None when it is absent, damaged or belongs to another key."""
    try:
        # opened here, because numpy leaves a file that is cut off open
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            head = json.loads(file["head"].tobytes())
            data = LabeledImages(tuple(head["names"]), file["labels"], file["images"])
            known = head["digest"] == digest
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error):
        return None
    fits = len(data.names) == len(data.labels) == len(data.images)
    typed = data.images.dtype == np.uint8 and data.labels.dtype == np.int64
    return data if known and fits and typed else None


def _keep(path: Path, digest: str, data: LabeledImages) -> None:
    """Write the file under a name of its own, then rename it: nobody reads half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = json.dumps({"digest": digest, "names": data.names}).encode()
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.stem}-", delete=False) as file:
        written = Path(file.name)
        try:
            np.savez(file, head=np.frombuffer(head, np.uint8), labels=data.labels, images=data.images)
            file.close()
            written.replace(path)
        except BaseException:
            file.close()
            written.unlink(missing_ok=True)
            raise
