"""The model language: one Python text for each model, traced once and read in many ways.

This package holds terms, the declarations of a model, and one module for each reading of the terms:
plain Python in a scope, pointwise for the oracle, NumPy columns for the explorer, Z3 for the
prover. Particular models and the terms of brokers are elsewhere.
"""

from brokerproof.models.language.core.least import empty_at_zero, least, not_negative
from brokerproof.models.language.core.marks import (
    action,
    axiom,
    counts,
    initial,
    invariant,
    leads_to,
)
from brokerproof.models.language.core.model import (
    Fixed,
    FixedRelation,
    Map,
    Model,
    ModelError,
    Order,
    Relation,
    SetOf,
    Steps,
    Value,
    elements,
    exercises,
    finitely,
    ranked,
    require,
    step,
    trace,
)
from brokerproof.models.language.core.systems import Part
from brokerproof.models.language.core.terms import (
    FALSE,
    TRUE,
    Bool,
    Enumeration,
    Family,
    Int,
    exists,
    forall,
    implies,
    ite,
)

__all__ = [
    "FALSE",
    "TRUE",
    "Bool",
    "Enumeration",
    "Family",
    "Fixed",
    "FixedRelation",
    "Int",
    "Map",
    "Model",
    "ModelError",
    "Order",
    "Part",
    "Relation",
    "SetOf",
    "Steps",
    "Value",
    "action",
    "axiom",
    "counts",
    "elements",
    "empty_at_zero",
    "exercises",
    "exists",
    "finitely",
    "forall",
    "implies",
    "initial",
    "invariant",
    "ite",
    "leads_to",
    "least",
    "not_negative",
    "ranked",
    "require",
    "step",
    "trace",
]
