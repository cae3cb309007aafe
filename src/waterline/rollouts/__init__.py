"""Rollouts: the tables that hold responses as trees and the engines that fill them."""

from waterline.rollouts.columns import ColumnPass
from waterline.rollouts.engine import Capabilities, Engine, EngineError
from waterline.rollouts.labels import Labels, LabelSampler
from waterline.rollouts.pack import LeafRow, pack_leaves
from waterline.rollouts.ranked import RankedEngine
from waterline.rollouts.ranks import Ranks, is_first_process
from waterline.rollouts.sampling import SamplingParams
from waterline.rollouts.shared_prefix_engine import SharedPrefixEngine
from waterline.rollouts.table import Finish, Kind, Leaves, Rollouts
from waterline.rollouts.vllm_engine import VLLMEngine

__all__ = [
    "Capabilities",
    "ColumnPass",
    "Engine",
    "EngineError",
    "Finish",
    "Kind",
    "LabelSampler",
    "Labels",
    "LeafRow",
    "Leaves",
    "RankedEngine",
    "Ranks",
    "Rollouts",
    "SamplingParams",
    "SharedPrefixEngine",
    "VLLMEngine",
    "is_first_process",
    "pack_leaves",
]
