"""Sizes at which a ViT is judged: odd ones, or others that it can do, so that a fixed size costs once."""

from dataclasses import dataclass, replace

from grader.kit import AffineFake, Mismatch, Undecided

from .around import vit_around


@dataclass(frozen=True)
class Sizes:
    """An image and its patches: nothing is as in the handout's default."""

    side: int = 15
    patch: int = 5
    channels: int = 2
    dim: int = 22
    classes: int = 7

    @property
    def patches(self):
        """How many patches an image has."""
        return (self.side // self.patch) ** 2

    @property
    def options(self):
        """The arguments of ViT."""
        return {
            "image_size": self.side,
            "patch_size": self.patch,
            "num_classes": self.classes,
            "dim": self.dim,
            "depth": 2,
            "heads": 5,
            "mlp_dim": 31,
            "channels": self.channels,
            "dim_head": 13,
        }


ODD = Sizes()
LARGE = replace(ODD, side=45)  # more patches than 28 x 28 pixels have, whatever their size
OF_THE_HANDOUT = replace(ODD, side=28, patch=4)


def doable(student):
    """The odd sizes where the student's ViT can do them; else others that it can, if there are any."""
    tried = (ODD, replace(ODD, channels=1), OF_THE_HANDOUT, replace(OF_THE_HANDOUT, channels=1))
    if not tokens_follow_the_size(student):
        tried = tried[2:]

    def first():
        sizes = next((each for each in tried if _scores(student, each) is not None), ODD)
        return replace(sizes, classes=_classes_in_the_code(student, sizes) or sizes.classes)

    return student.shared("sizes of ViT", first)


def size_in_the_code(student):
    """The known mistake of a ViT that does only other sizes than the odd ones; None: it is not known."""
    sizes = doable(student)
    found = _scores(student, ODD)
    if found is not None:
        if sizes.classes != ODD.classes:
            return "num_classes_ignored"
        wider = _scores(student, replace(ODD, dim=ODD.dim + 2))
        widths = [scores.shape[1:] for scores in (found, wider) if scores is not None]
        return "head_missing" if widths == [(ODD.dim,), (ODD.dim + 2,)] else None
    if _scores(student, replace(ODD, dim=ODD.channels * ODD.patch**2)) is not None:
        return "patches_not_projected"
    if replace(sizes, classes=ODD.classes) == ODD:
        return None
    if (sizes.side, sizes.patch) == (ODD.side, ODD.patch):
        return "channels_fixed"
    larger = _scores(student, replace(sizes, side=24))
    return "image_size_fixed" if larger is None else "patch_size_fixed"


def tokens_follow_the_size(student):
    """Whether a larger image has more tokens; also where it is not known."""

    def follow():
        counts = [_count_of_tokens(student, sizes) for sizes in (ODD, LARGE)]
        return None in counts or counts[0] != counts[1]

    return student.shared("tokens of larger images", follow)


def _count_of_tokens(student, sizes):
    """How many tokens the encoder receives; None: it receives none, or the sizes cannot be done."""
    try:
        model, _ = _called(student, sizes)
    except (Mismatch, Undecided):
        return None
    received = next((tokens for _, tokens in model.calls), None)
    return received.shape[1] if received is not None and received.ndim == 3 else None


def _classes_in_the_code(student, sizes):
    """For how many classes a ViT gives scores, whatever num_classes is; None: it heeds the argument."""
    found = _scores(student, sizes)
    if found is None or found.ndim != 2 or found.shape[1] == sizes.classes:
        return None
    others = _scores(student, replace(sizes, classes=sizes.classes + 4, dim=sizes.dim + 2))
    return found.shape[1] if others is not None and others.shape == found.shape else None


def _scores(student, sizes):
    """The tensor that a ViT of these sizes gives for two images; None where it fails."""

    def called():
        try:
            return _called(student, sizes)[1]
        except Mismatch:
            return None

    return student.shared(f"scores of ViT of {sizes}", called)


def _called(student, sizes):
    """The student's ViT of these sizes, which was given images once, and its scores."""
    model = vit_around(student, AffineFake(), sizes.options)
    return model, model(student.tensor(2, sizes.channels, sizes.side, sizes.side))
