"""NetVLAD pooling: residuals of the features to soft-assigned clusters, normalised twice."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from pkb import ModelProblem, Normal


class Model(nn.Module):
    def __init__(self, cluster_size, feature_size, ghost_clusters):
        super().__init__()
        self.cluster_size = cluster_size
        self.feature_size = feature_size
        scale = 1 / math.sqrt(feature_size)
        clusters = cluster_size + ghost_clusters
        self.clusters = nn.Parameter(scale * torch.randn(feature_size, clusters))
        self.batch_norm = nn.BatchNorm1d(clusters)
        self.clusters2 = nn.Parameter(scale * torch.randn(1, feature_size, cluster_size))

    def forward(self, x, mask=None):
        batch, length, _ = x.shape
        assignment = torch.softmax(self.batch_norm(x.view(-1, self.feature_size) @ self.clusters), dim=1)
        assignment = assignment[:, : self.cluster_size].view(batch, length, self.cluster_size)
        residuals = x.transpose(1, 2) @ assignment - assignment.sum(dim=1, keepdim=True) * self.clusters2
        residuals = F.normalize(residuals, dim=1)
        return F.normalize(residuals.reshape(batch, self.cluster_size * self.feature_size), dim=1)


batch_size = 2048
num_features = 100
feature_size = 512
cluster_size = 32
ghost_clusters = 0


def get_inputs():
    return [torch.rand(batch_size, num_features, feature_size)]


def get_init_inputs():
    return [cluster_size, feature_size, ghost_clusters]


PROBLEM = ModelProblem(
    tiny={"batch_size": 4, "num_features": 20, "feature_size": 48, "cluster_size": 12},
    hidden={"batch_size": 3, "num_features": 17, "feature_size": 37, "cluster_size": 11},
    state={"clusters2": Normal(0.0, 1.0)},
)
EQUIVALENT = {"skip __getitem__": "without ghost clusters there is nothing to cut off"}
