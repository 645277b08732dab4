"""The models by name, each with the scope in which it is explored unless another is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from brokerproof.models import contract, pointer_queue
from brokerproof.models.language.model import Model
from brokerproof.models.language.scope import Scope


@dataclass(frozen=True)
class Listed:
    """A model and the scope of its exploration: some hundred thousand states, or a few million."""

    model: type[Model]
    scope: Scope


CATALOGUE: dict[str, Listed] = {
    "contract": Listed(
        contract.Contract,
        Scope(
            {
                contract.Queue: 1,
                contract.Channel: 1,
                contract.Consumer: 1,
                contract.Entry: 2,
            },
            range(3),
        ),
    ),
    "pointer-queue": Listed(
        pointer_queue.PointerQueue,
        Scope({pointer_queue.Entry: 4, pointer_queue.Subscription: 2}, range(1)),
    ),
}
