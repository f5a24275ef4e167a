"""ELECTRA (small): the logits of one sequence of 511 tokens; attention goes both ways.

The model is built from its configuration with random weights; nothing is downloaded.
"""

import torch
import torch.nn as nn
from transformers import AutoModelForCausalLM, ElectraConfig

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, model_name, config):
        super().__init__()
        self.model_name = model_name
        self.config = config
        self.model = AutoModelForCausalLM.from_config(config).eval()

    def forward(self, x):
        return self.model(x).logits


model_name = "google/electra-small-discriminator"
batch_size = 1
sequence_length = 511
vocab_size = 30522
embedding_size = 128
hidden_size = 256
num_hidden_layers = 12
num_attention_heads = 4
intermediate_size = 1024
hidden_act = "gelu"
max_position_embeddings = 512
type_vocab_size = 2
layer_norm_eps = 1e-12


def get_inputs():
    return [torch.randint(0, vocab_size, (batch_size, sequence_length))]


def get_init_inputs():
    config = ElectraConfig(
        vocab_size=vocab_size,
        embedding_size=embedding_size,
        hidden_size=hidden_size,
        num_hidden_layers=num_hidden_layers,
        num_attention_heads=num_attention_heads,
        intermediate_size=intermediate_size,
        hidden_act=hidden_act,
        max_position_embeddings=max_position_embeddings,
        type_vocab_size=type_vocab_size,
        layer_norm_eps=layer_norm_eps,
    )
    return [model_name, config]


PROBLEM = ModelProblem(
    tiny={
        "batch_size": 1,
        "sequence_length": 31,
        "vocab_size": 300,
        "embedding_size": 32,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 256,
        "max_position_embeddings": 64,
    },
    hidden={
        "batch_size": 2,
        "sequence_length": 23,
        "vocab_size": 257,
        "embedding_size": 28,
        "hidden_size": 60,
        "num_hidden_layers": 3,
        "num_attention_heads": 3,
        "intermediate_size": 172,
        "max_position_embeddings": 48,
    },
    # Tokens stay apart through all layers only with small biases and branches; the embedding is also the head.
    state={
        "*.word_embeddings.weight": Normal(0.0, 1.0),
        "*.generator_lm_head.weight": Normal(0.0, 1.0),
        "*.output.dense.weight": Normal(0.0, 0.02),
        "*.query.bias": Normal(0.0, 0.5),
        "*.generator_*.bias": Normal(0.0, 0.5),
        "*.bias": Normal(0.0, 0.1),
    },
)
EQUIVALENT = {
    f"ignore model.electra.encoder.layer.{i}.attention.self.key.bias": "the softmax cancels a common shift"
    for i in range(num_hidden_layers)
}
