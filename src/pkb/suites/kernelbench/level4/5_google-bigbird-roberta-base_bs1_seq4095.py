"""BigBird (base): the logits of one sequence of 4095 tokens; attention goes both ways.

The model is built from its configuration with random weights; nothing is downloaded.
The sequence is long enough for sparse attention by blocks, and is padded to whole blocks.
The blocks that training draws at random are all the first one here.
"""

import torch
import torch.nn as nn
from transformers import AutoModelForCausalLM, BigBirdConfig

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, model_name, config):
        super().__init__()
        self.model_name = model_name
        self.config = config
        self.model = AutoModelForCausalLM.from_config(config).eval()

    def forward(self, x):
        return self.model(x).logits


model_name = "google/bigbird-roberta-base"
batch_size = 1
sequence_length = 4095
vocab_size = 50358
hidden_size = 768
num_hidden_layers = 12
num_attention_heads = 12
intermediate_size = 3072
hidden_act = "gelu_new"
max_position_embeddings = 4096
type_vocab_size = 2
attention_type = "block_sparse"
block_size = 64
num_random_blocks = 3
use_bias = True
rescale_embeddings = False
layer_norm_eps = 1e-12


def get_inputs():
    return [torch.randint(0, vocab_size, (batch_size, sequence_length))]


def get_init_inputs():
    config = BigBirdConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        num_hidden_layers=num_hidden_layers,
        num_attention_heads=num_attention_heads,
        intermediate_size=intermediate_size,
        hidden_act=hidden_act,
        max_position_embeddings=max_position_embeddings,
        type_vocab_size=type_vocab_size,
        attention_type=attention_type,
        block_size=block_size,
        num_random_blocks=num_random_blocks,
        use_bias=use_bias,
        rescale_embeddings=rescale_embeddings,
        layer_norm_eps=layer_norm_eps,
    )
    return [model_name, config]


PROBLEM = ModelProblem(
    tiny={
        "batch_size": 1,
        "sequence_length": 127,
        "vocab_size": 300,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 256,
        "max_position_embeddings": 128,
        "block_size": 8,
        "num_random_blocks": 2,
    },
    hidden={
        "batch_size": 2,
        "sequence_length": 91,
        "vocab_size": 257,
        "hidden_size": 60,
        "num_hidden_layers": 3,
        "num_attention_heads": 3,
        "intermediate_size": 172,
        "max_position_embeddings": 104,
        "block_size": 8,
        "num_random_blocks": 1,
    },
    # Tokens stay apart through all layers only with small biases and branches; the embedding is also the head.
    state={
        "*.word_embeddings.weight": Normal(0.0, 1.0),
        "*.decoder.weight": Normal(0.0, 1.0),
        "*.output.dense.weight": Normal(0.0, 0.01),
        "*.query.bias": Normal(0.0, 0.5),
        "*.predictions.*bias": Normal(0.0, 0.5),
        "*.bias": Normal(0.0, 0.1),
    },
)
EQUIVALENT = {
    f"ignore model.bert.encoder.layer.{i}.attention.self.key.bias": "the softmax cancels a common shift"
    for i in range(num_hidden_layers)
} | {f"ignore model.bert.pooler.{name}": "the head reads tokens, not the pooled one" for name in ("weight", "bias")}
