"""A U-Net with softmax over the width in place of its activations."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1),
            nn.BatchNorm2d(out_channels),
            nn.Softmax(dim=-1),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1),
            nn.BatchNorm2d(out_channels),
            nn.Softmax(dim=-1),
        )

    def forward(self, x):
        return self.double_conv(x)


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, features):
        super().__init__()
        self.encoder1 = DoubleConv(in_channels, features)
        self.encoder2 = DoubleConv(features, 2 * features)
        self.encoder3 = DoubleConv(2 * features, 4 * features)
        self.encoder4 = DoubleConv(4 * features, 8 * features)
        self.bottleneck = DoubleConv(8 * features, 16 * features)
        self.upconv4 = nn.ConvTranspose2d(16 * features, 8 * features, kernel_size=2, stride=2)
        self.decoder4 = DoubleConv(16 * features, 8 * features)
        self.upconv3 = nn.ConvTranspose2d(8 * features, 4 * features, kernel_size=2, stride=2)
        self.decoder3 = DoubleConv(8 * features, 4 * features)
        self.upconv2 = nn.ConvTranspose2d(4 * features, 2 * features, kernel_size=2, stride=2)
        self.decoder2 = DoubleConv(4 * features, 2 * features)
        self.upconv1 = nn.ConvTranspose2d(2 * features, features, kernel_size=2, stride=2)
        self.decoder1 = DoubleConv(2 * features, features)
        self.final_conv = nn.Conv2d(features, out_channels, kernel_size=1)

    def forward(self, x):
        skip1 = self.encoder1(x)
        skip2 = self.encoder2(halve(skip1))
        skip3 = self.encoder3(halve(skip2))
        skip4 = self.encoder4(halve(skip3))
        x = self.bottleneck(halve(skip4))
        x = self.decoder4(torch.cat([self.upconv4(x), skip4], dim=1))
        x = self.decoder3(torch.cat([self.upconv3(x), skip3], dim=1))
        x = self.decoder2(torch.cat([self.upconv2(x), skip2], dim=1))
        x = self.decoder1(torch.cat([self.upconv1(x), skip1], dim=1))
        return self.final_conv(x)


def halve(x):
    return F.max_pool2d(x, kernel_size=2, stride=2)


batch_size = 8
in_channels = 8
out_channels = 4
features = 64
height = 64
width = 512


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, features]


PROBLEM = ModelProblem(
    tiny={"batch_size": 2, "in_channels": 6, "features": 8, "height": 32, "width": 64},
    hidden={"batch_size": 3, "in_channels": 5, "out_channels": 3, "features": 7, "height": 48, "width": 32},
)
LEVELS = ["encoder1", "encoder2", "encoder3", "encoder4", "bottleneck", "decoder4", "decoder3", "decoder2", "decoder1"]
EQUIVALENT = {
    f"ignore {name}.double_conv.{layer}.bias": reason
    for name in LEVELS
    for layer, reason in {
        0: "the batch norm subtracts it",
        1: "the softmax cancels what a whole channel has in common",
        3: "the batch norm subtracts it",
        4: "the softmax cancels what a whole channel has in common",
    }.items()
}
