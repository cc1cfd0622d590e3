"""Duels on correlated arms: the engine, its baselines, sessions with a journal, simulation.

From correlations (a store, or anything like one) and a person's answers to pairs to compare, a
journal, and a ranked set of configurations. Nothing of the finite-element side is imported here.
"""

from fieldcorr.correlation.rule import UpdatePolicy
from fieldcorr.correlation.sources import (
    CorrelationSource,
    as_source,
    source_from_embedding,
    source_from_kernel,
    source_from_matrix,
    source_from_sparse,
    source_from_store,
)
from fieldcorr.duel.baselines import RUCB, BeatTheMean, SparringUCB1
from fieldcorr.duel.bayes import BayesDuel
from fieldcorr.duel.corrduel import CorrDuel
from fieldcorr.duel.engine import Engine, Standing
from fieldcorr.duel.events import Event
from fieldcorr.duel.options import DuelOptions
from fieldcorr.duel.session import Session, read_session
from fieldcorr.duel.survivors import Survivor, Survivors

__all__ = [
    "RUCB",
    "BayesDuel",
    "BeatTheMean",
    "CorrDuel",
    "CorrelationSource",
    "DuelOptions",
    "Engine",
    "Event",
    "Session",
    "SparringUCB1",
    "Standing",
    "Survivor",
    "Survivors",
    "UpdatePolicy",
    "as_source",
    "read_session",
    "source_from_embedding",
    "source_from_kernel",
    "source_from_matrix",
    "source_from_sparse",
    "source_from_store",
]
