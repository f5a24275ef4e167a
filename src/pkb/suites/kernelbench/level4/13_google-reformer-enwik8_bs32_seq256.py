"""Reformer (enwik8): the logits of 32 sequences of 256 tokens.

The model is built from its configuration with random weights; nothing is downloaded.
The sequence fits into one chunk of the hashing layers, so that nothing is hashed.
"""

import torch
import torch.nn as nn
from transformers import AutoModelForCausalLM, ReformerConfig

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, model_name, config):
        super().__init__()
        self.model_name = model_name
        self.config = config
        self.model = AutoModelForCausalLM.from_config(config).eval()

    def forward(self, x):
        return self.model(x).logits


model_name = "google/reformer-enwik8"
batch_size = 32
sequence_length = 256
vocab_size = 258
hidden_size = 1024
num_attention_heads = 8
attention_head_size = 128
feed_forward_size = 4096
attn_layers = ["local", "local", "lsh", "local", "local", "local", "lsh", "local", "local", "local", "lsh", "local"]
axial_pos_embds = True
axial_pos_shape = [128, 512]
axial_pos_embds_dim = [256, 768]
local_attn_chunk_length = 128
lsh_attn_chunk_length = 256
num_hashes = 4
num_buckets = 512
hidden_act = "relu"
is_decoder = True
max_position_embeddings = axial_pos_shape[0] * axial_pos_shape[1]


def get_inputs():
    return [torch.randint(0, vocab_size, (batch_size, sequence_length))]


def get_init_inputs():
    config = ReformerConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        num_attention_heads=num_attention_heads,
        attention_head_size=attention_head_size,
        feed_forward_size=feed_forward_size,
        attn_layers=list(attn_layers),
        axial_pos_embds=axial_pos_embds,
        axial_pos_shape=axial_pos_shape,
        axial_pos_embds_dim=axial_pos_embds_dim,
        max_position_embeddings=max_position_embeddings,
        local_attn_chunk_length=local_attn_chunk_length,
        lsh_attn_chunk_length=lsh_attn_chunk_length,
        num_hashes=num_hashes,
        num_buckets=num_buckets,
        hidden_act=hidden_act,
        is_decoder=is_decoder,
    )
    return [model_name, config]


PROBLEM = ModelProblem(
    tiny={
        "batch_size": 4,
        "sequence_length": 32,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "attention_head_size": 16,
        "feed_forward_size": 256,
        "attn_layers": ["local", "lsh", "local"],
        "axial_pos_shape": [8, 16],
        "axial_pos_embds_dim": [24, 40],
        "local_attn_chunk_length": 16,
        "lsh_attn_chunk_length": 32,
        "num_buckets": 8,
    },
    hidden={
        "batch_size": 3,
        "sequence_length": 24,
        "vocab_size": 251,
        "hidden_size": 60,
        "num_attention_heads": 3,
        "attention_head_size": 20,
        "feed_forward_size": 172,
        "attn_layers": ["lsh", "local"],
        "axial_pos_shape": [6, 12],
        "axial_pos_embds_dim": [23, 37],
        "local_attn_chunk_length": 12,
        "lsh_attn_chunk_length": 24,
        "num_buckets": 8,
    },
)
EQUIVALENT = {"ignore model.lm_head.bias": "the head never adds it"}
