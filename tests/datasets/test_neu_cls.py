"""The course's images: every layout that they come in, and one clear sentence for whatever is wrong."""

import os
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from grader.domain.errors import UsageError
from grader.kit import image_folders

LEFT_OVERS = {
    "__MACOSX/crazing/._crazing_1.png": b"resource fork",
    "crazing/.hidden.png": b"not an image",
    "crazing/Thumbs.db": b"thumbnails",
    ".DS_Store": b"",
    "readme.txt": b"about",
}


def moved(files, prefix):
    return {prefix + name: content for name, content in files.items()}


def same(first, second):
    assert first.train_names == second.train_names
    assert first.test_names == second.test_names
    np.testing.assert_array_equal(first.train_images, second.train_images)
    np.testing.assert_array_equal(first.test_images, second.test_images)
    np.testing.assert_array_equal(first.train_labels, second.train_labels)


# --- layouts ---------------------------------------------------------------------------------------------


def test_folder_and_zip_give_the_same_splits(neu_cls, folder, zipped, course_files):
    splits = neu_cls.load(folder(course_files(10)), seed=42)
    same(splits, neu_cls.load(zipped(course_files(10)), seed=42))
    assert splits.name == "neu_cls" and splits.classes == neu_cls.CLASSES
    assert splits.train_images.shape == (42, 12, 12) and splits.train_images.dtype == np.uint8
    assert splits.test_images.shape == (18, 12, 12)
    assert splits.train_labels.dtype == np.int64
    assert np.bincount(splits.train_labels).tolist() == [7] * 6
    assert np.bincount(splits.test_labels).tolist() == [3] * 6
    for name, label in zip(splits.train_names, splits.train_labels, strict=True):
        assert name.startswith(neu_cls.CLASSES[label] + "/")


@pytest.mark.parametrize("prefix", ["NEU-CLS/", "data/NEU surface/", "a/b/images/"])
@pytest.mark.parametrize("layout", ["folder", "zipped"])
def test_class_folders_may_be_nested(neu_cls, folder, zipped, course_files, prefix, layout):
    flat = neu_cls.load(folder(course_files()), seed=1)
    write = {"folder": folder, "zipped": zipped}[layout]
    nested = write(moved(course_files(), prefix))
    same(flat, neu_cls.load(nested / prefix if layout == "folder" else nested, seed=1))
    if layout == "zipped":
        same(flat, neu_cls.load(nested, seed=1))


def test_a_nested_folder_is_found_from_above(neu_cls, folder, course_files):
    root = folder(moved(course_files(), "one/two/"))
    same(neu_cls.load(root, seed=1), neu_cls.load(root / "one" / "two", seed=1))


def test_left_overs_of_other_systems_are_ignored(neu_cls, folder, zipped, course_files):
    clean = neu_cls.load(folder(course_files()), seed=1)
    same(clean, neu_cls.load(zipped(course_files() | LEFT_OVERS), seed=1))
    same(clean, neu_cls.load(folder(course_files() | LEFT_OVERS), seed=1))


@pytest.mark.parametrize(
    ("spelled", "label"),
    [
        ("Rolled-in_Scale", "rolled-in_scale"),
        ("rolled in scale", "rolled-in_scale"),
        ("PITTED SURFACE", "pitted_surface"),
    ],
)
def test_class_folders_may_be_spelled_otherwise(neu_cls, folder, zipped, course_files, spelled, label):
    respelled = {name.replace(f"{label}/", f"{spelled}/"): data for name, data in course_files().items()}
    same(neu_cls.load(folder(course_files()), seed=1), neu_cls.load(zipped(respelled), seed=1))


def test_a_flat_folder_with_the_original_names(neu_cls, folder, course_files):
    shorts = dict(zip(neu_cls.CLASSES, ("Cr", "In", "Pa", "PS", "RS", "Sc"), strict=True))
    flat = {}
    for name, content in course_files().items():
        label, file = name.split("/")
        flat[f"{shorts[label]}{file.removeprefix(label)}"] = content
    splits = neu_cls.load(folder(flat), seed=1)
    assert "rolled-in_scale/RS_1.png" in splits.train_names + splits.test_names
    assert np.bincount(splits.train_labels).tolist() == [3] * 6


@pytest.mark.parametrize("suffix", [".jpg", ".JPG", ".jpeg", ".PNG", ".bmp"])
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_formats_and_channels(neu_cls, folder, encoded, suffix, mode):
    files = {
        f"{label}/{i}{suffix}": encoded(10 * c + i, mode=mode, suffix=suffix)
        for c, label in enumerate(neu_cls.CLASSES)
        for i in range(2)
    }
    splits = neu_cls.load(folder(files), seed=0)
    assert splits.train_images.shape == (6, 12, 12)
    if "jp" not in suffix.lower():  # gray values survive the way over equal channels
        name = splits.train_names[0]
        as_gray = encoded(int(Path(name).stem), mode="L", suffix=".png")
        expected = neu_cls.load(folder(files | {name: as_gray}), seed=0).train_images[0]
        np.testing.assert_array_equal(splits.train_images[0], expected)


def test_other_sizes_are_scaled_to_the_usual_one(neu_cls, folder, course_files, encoded):
    files = course_files() | {"patches/patches_2.png": encoded(5, size=(30, 20))}
    splits = neu_cls.load(folder(files), seed=1)
    assert splits.train_images.shape[1:] == (12, 12) == splits.test_images.shape[1:]


def test_identical_pixels_stay_on_one_side(neu_cls, folder, course_files, encoded):
    for seed in range(8):
        files = course_files(6) | {
            "patches/patches_5.png": encoded(77),
            "patches/patches_2.bmp": encoded(77, suffix=".bmp"),
        }
        splits = neu_cls.load(folder(files), seed=seed)
        assert ("patches/patches_5.png" in splits.train_names) == (
            "patches/patches_2.bmp" in splits.train_names
        )


# --- the cache -------------------------------------------------------------------------------------------


@pytest.fixture
def decodings(monkeypatch):
    """The files that were decoded, as they are decoded."""
    seen = []
    original = image_folders._picture

    def counted(source, file):
        seen.append(file)
        return original(source, file)

    monkeypatch.setattr(image_folders, "_picture", counted)
    return seen


@pytest.mark.parametrize("layout", ["folder", "zipped"])
def test_the_second_load_decodes_nothing(neu_cls, folder, zipped, course_files, tmp_path, decodings, layout):
    source = {"folder": folder, "zipped": zipped}[layout](course_files())
    cache = tmp_path / "deep" / "cache"
    first = neu_cls.load(source, seed=1, cache=cache)
    assert len(decodings) == 24
    same(first, neu_cls.load(source, seed=1, cache=cache))
    other_seed = neu_cls.load(source, seed=2, cache=cache)
    assert len(decodings) == 24
    assert other_seed.train_names != first.train_names
    assert [file.suffix for file in cache.iterdir()] == [".npz"]


def test_without_a_cache_nothing_is_written(neu_cls, folder, course_files, tmp_path, decodings):
    source = folder(course_files())
    before = sorted(tmp_path.rglob("*"))
    neu_cls.load(source, seed=1)
    neu_cls.load(source, seed=1)
    assert len(decodings) == 48
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("layout", ["folder", "zipped"])
def test_a_changed_source_is_decoded_again(neu_cls, folder, zipped, course_files, encoded, tmp_path, layout):
    write = {"folder": folder, "zipped": zipped}[layout]
    cache = tmp_path / "cache"
    before = neu_cls.load(write(course_files()), seed=1, cache=cache)
    changed = {name: encoded(900 + i) for i, name in enumerate(course_files())}
    source = write(changed)
    later = time.time_ns() + 10**9
    for path in [source, *source.rglob("*.png")] if source.is_dir() else [source]:
        os.utime(path, ns=(later, later))
    after = neu_cls.load(source, seed=1, cache=cache)
    assert after.train_names == before.train_names
    assert (after.train_images != before.train_images).any()


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "noise"])
def test_a_damaged_cache_is_rebuilt(neu_cls, folder, course_files, tmp_path, decodings, damage):
    source, cache = folder(course_files()), tmp_path / "cache"
    good = neu_cls.load(source, seed=1, cache=cache)
    (file,) = cache.iterdir()
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle] ^= 0xFF
    damaged = {"cut": content[:middle], "flipped": content, "emptied": b"", "noise": b"not a zip" * 99}[
        damage
    ]
    file.write_bytes(damaged)
    same(good, neu_cls.load(source, seed=1, cache=cache))
    assert len(decodings) == 48
    same(good, neu_cls.load(source, seed=1, cache=cache))
    assert len(decodings) == 48


def test_a_cache_that_cannot_be_written_is_done_without(neu_cls, folder, course_files, tmp_path):
    blocked = tmp_path / "a file"
    blocked.write_text("in the way")
    splits = neu_cls.load(folder(course_files()), seed=1, cache=blocked)
    assert len(splits.train_names) == 18


# --- what can be wrong -----------------------------------------------------------------------------------


def refusal(neu_cls, source):
    with pytest.raises(UsageError) as caught:
        neu_cls.load(source, seed=1)
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".")
    if source is not None:
        assert str(source) in message
    return message


def test_no_source(neu_cls):
    assert "neu_cls do not come with the course" in refusal(neu_cls, None)


def test_a_missing_path(neu_cls, tmp_path):
    assert "does not exist" in refusal(neu_cls, tmp_path / "nowhere.zip")


def test_a_corrupt_zip(neu_cls, tmp_path, zipped, course_files):
    path = zipped(course_files())
    path.write_bytes(path.read_bytes()[:-200])
    assert "is damaged" in refusal(neu_cls, path)


def test_a_file_that_is_no_zip(neu_cls, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    assert "is not a zip file" in refusal(neu_cls, path)


@pytest.mark.parametrize("layout", ["folder", "zipped"])
@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp"])
def test_a_truncated_image_is_named(neu_cls, folder, zipped, course_files, encoded, layout, suffix):
    content = encoded(3, size=(60, 60), suffix=suffix)
    files = course_files() | {f"patches/patches_9{suffix}": content[: len(content) // 2]}
    message = refusal(neu_cls, {"folder": folder, "zipped": zipped}[layout](files))
    assert message.startswith(f"patches/patches_9{suffix} ") and "damaged" in message


def test_a_member_with_a_wrong_checksum_is_named(neu_cls, zipped, course_files):
    path = zipped(course_files())
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo("patches/patches_1.png")
    data = bytearray(content)
    data[member.header_offset + 30 + len(member.filename) + member.compress_size // 2] ^= 0xFF
    path.write_bytes(data)
    assert refusal(neu_cls, path).startswith("patches/patches_1.png in ")


def test_an_encrypted_member_is_named(neu_cls, zipped, course_files):
    path = zipped(course_files())
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        local = archive.getinfo("patches/patches_1.png").header_offset
    central = data.rindex(b"PK\x01\x02", 0, data.rindex(b"patches/patches_1.png"))
    data[local + 6] |= 1
    data[central + 8] |= 1
    path.write_bytes(data)
    message = refusal(neu_cls, path)
    assert message.startswith("patches/patches_1.png") and "password" in message


def test_no_images(neu_cls, folder, zipped):
    assert "holds no images" in refusal(neu_cls, folder({}))
    assert "holds no images" in refusal(neu_cls, zipped({"readme.txt": b"hello"}))


def test_missing_classes_are_listed_with_those_found(neu_cls, folder, course_files):
    wanted = ("crazing/", "scratches/")
    message = refusal(neu_cls, folder({n: c for n, c in course_files().items() if n.startswith(wanted)}))
    assert "only the class folders crazing, scratches" in message
    assert "missing: inclusion, patches, pitted_surface, rolled-in_scale" in message


def test_images_of_something_else(neu_cls, folder, encoded):
    message = refusal(neu_cls, folder({"cats/1.png": encoded(1), "dogs/1.png": encoded(2)}))
    assert "no class folders" in message and "scratches" in message


def test_a_class_of_one_image(neu_cls, folder, course_files):
    files = {
        n: c for n, c in course_files().items() if not n.startswith("inclusion/") or n.endswith("_1.png")
    }
    message = refusal(neu_cls, folder(files))
    assert "one image of class 'inclusion'" in message and "at least 2" in message


def test_two_spellings_of_one_folder_with_the_same_file(neu_cls, zipped, course_files, encoded):
    message = refusal(neu_cls, zipped(course_files() | {"Patches/patches_1.png": encoded(50)}))
    assert "patches/patches_1.png twice" in message


def test_sixteen_bits_a_pixel(neu_cls, folder, course_files):
    import io

    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.full((12, 12), 40_000, dtype=np.uint16)).save(buffer, format="PNG")
    message = refusal(neu_cls, folder(course_files() | {"patches/deep.png": buffer.getvalue()}))
    assert message.startswith("patches/deep.png") and "8 bits" in message


def test_bounds_on_count_and_size(neu_cls, folder, zipped, course_files, encoded, monkeypatch):
    big = course_files() | {"patches/big.png": encoded(1, size=(300, 300))}
    with monkeypatch.context() as patch:
        patch.setattr(image_folders, "LARGEST_IMAGE", 80_000)
        assert refusal(neu_cls, zipped(big)).startswith("patches/big.png")
    with monkeypatch.context() as patch:
        patch.setattr(image_folders, "MOST_PIXELS", 1_000)
        assert "pixels in all" in refusal(neu_cls, zipped(big))
    with monkeypatch.context() as patch:
        patch.setattr(image_folders, "LARGEST_FILE", 20_000)
        assert "patches/big.png" in refusal(neu_cls, zipped(big))
        assert "patches/big.png" in refusal(neu_cls, folder(big))
    with monkeypatch.context() as patch:
        patch.setattr(image_folders, "MOST_FILES", 20)
        assert "more than 20 files" in refusal(neu_cls, zipped(big))
        assert "more than 20 files" in refusal(neu_cls, folder(big))


def test_links_in_circles_end(neu_cls, folder, course_files):
    root = folder(course_files())
    try:
        (root / "again").symlink_to(root, target_is_directory=True)
    except OSError:
        pytest.skip("this system makes no symbolic links")
    splits = neu_cls.load(root / "crazing" / "..", seed=1)
    assert len(splits.train_names) >= 18


# --- the real images -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_real_images(neu_cls, real_zip, tmp_path, decodings):
    splits = neu_cls.load(real_zip, seed=42, cache=tmp_path)
    assert splits.train_images.shape[1:] == (200, 200)
    assert len(splits.train_names) + len(splits.test_names) == 1800 == len(decodings)
    # the second of the twins, which the shuffle puts into the test set, follows the first
    assert np.bincount(splits.train_labels).tolist() == [210, 210, 211, 210, 210, 210]
    assert {"patches/patches_101.jpg", "patches/patches_105.jpg"} <= set(splits.train_names)
    same(splits, neu_cls.load(real_zip, seed=42, cache=tmp_path))
    assert len(decodings) == 1800
