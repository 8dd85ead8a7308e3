"""Zips are unpacked within their folder and within limits; the harmless rest of a bad one survives."""

import io
import struct
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.domain.errors import SubmissionError
from grader.domain.submission import RefusedFile
from grader.intake.archive import directory_bytes
from grader.intake.archive_pieces import Begun, Caps, Ended
from grader.intake.unpacking import unpacked

CAPS = Caps(total_bytes=3_000_000, file_bytes=2_000_000, entries=50)


@pytest.fixture
def packed(tmp_path):
    """A zip of (entry or name, content) pairs."""

    def of(*entries):
        path = tmp_path / "upload.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for entry, content in entries:
                archive.writestr(entry, content)
        return path

    return of


def link(name):
    entry = zipfile.ZipInfo(name)
    entry.create_system = 3
    entry.external_attr = 0o120777 << 16
    return entry


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ("../evil.py", "outside"),
        ("a/../../evil.py", "outside"),
        ("/etc/evil.py", "outside"),
        ("C:/evil.py", "outside"),
        ("..\\evil.py", "outside"),
        (link("evil.py"), "link"),
        ("x" * 250 + ".py", "too long"),
        ("/".join("abcdefghijklmnop") + ".py", "too deep"),
        ("ev\x07il.py", "control characters"),
        ("GOOD.py", "twice"),
        ("good.py/evil.py", "twice"),
    ],
)
def test_a_bad_entry_stays_inside_and_the_others_come_out(packed, tmp_path, entry, word):
    result = unpacked(packed(("good.py", "x = 1"), (entry, "evil")), tmp_path / "in/side", CAPS)
    assert [file.relative_to(tmp_path / "in/side").as_posix() for file in result.files] == ["good.py"]
    assert [word in file.reason for file in result.refused] == [True]
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix == ".py"]
    assert written == list(result.files) and written[0].read_text() == "x = 1"


def test_what_unpacks_to_too_much_is_refused(packed, tmp_path):
    result = unpacked(packed(("a.py", "x"), ("bomb.py", b"\0" * 1_900_000)), tmp_path / "a", CAPS)
    assert [file.name for file in result.files] == ["a.py"]
    assert "hundreds of times" in result.refused[0].reason
    result = unpacked(packed(("big.pth", b"\0" * 2_500_000)), tmp_path / "b", CAPS)
    assert "2 MB" in result.refused[0].reason
    many = [(f"{i}.bin", bytes(range(256)) * 4_000) for i in range(3)]
    with pytest.raises(SubmissionError, match=r"upload\.zip: would unpack to 3 MB"):
        unpacked(packed(*many), tmp_path / "c", CAPS)
    with pytest.raises(SubmissionError, match="more than 50 files"):
        unpacked(packed(*[(f"{i}.py", "x") for i in range(51)]), tmp_path / "d", CAPS)


def test_sizes_that_lie_are_caught_while_reading(packed, tmp_path):
    path = packed(("a.py", b"\0" * 500_000), ("b.py", "x"))
    raw = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        struct.pack_into("<L", raw, raw.index(signature) + offset, 10)
    path.write_bytes(raw)
    result = unpacked(path, tmp_path / "out", CAPS)
    assert [file.name for file in result.files] == ["b.py"]
    assert "damaged" in result.refused[0].reason and not (tmp_path / "out/a.py").exists()


def test_a_damaged_entry_is_told_from_the_others(packed, tmp_path):
    path = packed(("a.py", "import this" * 50), ("b.py", "x"))
    raw = bytearray(path.read_bytes())
    raw[40] ^= 0xFF
    path.write_bytes(raw)
    result = unpacked(path, tmp_path / "out", CAPS)
    assert [file.name for file in result.files] == ["b.py"] and "damaged" in result.refused[0].reason


def test_passwords_are_said_to_be_the_reason(packed, tmp_path):
    path = packed(("a.py", "x"))
    raw = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        raw[raw.index(signature) + offset] |= 1
    path.write_bytes(raw)
    with pytest.raises(SubmissionError, match="protected by a password"):
        unpacked(path, tmp_path / "out", CAPS)


@pytest.mark.parametrize(
    "content", [b"", b"x", b"PK\x03\x04", b"PK\x05\x06" + b"\xff" * 18, b"PK\x05\x06" * 9]
)
def test_what_is_no_zip_gets_one_sentence(tmp_path, content):
    path = tmp_path / "upload.zip"
    path.write_bytes(content)
    with pytest.raises(SubmissionError, match=r"^upload\.zip: ") as raised:
        unpacked(path, tmp_path / "out", CAPS)
    assert "Pack" in str(raised.value)


def test_a_huge_directory_is_seen_before_it_is_read(tmp_path):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.py", "x")
    raw = bytearray(stream.getvalue())
    struct.pack_into("<L", raw, raw.rindex(b"PK\x05\x06") + 12, 2**31)
    path = tmp_path / "upload.zip"
    path.write_bytes(raw)
    assert directory_bytes(io.BytesIO(raw)) == 2**31
    with pytest.raises(SubmissionError, match="more than 50 files"):
        unpacked(path, tmp_path / "out", CAPS)


def test_clutter_stays_inside_and_backslashes_are_folders(packed, tmp_path):
    result = unpacked(
        packed(("__MACOSX/._a.py", "x"), ("a\\b.py", "x"), ("a/.DS_Store", "x")), tmp_path / "o", CAPS
    )
    assert [file.relative_to(tmp_path / "o").as_posix() for file in result.files] == ["a/b.py"]
    assert [file.name for file in result.refused] == ["__MACOSX/._a.py", "a/.DS_Store"]
    assert all(file.clutter for file in result.refused)


class Liar:
    """A reader of archives that an archive has taken over."""

    def __init__(self, *pieces):
        self._pieces = pieces

    def contents(self, archive, caps):
        yield from self._pieces


@pytest.mark.parametrize(
    "pieces",
    [
        [Begun("../evil.py"), b"x", Ended()],
        [Begun("/etc/evil.py"), b"x", Ended()],
        [Begun("a\\..\\..\\evil.py"), b"x", Ended()],
        [Begun(""), b"x", Ended()],
        [Begun("a.py"), Ended(), Begun("A.py"), Ended()],
        [Begun("a.py"), Ended(), Begun("a.py/b.py"), Ended()],
        [Begun("a.py"), Begun("b.py"), Ended()],
        [Begun("a.py"), b"x" * 2_000_001, Ended()],
        [piece for i in range(2) for piece in (Begun(f"{i}.py"), b"x" * 1_900_000, Ended())],
        [piece for i in range(51) for piece in (Begun(f"{i}.py"), Ended())],
        [RefusedFile("a", "b")] * 51,
        [b"x"],
        [Ended()],
    ],
)
def test_what_reads_an_archive_is_not_believed(tmp_path, pieces):
    """Names, sizes and counts are judged again by whoever writes the files."""
    with pytest.raises(SubmissionError, match=r"^upload\.zip: unpacking it failed"):
        unpacked(tmp_path / "upload.zip", tmp_path / "in/side", CAPS, Liar(*pieces))
    inside = tmp_path / "in/side"
    assert all(path.is_relative_to(inside) for path in tmp_path.rglob("*") if path.is_file())
    assert not any(path.stat().st_size > 1_900_000 for path in inside.rglob("*"))


def test_an_entry_that_never_ends_leaves_no_file(tmp_path):
    assert unpacked(tmp_path / "a.zip", tmp_path / "in", CAPS, Liar(Begun("a.py"), b"x")).files == ()
    assert not any((tmp_path / "in").iterdir())


def test_archives_within_archives_stay_files(tmp_path):
    """However deep: what is inside is for whoever hands it in to unpack."""
    data = b"x = 1"
    for _ in range(30):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("inner.zip", data)
        data = stream.getvalue()
    (tmp_path / "upload.zip").write_bytes(data)
    result = unpacked(tmp_path / "upload.zip", tmp_path / "out", CAPS)
    assert [path.relative_to(tmp_path / "out").as_posix() for path in result.files] == ["inner.zip"]


NAMES = st.lists(st.text("aB.é\u0301/\\:~ \0\n", max_size=8), min_size=1, max_size=6)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(NAMES)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_any_names_stay_inside(names):
    """Absurd, equal, nested in each other: a file or a reason, and never a file elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        path, into = Path(folder, "upload.zip"), Path(folder, "in", "side")
        with zipfile.ZipFile(path, "w") as archive:
            for number, name in enumerate(names):
                archive.writestr(zipfile.ZipInfo(name), str(number))
        result = unpacked(path, into, CAPS)
        written = {entry for entry in Path(folder).rglob("*") if entry.is_file()} - {path}
        assert written == set(result.files)
        assert all(entry.is_relative_to(into) for entry in written)
        assert len(result.files) + len(result.refused) <= len(names)
