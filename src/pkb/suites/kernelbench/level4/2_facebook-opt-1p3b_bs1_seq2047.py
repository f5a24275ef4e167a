"""OPT 1.3B: the logits of one sequence of 2047 tokens.

The model is built from its configuration with random weights; nothing is downloaded.
"""

import torch
import torch.nn as nn
from transformers import AutoModelForCausalLM, OPTConfig

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, model_name, config):
        super().__init__()
        self.model_name = model_name
        self.config = config
        self.model = AutoModelForCausalLM.from_config(config).eval()

    def forward(self, x):
        return self.model(x).logits


model_name = "facebook/opt-1.3b"
batch_size = 1
sequence_length = 2047
vocab_size = 50272
hidden_size = 2048
num_hidden_layers = 24
ffn_dim = 8192
num_attention_heads = 32
max_position_embeddings = 2048
activation_function = "relu"
do_layer_norm_before = True
dropout = 0.1
attention_dropout = 0.0
word_embed_proj_dim = hidden_size


def get_inputs():
    return [torch.randint(0, vocab_size, (batch_size, sequence_length))]


def get_init_inputs():
    config = OPTConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        num_hidden_layers=num_hidden_layers,
        ffn_dim=ffn_dim,
        num_attention_heads=num_attention_heads,
        max_position_embeddings=max_position_embeddings,
        activation_function=activation_function,
        word_embed_proj_dim=word_embed_proj_dim,
        do_layer_norm_before=do_layer_norm_before,
        dropout=dropout,
        attention_dropout=attention_dropout,
    )
    return [model_name, config]


PROBLEM = ModelProblem(
    tiny={
        "batch_size": 1,
        "sequence_length": 31,
        "vocab_size": 300,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "ffn_dim": 256,
        "num_attention_heads": 4,
        "max_position_embeddings": 64,
    },
    hidden={
        "batch_size": 2,
        "sequence_length": 23,
        "vocab_size": 257,
        "hidden_size": 60,
        "num_hidden_layers": 3,
        "ffn_dim": 172,
        "num_attention_heads": 3,
        "max_position_embeddings": 48,
    },
    # Biases small enough for tokens to stay apart through all layers; the embedding is also the head.
    state={
        "*.embed_tokens.weight": Normal(0.0, 1.0),
        "*.lm_head.weight": Normal(0.0, 1.0),
        "*.q_proj.bias": Normal(0.0, 0.5),
        "*.bias": Normal(0.0, 0.1),
    },
)
EQUIVALENT = {
    f"ignore model.model.decoder.layers.{i}.self_attn.k_proj.bias": "the softmax cancels a common shift"
    for i in range(num_hidden_layers)
}
