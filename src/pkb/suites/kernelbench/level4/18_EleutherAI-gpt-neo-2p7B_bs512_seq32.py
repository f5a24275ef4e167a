"""GPT-Neo 2.7B: the logits of 512 sequences of 32 tokens.

The model is built from its configuration with random weights; nothing is downloaded.
"""

import torch
import torch.nn as nn
from transformers import AutoModelForCausalLM, GPTNeoConfig

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, model_name, config):
        super().__init__()
        self.model_name = model_name
        self.config = config
        self.model = AutoModelForCausalLM.from_config(config).eval()

    def forward(self, x):
        return self.model(x).logits


model_name = "EleutherAI/gpt-neo-2.7B"
batch_size = 512
sequence_length = 32
vocab_size = 50257
max_position_embeddings = 2048
hidden_size = 2560
num_layers = 32
num_heads = 20
window_size = 256
intermediate_size = None
activation_function = "gelu_new"
layer_norm_epsilon = 1e-05
resid_dropout = 0.0
embed_dropout = 0.0
attention_dropout = 0.0
attention_types = [[["global", "local"], num_layers // 2]]


def get_inputs():
    return [torch.randint(0, vocab_size, (batch_size, sequence_length))]


def get_init_inputs():
    config = GPTNeoConfig(
        vocab_size=vocab_size,
        max_position_embeddings=max_position_embeddings,
        hidden_size=hidden_size,
        num_layers=num_layers,
        num_heads=num_heads,
        attention_types=attention_types,
        window_size=window_size,
        intermediate_size=intermediate_size,
        activation_function=activation_function,
        layer_norm_epsilon=layer_norm_epsilon,
        resid_dropout=resid_dropout,
        embed_dropout=embed_dropout,
        attention_dropout=attention_dropout,
        bos_token_id=vocab_size - 1,
        eos_token_id=vocab_size - 1,
    )
    return [model_name, config]


PROBLEM = ModelProblem(
    tiny={
        "batch_size": 6,
        "sequence_length": 8,
        "vocab_size": 300,
        "max_position_embeddings": 64,
        "hidden_size": 64,
        "num_layers": 2,
        "num_heads": 4,
        "window_size": 16,
    },
    hidden={
        "batch_size": 5,
        "sequence_length": 7,
        "vocab_size": 257,
        "max_position_embeddings": 48,
        "hidden_size": 60,
        "num_layers": 4,
        "num_heads": 3,
        "window_size": 16,
    },
    # Biases small enough for tokens to stay apart through all layers; the embedding is also the head.
    # The scores are not divided by the root of the head size: small queries.
    state={
        "*.wte.weight": Normal(0.0, 1.0),
        "*.lm_head.weight": Normal(0.0, 1.0),
        "*.q_proj.weight": Normal(0.0, 0.01),
        "*.bias": Normal(0.0, 0.1),
    },
)
