"""The models by name, each with the scope in which it is explored unless another is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from brokerproof.models import (
    consumer_notification,
    contract,
    moving_place,
    paired_pointer,
    pointer_queue,
    queue_runner,
    whole_contract,
)
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
    "whole-contract": Listed(
        whole_contract.WholeContract,
        Scope(
            {
                contract.Queue: 1,
                contract.Channel: 1,
                contract.Consumer: 1,
                contract.Entry: 1,
            },
            range(2),
            {
                "level": 0,
                "fifo": 1,
                "rank": 0,
                "not_before": 0,
                "expires": 1,
                "horizon": 1,
                "size": 1,
                "to_head": 0,
                "to_tail": 0,
                "replaces": 0,
                "ties": 1,
                "returns_to_place": 1,
                "when_idle": 0,
                "exclusive": 0,
                "is_sorted_by_key": 0,
                "concerned": 1,
                "subscribed": 1,
                "wants": 1,
            },
        ),
    ),
    "pointer-queue": Listed(
        pointer_queue.PointerQueue,
        Scope({pointer_queue.Entry: 4, pointer_queue.Subscription: 2}, range(1)),
    ),
    "consumer-notification": Listed(
        consumer_notification.ConsumerNotification,
        Scope(
            {consumer_notification.Message: 1, consumer_notification.Consumer: 2},
            range(1),
            {"anybody": 0},
        ),
    ),
    "queue-runner": Listed(
        queue_runner.QueueRunner,
        Scope({queue_runner.Change: 2, queue_runner.Runner: 2}, range(1)),
    ),
    "paired-pointer": Listed(
        paired_pointer.PairedPointer,
        Scope(
            {moving_place.Entry: 3, moving_place.Seeker: 2, moving_place.Opener: 1},
            range(1),
        ),
    ),
}
