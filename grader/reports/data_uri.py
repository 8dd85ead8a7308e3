"""Pictures within a page."""

import base64
from collections.abc import Mapping

_PNG = b"\x89PNG\r\n\x1a\n"


def data_uri(images: Mapping[str, bytes], name: str) -> str:
    """A PNG as a data URI, empty when it is missing or is something else."""
    data = images.get(name, b"")
    return f"data:image/png;base64,{base64.b64encode(data).decode()}" if data.startswith(_PNG) else ""
