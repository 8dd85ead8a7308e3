"""Cell outputs made anew: text and decoded pictures alone.

Nothing else is taken over: no HTML, SVG, JavaScript, widget, attachment or metadata. It decides how much is
shown and says what was cut. Call it where a hostile file can do no harm. `claims` reads claims in outputs,
not this module.

Tests: tests/analysis/test_view.py
"""

import base64
import binascii
import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from grader.analysis.notebook import joined

MOST_PICTURES = 40
MOST_PIXELS = 16_000_000  # of one picture
MOST_PIXELS_IN_ALL = 40_000_000
WIDEST = 1400  # pixels, as shown
MOST_PRINTED = 20_000  # characters of one output
MOST_PRINTED_IN_ALL = 600_000
MOST_OUTPUTS = 200  # of one cell
_PICTURES = ("image/png", "image/jpeg", "png", "jpeg")  # the last two in formats before 4
_TEXTS = ("text/plain", "text", "text/markdown", "text/latex")
# the escape begins a terminal's colors, which are shown as such
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]")


Output = dict[str, Any]
"""As nbformat 4 has it."""


@dataclass
class Budget:
    """What may still be shown of a notebook, and what was left out."""

    pictures: int = MOST_PICTURES
    pixels: int = MOST_PIXELS_IN_ALL
    printed: int = MOST_PRINTED_IN_ALL
    cuts: list[str] = field(default_factory=list)

    def cut(self, sentence: str) -> None:
        """Note what is not shown, once."""
        if sentence not in self.cuts:
            self.cuts.append(sentence)


def plain_outputs(cell: dict[str, Any], where: str, budget: Budget) -> list[Output]:
    """A cell's outputs as text and JPEG pictures.

    Args:
        cell: As the notebook has it, of any format.
        where: The cell, for sentences.
        budget: What the cells before left; what this one needs is taken from it.
    """
    outputs = cell.get("outputs")
    listed = [one for one in outputs if isinstance(one, dict)] if isinstance(outputs, list) else []
    if len(listed) > MOST_OUTPUTS:
        budget.cut(f"{where} has {len(listed)} outputs; the first {MOST_OUTPUTS} are shown.")
    return [made for output in listed[:MOST_OUTPUTS] for made in _plain(output, where, budget)]


def _plain(output: dict[str, Any], where: str, budget: Budget) -> Iterator[Output]:
    kind = output.get("output_type")
    if kind == "stream":
        name = "stderr" if "stderr" in (output.get("name"), output.get("stream")) else "stdout"
        yield _printed(_text(joined(output.get("text")), where, budget), name)
    elif kind in ("error", "pyerr"):
        trace = output.get("traceback")
        told = "\n".join(line for line in trace if isinstance(line, str)) if isinstance(trace, list) else ""
        told = told or f"{joined(output.get('ename'))}: {joined(output.get('evalue'))}"
        yield _printed(_text(joined(told), where, budget), "stderr")
    else:
        data = output.get("data")
        held = data if isinstance(data, dict) else output
        made = _picture_of(held, where, budget)
        if made is not None:
            yield made
            return
        text = next((text for name in _TEXTS if (text := joined(held.get(name)))), None)
        if text is None:
            kinds = sorted(str(name)[:60] for name in held if "/" in str(name))[:3]
            text = f"(not shown: an output of the kind {', '.join(kinds) or 'unknown'})"
        yield _printed(_text(text, where, budget))


def _text(text: str, where: str, budget: Budget) -> str:
    """A printed text as a terminal leaves it, its middle left out where it is long."""
    most = min(MOST_PRINTED, budget.printed)
    if len(text) > most:
        budget.cut(f"{where} printed more than is shown.")
        head = text[: most // 2]
        text = f"{head}\n… {len(text) - most} characters are not shown …\n{text[len(text) - most // 2 :]}"
    budget.printed -= min(len(text), budget.printed)
    # a carriage return begins the line again, as progress bars do
    lines = (line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", "\n".join(lines))


def _picture_of(held: dict[str, Any], where: str, budget: Budget) -> Output | None:
    encoded = next((text for name in _PICTURES if (text := joined(held.get(name)))), None)
    if encoded is None:
        return None
    if budget.pictures <= 0 or budget.pixels <= 0:
        budget.cut(f"Further pictures, from {where} on, are not shown.")
        return _printed("(a picture is not shown)")
    budget.pictures -= 1
    try:
        picture = _drawn_anew(base64.b64decode(encoded), budget)
    except MemoryError:
        raise
    except (binascii.Error, ValueError):
        picture = None
    if picture is None:
        return _printed("(a picture that cannot be shown)")
    made = {"image/jpeg": base64.b64encode(picture).decode("ascii")}
    return {"output_type": "display_data", "data": made, "metadata": {}}


def _printed(text: str, name: str = "stdout") -> Output:
    return {"output_type": "stream", "name": name, "text": text}


def _drawn_anew(data: bytes, budget: Budget) -> bytes | None:
    """The pixels of a PNG or JPEG as a JPEG of our own; None where it is none, or is too large."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
                pixels = image.width * image.height
                if pixels > min(MOST_PIXELS, budget.pixels):
                    return None
                budget.pixels -= pixels
                shown = _on_white(image)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - Pillow fails in many ways on what is not a picture
        return None
    if shown.width > WIDEST:
        shown.thumbnail((WIDEST, MOST_PIXELS))
    made = io.BytesIO()
    # made anew in the fastest of the formats: it is what costs most of a view
    shown.save(made, "JPEG", quality=90, subsampling=0)
    return made.getvalue()


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode in ("RGB", "L"):
        return image.convert("RGB")
    whole = image.convert("RGBA")
    if whole.getchannel("A").getextrema() == (255, 255):
        return whole.convert("RGB")
    page = Image.new("RGBA", whole.size, "white")
    page.alpha_composite(whole)
    return page.convert("RGB")
