"""The student's ViT around a fake of its encoder, whatever the encoder is called and made of."""

from grader.kit import AffineFake, Mismatch, Undecided, same, with_effect
from grader.kit.transformers import layer_norms, without_biases

from .inline import block, fits, inline_blocks, name_inline_mistake


def vit_around(student, fake, options):
    """The student's ViT around a fake of its encoder, whose calls are the model's only recorded calls.

    A ViT that does not use the class Transformer has its own blocks silenced.

    Raises:
        Undecided: Its encoder cannot be found.
    """
    model = student.build("ViT", **options, replace={"Transformer": fake})
    if model.constructions("Transformer"):
        return AroundEncoder(model)
    return silenced(student, fake, options, Encoder(student, options))


class Encoder:
    """The modules of a ViT's own encoder: those that there are more of with a greater depth.

    Attributes:
        paths: Of the modules that are called, in order of construction.
        first: Those of the first block.
        leaves: They are bare layers, which change the shape and can only be silenced by their weights.
    """

    def __init__(self, student, options):
        depths = (1, options["depth"], options["depth"] + 1)
        one, two, more = (student.build("ViT", **{**options, "depth": depth}) for depth in depths)
        known = {module.path for module in two.modules}
        new = [m.path for m in more.modules if m.path not in known and m.path.rpartition(".")[0] in known]
        lists = {path.rpartition(".")[0] for path in new}
        self.kinds = {module.path: module.type for module in two.modules}
        members = [path for path in self.kinds if path.rpartition(".")[0] in lists and path]
        self.paths = [inner for path in members for inner in self._called(path)]
        if not self.paths:
            require_an_effect_of_depth(student, one, two, options)
            raise Undecided(
                "ViT does not use the class Transformer, and its own encoder cannot be found in it."
            )
        before = {module.path for module in one.modules}
        self.first = [path for path in self.paths if path in before]
        self.leaves = any(self.kinds[path] in ("Linear", "Conv1d") for path in self.paths)
        self.norms = [path for path in self.paths if "Norm" in self.kinds[path]]

    def _called(self, path):
        """The path, or what is in it when it is only a container."""
        if self.kinds[path] not in ("ModuleList", "ModuleDict"):
            return [path]
        children = [other for other in self.kinds if other.rpartition(".")[0] == path]
        return [inner for child in children for inner in self._called(child)]


def silenced(student, fake, options, encoder, keep=()):
    """A ViT whose own blocks, but for those in `keep`, hand their input on as it is.

    Blocks are replaced by fakes. Bare layers keep their places: with all weights zero, the residual
    connections are all that is left; only their normalizations are replaced, so that the calls are recorded.
    """
    paths = [path for path in encoder.paths if path not in keep]
    if not encoder.leaves:
        behaviors = {path: fake if path == encoder.paths[0] else AffineFake() for path in paths}
        return AroundEncoder(student.build("ViT", **options, substitute=behaviors))
    norms = {path: AffineFake() for path in encoder.norms if path in paths}
    if not norms:
        raise Undecided("ViT's encoder is written inline, without normalizations that could be inspected.")
    return AroundEncoder(student.build("ViT", **options, substitute=norms), zero=tuple(paths))


class AroundEncoder:
    """A ViT of which only the calls of its encoder count, and which must call it.

    Attributes:
        rolls: The encoder is a fake that was asked to move tokens.
        initial: The weights as they were before they were moved.
    """

    def __init__(self, model, zero=()):
        self.model = model
        self.initial = {}
        self.rolls = not zero
        self._zero = zero

    def __getattr__(self, name):
        return getattr(self.model, name)

    def randomize(self, spread=0.5):
        """Move every parameter, but for those that silence a block."""
        self.initial = self.model.weights()
        moved = self.model.randomize(spread)
        still = {n: v * 0 for n, v in moved.items() if any(n.startswith(f"{path}.") for path in self._zero)}
        self.model.set_weights(still)
        return moved | still

    @property
    def calls(self):
        """The calls of the encoder during the model's last call, of which there is at least one."""
        self.require_calls()
        return self.model.calls

    def require_calls(self):
        """Fail a ViT that did not call its encoder.

        Raises:
            Mismatch: It did not.
        """
        if not self.model.calls:
            raise Mismatch(
                "ViT constructs its Transformer but never calls it.",
                hint="x = self.transformer(x) belongs between the positions and the head.",
                diagnosis="transformer_not_used",
            )

    def __call__(self, images, **how):
        """The scores; the encoder's first call is `calls[0]`."""
        scores = self.model(images, **how)
        self.require_calls()
        return scores


def require_an_effect_of_depth(student, one, two, options):
    """Fail a ViT without an encoder: with equal weights, one of another depth computes the same.

    Raises:
        Mismatch: It does.
    """
    shapes = [{parameter.name: parameter.shape for parameter in model.parameters} for model in (one, two)]
    if shapes[0] != shapes[1]:
        return
    two.set_weights(one.randomize())
    x = student.tensor(2, options["channels"], options["image_size"], options["image_size"])
    if same(one(x), two(x)):
        raise Mismatch(
            f"ViT has no encoder: with depth={options['depth']} it computes the same as with depth=1.",
            hint="Construct a Transformer with all of its sizes, and call it on the tokens.",
            diagnosis="transformer_not_used",
        )


class Recorded:
    """A ViT as what reaches its second block for given images."""

    def __init__(self, model, images):
        self.model, self.images = model, images

    def __call__(self, _):
        """The input of the second block."""
        self.model(self.images)
        return self.model.calls[0][1]

    def set_weights(self, values):
        """Overwrite parameters by name."""
        self.model.set_weights(values)


def prove_inline_vit(student, reference, options, images):
    """Prove the first block of a ViT's own encoder by its weights as a whole.

    Raises:
        Mismatch: It is wrong.
        Undecided: Its weights cannot be read.
    """
    encoder = Encoder(student, options)
    still = silenced(student, AffineFake(), options, encoder)
    moving = silenced(student, AffineFake(), options, encoder, keep=encoder.first)
    initial = moving.weights()
    plain = without_biases(moving.randomize(), initial)
    moving.set_weights(plain)
    shared = {parameter.name for parameter in still.parameters}
    own = {n: v for n, v in plain.items() if any(n.startswith(f"{path}.") for path in encoder.first)}
    still.set_weights({n: v * float(n not in own) for n, v in plain.items() if n in shared})
    still(images)
    moving(images)
    x, y = still.calls[0][1], moving.calls[0][1]
    norm = lambda z: next(layer_norms(z, {}))  # noqa: E731
    sizes = {name: options[name] for name in ("heads", "dim_head", "mlp_dim")}
    candidates = list(inline_blocks(moving, own, {}, 0, options["dim"], sizes))
    if not candidates:
        own = with_effect(Recorded(moving, images), None, own)
        candidates = list(inline_blocks(moving, own, {}, 0, options["dim"], sizes))
    if not candidates:
        raise Undecided("ViT's encoder is written inline, and its weights cannot be read.")
    # what is recorded is the input of the second block
    if any(fits(y, block(x, norm, attend, feed)) for attend, feed in candidates):
        return
    name_inline_mistake(reference, x, y, candidates, sizes, {})
    raise Mismatch(
        "A block of ViT's encoder does not compute x = x + Attention(norm(x)), x = x + FeedForward(norm(x)).",
        hint="Two residual connections per block, each around a normalization and the part after it.",
    )
