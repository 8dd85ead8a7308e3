"""Embeddings, self-attention, intermediate, output, layer, encoder, model: the parts as Hugging Face names them."""

import math
from collections import OrderedDict
from dataclasses import dataclass, fields
from typing import Optional

import torch
from configuration import ResNetConfig, ViTConfig
from torch import nn


class ModelOutput(OrderedDict):
    """An ordered dict whose values are attributes, too; what is None is left out."""

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                self[field.name] = value

    def to_tuple(self):
        return tuple(self.values())


@dataclass
class BaseModelOutput(ModelOutput):
    last_hidden_state: torch.Tensor = None
    hidden_states: Optional[tuple] = None
    attentions: Optional[tuple] = None


@dataclass
class ImageClassifierOutput(ModelOutput):
    logits: torch.Tensor = None
    attentions: Optional[tuple] = None


class PatchEmbedding(nn.Module):
    """ViTPatchEmbeddings."""

    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.num_channels = in_channels
        self.projection = nn.Conv2d(in_channels, dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, images):
        if images.shape[1] != self.num_channels:
            raise ValueError(f"Expected {self.num_channels} channels but got {images.shape[1]}.")
        return self.projection(images).flatten(2).transpose(1, 2)


def sinusoidal_positions(tokens, dim):
    """Like `create_sinusoidal_embeddings`, with the columns interleaved."""
    out = torch.empty(tokens, dim, dtype=torch.double)
    position_enc = torch.tensor(
        [[pos / 10000 ** (2 * (j // 2) / dim) for j in range(dim)] for pos in range(tokens)], dtype=torch.double
    )
    out[:, 0::2] = torch.sin(position_enc[:, 0::2])
    out[:, 1::2] = torch.cos(position_enc[:, 1::2])
    return out.float().detach()


class ViTEmbeddings(nn.Module):
    """The CLS token, position and patch embeddings."""

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.config = config
        if config.pooling == "cls":
            self.cls_token = nn.Parameter(torch.randn(1, 1, config.hidden_size))
        else:
            self.register_parameter("cls_token", None)
        self.patch_embeddings = PatchEmbedding(
            config.image_size, config.patch_size, config.num_channels, config.hidden_size
        )
        self.register_buffer("position_ids", torch.arange(config.sequence_length).unsqueeze(0), persistent=False)
        self.position_embeddings = nn.Embedding(config.sequence_length, config.hidden_size)
        if config.position_embedding_type == "sinusoidal":
            self.position_embeddings.weight.requires_grad_(False)
        self.dropout = nn.Dropout(config.dropout_prob)

    def forward(self, pixel_values):
        embeddings = self.patch_embeddings(pixel_values)
        if self.cls_token is not None:
            cls_tokens = self.cls_token.expand(embeddings.size(0), -1, -1)
            embeddings = torch.cat((cls_tokens, embeddings), dim=1)
        embeddings = embeddings + self.position_embeddings(self.position_ids)
        return self.dropout(embeddings)


class ViTSelfAttention(nn.Module):
    def __init__(self, hidden_size, num_attention_heads, dropout_prob):
        super().__init__()
        self.num_attention_heads = num_attention_heads
        self.attention_head_size = hidden_size // num_attention_heads
        self.all_head_size = self.num_attention_heads * self.attention_head_size
        self.query = nn.Linear(hidden_size, self.all_head_size)
        self.key = nn.Linear(hidden_size, self.all_head_size)
        self.value = nn.Linear(hidden_size, self.all_head_size)
        self.dropout = nn.Dropout(dropout_prob)

    def transpose_for_scores(self, x):
        new_x_shape = x.size()[:-1] + (self.num_attention_heads, self.attention_head_size)
        return x.view(new_x_shape).permute(0, 2, 1, 3)

    def forward(self, hidden_states, output_attentions=False):
        query_layer = self.transpose_for_scores(self.query(hidden_states))
        key_layer = self.transpose_for_scores(self.key(hidden_states))
        value_layer = self.transpose_for_scores(self.value(hidden_states))
        attention_scores = torch.matmul(query_layer, key_layer.transpose(-1, -2))
        attention_scores = attention_scores / math.sqrt(self.attention_head_size)
        attention_probs = nn.functional.softmax(attention_scores, dim=-1)
        context_layer = torch.matmul(self.dropout(attention_probs), value_layer)
        context_layer = context_layer.permute(0, 2, 1, 3).contiguous()
        context_layer = context_layer.view(context_layer.size()[:-2] + (self.all_head_size,))
        return (context_layer, attention_probs) if output_attentions else (context_layer,)


class ViTSelfOutput(nn.Module):
    """The output projection; the residual connection is in the layer."""

    def __init__(self, hidden_size):
        super().__init__()
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states):
        return self.dense(hidden_states)


class MultiHeadSelfAttention(nn.Module):
    """ViTAttention."""

    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.attention = ViTSelfAttention(dim, heads, dropout)
        self.output = ViTSelfOutput(dim)

    def forward(self, x, return_weights=False):
        self_outputs = self.attention(x, output_attentions=return_weights)
        outputs = (self.output(self_outputs[0]),) + self_outputs[1:]
        return outputs if return_weights else outputs[0]


class ViTIntermediate(nn.Module):
    def __init__(self, hidden_size, intermediate_size):
        super().__init__()
        self.dense = nn.Linear(hidden_size, intermediate_size)
        self.intermediate_act_fn = nn.functional.gelu

    def forward(self, hidden_states):
        return self.intermediate_act_fn(self.dense(hidden_states))


class ViTOutput(nn.Module):
    """Adds the residual itself."""

    def __init__(self, hidden_size, intermediate_size, dropout_prob):
        super().__init__()
        self.dense = nn.Linear(intermediate_size, hidden_size)
        self.dropout = nn.Dropout(dropout_prob)

    def forward(self, hidden_states, input_tensor):
        return self.dropout(self.dense(hidden_states)) + input_tensor


class EncoderBlock(nn.Module):
    """ViTLayer."""

    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        intermediate_size = int(dim * mlp_ratio)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        self.intermediate = ViTIntermediate(dim, intermediate_size)
        self.output = ViTOutput(dim, intermediate_size, dropout)
        self.layernorm_before = nn.LayerNorm(dim, eps=1e-12)
        self.layernorm_after = nn.LayerNorm(dim, eps=1e-12)

    def layer(self, hidden_states, output_attentions=False):
        found = self.attention(self.layernorm_before(hidden_states), return_weights=output_attentions)
        attention_output, attentions = found if output_attentions else (found, None)
        hidden_states = attention_output + hidden_states  # first residual connection
        layer_output = self.layernorm_after(hidden_states)
        layer_output = self.intermediate(layer_output)
        layer_output = self.output(layer_output, hidden_states)  # second residual connection
        return layer_output, attentions

    def forward(self, x):
        return self.layer(x)[0]


class ViTEncoder(nn.Module):
    def __init__(self, config: ViTConfig):
        super().__init__()
        self.layer = nn.ModuleList(
            [
                EncoderBlock(config.hidden_size, config.num_attention_heads, config.mlp_ratio, config.dropout_prob)
                for _ in range(config.num_hidden_layers)
            ]
        )

    def forward(self, hidden_states, output_attentions=False):
        all_self_attentions = () if output_attentions else None
        for layer_module in self.layer:
            hidden_states, attentions = layer_module.layer(hidden_states, output_attentions)
            if output_attentions:
                all_self_attentions += (attentions,)
        return BaseModelOutput(last_hidden_state=hidden_states, attentions=all_self_attentions)


class ViTPreTrainedModel(nn.Module):
    def _init_weights(self, module):
        std = self.config.initializer_range
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.trunc_normal_(module.weight, mean=0.0, std=std)
            if module.bias is not None:
                module.bias.data.zero_()
        elif isinstance(module, nn.LayerNorm):
            module.bias.data.zero_()
            module.weight.data.fill_(1.0)
        elif isinstance(module, ViTEmbeddings):
            table = module.position_embeddings.weight
            if self.config.position_embedding_type == "sinusoidal":
                table.data.copy_(sinusoidal_positions(*table.shape))
            else:
                nn.init.trunc_normal_(table, mean=0.0, std=std)
            if module.cls_token is not None:
                nn.init.trunc_normal_(module.cls_token, mean=0.0, std=std)

    def post_init(self):
        self.apply(self._init_weights)


class VisionTransformer(ViTPreTrainedModel):
    """ViTForImageClassification."""

    def __init__(
        self,
        image_size=32,
        patch_size=4,
        in_channels=3,
        num_classes=10,
        dim=192,
        depth=9,
        heads=8,
        mlp_ratio=4.0,
        dropout=0.1,
        positions="learned",
        pool="cls",
    ):
        super().__init__()
        self.config = ViTConfig(
            image_size=image_size,
            patch_size=patch_size,
            num_channels=in_channels,
            num_labels=num_classes,
            hidden_size=dim,
            num_hidden_layers=depth,
            num_attention_heads=heads,
            mlp_ratio=mlp_ratio,
            dropout_prob=dropout,
            position_embedding_type=positions,
            pooling=pool,
        )
        self.embeddings = ViTEmbeddings(self.config)
        self.encoder = ViTEncoder(self.config)
        self.layernorm = nn.LayerNorm(dim, eps=self.config.layer_norm_eps)
        self.classifier = nn.Linear(dim, num_classes)
        self.post_init()

    def classify(self, pixel_values, output_attentions=False):
        outputs = self.encoder(self.embeddings(pixel_values), output_attentions=output_attentions)
        sequence_output = self.layernorm(outputs.last_hidden_state)
        if self.config.pooling == "cls":
            pooled_output = sequence_output[:, 0, :]
        else:
            pooled_output = sequence_output.mean(dim=1)
        return ImageClassifierOutput(logits=self.classifier(pooled_output), attentions=outputs.attentions)

    def forward(self, images):
        return self.classify(images).logits

    def attention(self, images):
        return self.classify(images, output_attentions=True).attentions[-1]


class ResNetConvLayer(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size=3, stride=1, activation=nn.ReLU):
        super().__init__()
        self.convolution = nn.Conv2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=kernel_size // 2, bias=False
        )
        self.normalization = nn.BatchNorm2d(out_channels)
        self.activation = activation() if activation is not None else nn.Identity()

    def forward(self, hidden_state):
        return self.activation(self.normalization(self.convolution(hidden_state)))


class ResNetShortCut(ResNetConvLayer):
    def __init__(self, in_channels, out_channels, stride):
        super().__init__(in_channels, out_channels, kernel_size=1, stride=stride, activation=None)


class BasicBlock(nn.Module):
    """ResNetBasicLayer."""

    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        should_apply_shortcut = in_channels != channels or stride != 1
        self.shortcut = ResNetShortCut(in_channels, channels, stride) if should_apply_shortcut else nn.Identity()
        self.layer = nn.Sequential(
            ResNetConvLayer(in_channels, channels, stride=stride),
            ResNetConvLayer(channels, channels, activation=None),
        )
        self.activation = nn.ReLU()

    def forward(self, x):
        residual = x
        hidden_state = self.layer(x)
        residual = self.shortcut(residual)
        hidden_state = hidden_state + residual
        return self.activation(hidden_state)


class ResNetStage(nn.Module):
    def __init__(self, in_channels, out_channels, stride, depth):
        super().__init__()
        self.layers = nn.Sequential(
            BasicBlock(in_channels, out_channels, stride=stride),
            *[BasicBlock(out_channels, out_channels) for _ in range(depth - 1)],
        )

    def forward(self, hidden_state):
        return self.layers(hidden_state)


class ResNet18(nn.Module):
    """ResNetForImageClassification."""

    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.config = ResNetConfig(embedding_size=width, num_labels=num_classes)
        self.embedder = ResNetConvLayer(self.config.num_channels, width)
        sizes = [width, *self.config.hidden_sizes]
        self.stages = nn.ModuleList(
            ResNetStage(before, after, stride=1 if number == 0 else 2, depth=depth)
            for number, (before, after, depth) in enumerate(zip(sizes[:-1], sizes[1:], self.config.depths))
        )
        self.pooler = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(sizes[-1], num_classes))

    def forward(self, images):
        hidden_state = self.embedder(images)
        for stage_module in self.stages:
            hidden_state = stage_module(hidden_state)
        return self.classifier(self.pooler(hidden_state))
