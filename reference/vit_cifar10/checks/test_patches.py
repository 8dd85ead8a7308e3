"""PatchEmbedding by what each pixel does to each token, and the fixed positions by their numbers."""

import pytest
import torch

from grader.kit import Cause, Mismatch, same


def patched(student, oracle):
    """The component as a function of images, and its map: see `operator`."""
    component = student.build("PatchEmbedding", oracle.SIDE, oracle.PATCH, oracle.CHANNELS, oracle.WIDTH)
    component.randomize()
    tokens = (oracle.SIDE // oracle.PATCH) ** 2

    def embed(images):
        return component(images, shape=(len(images), tokens, oracle.WIDTH)).float()

    bias, slopes = oracle.operator(embed)
    if not slopes.any():
        raise Mismatch("The tokens are the same for any image.", cause=Cause.CONSTANT)
    return embed, bias, slopes


def larger(student, oracle):
    """(a component as a function of images, images, side of a patch), in the training's and drawn sizes."""
    own, patch = oracle.own_sizes(student), oracle.drawn(student, 3, 4, 5)
    side, dim = patch * oracle.drawn(student, 4, 5, 6, 7), oracle.drawn(student, 9, 20, 33)
    yield sized(student, own["image_size"], own["patch_size"], own["dim"])
    yield sized(student, side, patch, dim)


def sized(student, side, patch, dim, channels=3):
    """The same in these sizes, with an image for each patch."""
    component = student.build("PatchEmbedding", side, patch, channels, dim)
    component.randomize()
    tokens = (side // patch) ** 2

    def embed(images):
        return component(images, shape=(len(images), tokens, dim)).float()

    return embed, student.tensor(tokens, channels, side, side), patch


def require_own_patches(embed, images, patch):
    """Require that a patch changes its own token, and no other."""
    side = images.shape[-1]
    count = side // patch
    base = images[:1].expand(count**2, -1, -1, -1)
    mask = torch.eye(count**2).view(-1, 1, count, count)
    mask = mask.repeat_interleave(patch, dim=2).repeat_interleave(patch, dim=3)
    before = embed(images[:1])
    moved = (embed(base + mask * images[1:2]) - before).abs().amax(dim=-1)
    seen = moved > 1e-5 * moved.max()
    if torch.equal(seen, torch.eye(count**2, dtype=torch.bool)):
        return
    number = int((seen != torch.eye(count**2, dtype=torch.bool)).any(dim=1).nonzero()[0])
    said = seen[number].nonzero().flatten().tolist()
    raise Mismatch(
        f"For images of {side} x {side} and patches of {patch}, changing patch {number} changes "
        f"{len(said)} tokens ({', '.join(map(str, said[:4]))}{', ...' if len(said) > 4 else ''}); it should "
        f"change token {number} alone.",
        hint="Every size goes through the same steps: cut into patches, and one linear map for all of them.",
    )


@pytest.mark.explains("patches_have_their_shape")
@pytest.mark.component("PatchEmbedding")
@pytest.mark.weight(1)
def test_patches_give_tokens(student, reference):
    """PatchEmbedding gives a token for each patch, for other sizes too."""
    for size, patch, channels, dim in ((12, 4, 2, 7), (10, 2, 3, 5), (6, 6, 1, 4)):
        component = student.build("PatchEmbedding", size, patch, channels, dim)
        found = component.call("", student.tensor(3, channels, size, size)).returned.tensor()
        shape = (3, (size // patch) ** 2, dim)
        if tuple(found.shape) == (3, dim, shape[1]) and dim != shape[1]:
            raise reference.named("patches_dim_first")
        if tuple(found.shape) != shape:
            raise Mismatch(
                f"For images of {size} x {size} and patches of {patch}, the tokens have the shape "
                f"{tuple(found.shape)}; it should be {shape}: (batch, patches, dim)."
            )


@pytest.mark.shows("patches_stand_row_by_row", "patches_have_all_channels")
@pytest.mark.explains("patches_are_mapped_by_one_linear_map")
@pytest.mark.component("PatchEmbedding")
@pytest.mark.weight(3)
@pytest.mark.because("patches_give_tokens")
def test_tokens_see_their_own_patches(student, reference):
    """Each token sees the pixels of its own patch, in all channels and no others, row by row."""
    oracle = reference.oracle
    _, _, slopes = patched(student, oracle)
    found = oracle.seen(slopes)
    if torch.equal(found, oracle.own_patches()):
        for embed, images, patch in larger(student, oracle):
            require_own_patches(embed, images, patch)
        return

    def result(made):
        module = made(oracle.SIDE, oracle.PATCH, oracle.CHANNELS, oracle.WIDTH).eval()
        with torch.no_grad():
            return oracle.seen(oracle.operator(module)[1])

    oracle.name(reference, "PatchEmbedding", found, result, torch.equal)
    missing = int((oracle.own_patches() & ~found).sum())
    said = f"{missing} pixels reach no token" if missing else "tokens see pixels of other patches"
    raise Mismatch(f"The tokens are not the patches, row by row: {said}.")


@pytest.mark.shows("patches_are_mapped_linearly")
@pytest.mark.component("PatchEmbedding")
@pytest.mark.weight(2)
@pytest.mark.because("patches_give_tokens")
def test_patches_are_mapped_by_one_linear_map(student, reference):
    """All patches go through the same linear map, and nothing else happens to them."""
    oracle = reference.oracle
    embed, bias, slopes = patched(student, oracle)
    x = student.tensor(2, oracle.CHANNELS, oracle.SIDE, oracle.SIDE)
    linear = torch.einsum("bp,ptd->btd", x.flatten(1), slopes) + bias
    if not same(embed(x), linear, tolerance=1e-3):
        if same(embed(2000 * x), embed(1000 * x), tolerance=1e-2):  # a norm takes the size away
            raise reference.named("patches_normalized")
        if bool((embed(x) >= -0.18).all()):
            raise reference.named("patches_with_activation")
        raise Mismatch(
            "PatchEmbedding is not linear: twice the image does not give twice the tokens (less the bias).",
            hint="No activation and no normalization here.",
        )
    if not same(bias, bias[:1].expand_as(bias)):
        raise Mismatch(
            "A black image gives different tokens in different places.",
            hint="Positions are added later, by the VisionTransformer.",
        )
    side, patch = oracle.SIDE // oracle.PATCH, oracle.PATCH
    grid = slopes.view(oracle.CHANNELS, side, patch, side, patch, side * side, oracle.WIDTH)
    # whether they stand in their order is another check's affair
    strength = grid.abs().sum(dim=(0, 2, 4, 6)).view(side * side, side * side)
    seen = strength.argmax(dim=0).tolist()
    maps = [grid[:, n // side, :, n % side, :, token] for token, n in enumerate(seen)]
    if not all(same(each, maps[0]) for each in maps):
        raise Mismatch(
            "Patches in different places go through different maps.", hint="One map for all of them."
        )
    if torch.equal(oracle.seen(slopes), oracle.own_patches()):
        for embed, images, patch in larger(student, oracle):
            require_one_map(oracle, embed, images, patch)


def require_one_map(oracle, embed, images, patch):
    """Require that all patches of larger images go through one linear map."""
    images = images[:3]
    if same(embed(images), oracle.linear_tokens(embed, images, patch), tolerance=1e-3):
        return
    side = images.shape[-1]
    raise Mismatch(
        f"For images of {side} x {side} and patches of {patch}, the tokens are not one linear map of the "
        "patches; for smaller images they are.",
        hint="Every size goes through the same steps: cut into patches, and one linear map for all of them.",
    )


@pytest.mark.shows("patches_learn_their_map")
@pytest.mark.component("PatchEmbedding")
@pytest.mark.weight(1)
@pytest.mark.because("patches_give_tokens")
def test_patches_learn(student, reference):
    """The linear map gets gradients."""
    component = student.build("PatchEmbedding", 12, 4, 2, 7)
    found = component.gradients(student.tensor(3, 2, 12, 12), student.tensor(3, 9, 7))
    if found.missing:
        raise reference.named("patches_gradient_cut")


@pytest.mark.explains(
    "positions_begin_with_zero_and_one",
    "positions_pair_a_sine_with_its_cosine",
    "positions_turn_slower_pair_by_pair",
)
@pytest.mark.component("sinusoidal_positions")
@pytest.mark.weight(3)
def test_positions_are_sines_and_cosines(student, reference):
    """Column 2i holds sin(pos / 10000^(2i/dim)), column 2i + 1 the cosine of the same."""
    for tokens, dim in ((65, 12), (7, 10)):
        found = torch.from_numpy(
            student.call("sinusoidal_positions", tokens, dim).returned.array(tokens, dim)
        ).float()
        expected = reference.sinusoidal_positions(tokens, dim)
        if same(found, expected, tolerance=1e-3):
            continue
        if same(found, torch.cat([expected[:, 0::2], expected[:, 1::2]], dim=1), tolerance=1e-3):
            student.policy(
                "concatenated_positions",
                "The sines stand in the first half of the columns and the cosines in the second; the handout "
                "has them alternate.",
            )
            continue
        reference.oracle.name(
            reference,
            "sinusoidal_positions",
            found,
            lambda made, sizes=(tokens, dim): made(*sizes),
            lambda a, b: same(a, b, tolerance=1e-3),
        )
        wrong = (found - expected).abs() > 1e-3
        row, column = wrong.nonzero()[0].tolist()
        raise Mismatch(
            f"sinusoidal_positions({tokens}, {dim}) has {float(found[row, column]):.4f} at position {row}, "
            f"column {column}; it should be {float(expected[row, column]):.4f}."
        )
