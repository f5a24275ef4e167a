"""GPT-2: the logits of one sequence of 1023 tokens.

The model is built from its configuration with random weights; nothing is downloaded.
"""

import torch
import torch.nn as nn
from transformers import AutoModelForCausalLM, GPT2Config

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, model_name, config):
        super().__init__()
        self.model_name = model_name
        self.config = config
        self.model = AutoModelForCausalLM.from_config(config).eval()

    def forward(self, x):
        return self.model(x).logits


model_name = "gpt2"
batch_size = 1
sequence_length = 1023
vocab_size = 50257
n_positions = 1024
n_embd = 768
n_layer = 12
n_head = 12
activation_function = "gelu_new"
layer_norm_epsilon = 1e-05


def get_inputs():
    return [torch.randint(0, vocab_size, (batch_size, sequence_length))]


def get_init_inputs():
    config = GPT2Config(
        vocab_size=vocab_size,
        n_positions=n_positions,
        n_embd=n_embd,
        n_layer=n_layer,
        n_head=n_head,
        activation_function=activation_function,
        layer_norm_epsilon=layer_norm_epsilon,
        bos_token_id=vocab_size - 1,
        eos_token_id=vocab_size - 1,
    )
    return [model_name, config]


PROBLEM = ModelProblem(
    tiny={
        "batch_size": 1,
        "sequence_length": 31,
        "vocab_size": 300,
        "n_positions": 64,
        "n_embd": 64,
        "n_layer": 2,
        "n_head": 4,
    },
    hidden={
        "batch_size": 2,
        "sequence_length": 23,
        "vocab_size": 257,
        "n_positions": 48,
        "n_embd": 60,
        "n_layer": 3,
        "n_head": 3,
    },
    # Biases small enough for tokens to stay apart through all layers; the embedding is also the head.
    state={
        "*.wte.weight": Normal(0.0, 1.0),
        "*.lm_head.weight": Normal(0.0, 1.0),
        "*.bias": Normal(0.0, 0.1),
    },
)
