"""Pages that the reports made, served as they are: with the styles within them, and nothing else."""

import re
from base64 import b64encode
from hashlib import sha256

from starlette.responses import Response

_STYLE = re.compile(rb"<style>(.*?)</style>", re.DOTALL)


def report_page(content: bytes) -> Response:
    """A self-contained page, allowed its own styles and pictures."""
    styles = " ".join(
        f"'sha256-{b64encode(sha256(style).digest()).decode()}'" for style in _STYLE.findall(content)
    )
    policy = "; ".join(
        (
            "default-src 'none'",
            "img-src data:",
            f"style-src {styles}" if styles else "style-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "sandbox",
        )
    )
    headers = {"Content-Security-Policy": policy}
    return Response(content, media_type="text/html; charset=utf-8", headers=headers)
