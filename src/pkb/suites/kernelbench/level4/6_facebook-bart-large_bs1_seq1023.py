"""The decoder of BART (large): the logits of one sequence of 1023 tokens.

The model is built from its configuration with random weights; nothing is downloaded.
Without an encoder its layers leave their cross-attention out.
"""

import torch
import torch.nn as nn
from transformers import AutoModelForCausalLM, BartConfig

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, model_name, config):
        super().__init__()
        self.model_name = model_name
        self.config = config
        self.model = AutoModelForCausalLM.from_config(config).eval()

    def forward(self, x):
        return self.model(x).logits


model_name = "facebook/bart-large"
batch_size = 1
sequence_length = 1023
vocab_size = 50265
max_position_embeddings = 1024
d_model = 1024
encoder_layers = 12
decoder_layers = 12
encoder_attention_heads = 16
decoder_attention_heads = 16
encoder_ffn_dim = 4096
decoder_ffn_dim = 4096
activation_function = "gelu"
scale_embedding = False


def get_inputs():
    return [torch.randint(0, vocab_size, (batch_size, sequence_length))]


def get_init_inputs():
    config = BartConfig(
        vocab_size=vocab_size,
        max_position_embeddings=max_position_embeddings,
        d_model=d_model,
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
        encoder_attention_heads=encoder_attention_heads,
        decoder_attention_heads=decoder_attention_heads,
        encoder_ffn_dim=encoder_ffn_dim,
        decoder_ffn_dim=decoder_ffn_dim,
        activation_function=activation_function,
        scale_embedding=scale_embedding,
    )
    return [model_name, config]


PROBLEM = ModelProblem(
    tiny={
        "batch_size": 1,
        "sequence_length": 31,
        "vocab_size": 300,
        "max_position_embeddings": 64,
        "d_model": 64,
        "decoder_layers": 2,
        "decoder_attention_heads": 4,
        "decoder_ffn_dim": 256,
    },
    hidden={
        "batch_size": 2,
        "sequence_length": 23,
        "vocab_size": 257,
        "max_position_embeddings": 48,
        "d_model": 60,
        "decoder_layers": 3,
        "decoder_attention_heads": 3,
        "decoder_ffn_dim": 172,
    },
    # Tokens stay apart through all layers only with small biases and branches; the embedding is also the head.
    state={
        "*.embed_tokens.weight": Normal(0.0, 1.0),
        "*.lm_head.weight": Normal(0.0, 1.0),
        "*.self_attn.out_proj.weight": Normal(0.0, 0.01),
        "*.fc2.weight": Normal(0.0, 0.01),
        "*.q_proj.bias": Normal(0.0, 0.5),
        "*.bias": Normal(0.0, 0.1),
    },
)
CROSS_ATTENTION = ["encoder_attn_layer_norm", *(f"encoder_attn.{part}_proj" for part in ("q", "k", "v", "out"))]
EQUIVALENT = {
    f"ignore model.model.decoder.layers.{i}.self_attn.k_proj.bias": "the softmax cancels a common shift"
    for i in range(decoder_layers)
} | {
    f"ignore model.model.decoder.layers.{i}.{part}.{name}": "there is no encoder to attend to"
    for i in range(decoder_layers)
    for part in CROSS_ATTENTION
    for name in ("weight", "bias")
}
