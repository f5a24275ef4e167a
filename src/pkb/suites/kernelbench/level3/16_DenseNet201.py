"""DenseNet-201, whose dense layers are single 3x3 convolutions without a bottleneck."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem

BLOCK_LAYERS = [6, 12, 48, 32]


class DenseBlock(nn.Module):
    def __init__(self, num_layers, num_input_features, growth_rate):
        super().__init__()
        self.layers = nn.ModuleList(
            self._layer(num_input_features + i * growth_rate, growth_rate) for i in range(num_layers)
        )

    @staticmethod
    def _layer(channels, growth_rate):
        return nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, growth_rate, kernel_size=3, padding=1, bias=False),
            nn.Dropout(0.0),
        )

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat([x, layer(x)], dim=1)
        return x


class TransitionLayer(nn.Module):
    def __init__(self, num_input_features, num_output_features):
        super().__init__()
        self.transition = nn.Sequential(
            nn.BatchNorm2d(num_input_features),
            nn.ReLU(),
            nn.Conv2d(num_input_features, num_output_features, kernel_size=1, bias=False),
            nn.AvgPool2d(kernel_size=2, stride=2),
        )

    def forward(self, x):
        return self.transition(x)


class Model(nn.Module):
    def __init__(self, growth_rate=32, num_classes=1000):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
        )
        self.dense_blocks = nn.ModuleList()
        self.transition_layers = nn.ModuleList()
        channels = 64
        for i, num_layers in enumerate(BLOCK_LAYERS):
            self.dense_blocks.append(DenseBlock(num_layers, channels, growth_rate))
            channels += num_layers * growth_rate
            if i < len(BLOCK_LAYERS) - 1:
                self.transition_layers.append(TransitionLayer(channels, channels // 2))
                channels //= 2
        self.final_bn = nn.BatchNorm2d(channels)
        self.classifier = nn.Linear(channels, num_classes)

    def forward(self, x):
        x = self.features(x)
        for block, transition in zip(self.dense_blocks[:-1], self.transition_layers, strict=True):
            x = transition(block(x))
        x = F.relu(self.final_bn(self.dense_blocks[-1](x)))
        return self.classifier(x.mean(dim=(2, 3)))


batch_size = 10
growth_rate = 32
num_classes = 10
height = 224
width = 224


def get_inputs():
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs():
    return [growth_rate, num_classes]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "growth_rate": 8, "height": 64, "width": 64},
    hidden={"batch_size": 3, "growth_rate": 6, "num_classes": 13, "height": 71, "width": 103},
)
