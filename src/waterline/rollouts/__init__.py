"""Rollouts: the tables that hold responses as trees and the engines that fill them."""

from waterline.rollouts.engine import Capabilities, Engine
from waterline.rollouts.labels import Labels, LabelSampler
from waterline.rollouts.pack import LeafRow, pack_leaves
from waterline.rollouts.sampling import SamplingParams
from waterline.rollouts.shared_prefix_engine import SharedPrefixEngine
from waterline.rollouts.table import Finish, Kind, Leaves, Rollouts

__all__ = [
    "Capabilities",
    "Engine",
    "Finish",
    "Kind",
    "LabelSampler",
    "Labels",
    "LeafRow",
    "Leaves",
    "Rollouts",
    "SamplingParams",
    "SharedPrefixEngine",
    "pack_leaves",
]
