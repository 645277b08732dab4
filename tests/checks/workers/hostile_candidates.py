"""Candidates that harm their process, each at the first publish to a second queue.

Each also delivers last in, first out, so a report must have that finding as well: it comes in
scopes of one queue. `twin` does only this.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from brokerproof.spec.protocol.answers import OK, Answer, Delivered, Error
from brokerproof.spec.protocol.operations import CloseChannel, Operation, Publish
from tests.checks.broken_candidates import Box, Stack

SECOND = "q1"
MEGABYTES_50 = 50 * 10**6
PRINTED_MEGABYTES = 1_000


class Hostile(Stack):
    """Does something at each publish to the second queue."""

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation, after the hostile act."""
        if isinstance(operation, Publish) and operation.queue == SECOND:
            answer = self.act(operation)
            if answer is not None:
                return answer
        return super().handle(operation)

    def act(self, _operation: Operation) -> Answer | None:
        """Do nothing; return an answer where it replaces the queue's own."""
        return None


class Multiplies(Hostile):
    """Doubles all messages that wait at each close of a channel."""

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation, and grow."""
        if isinstance(operation, CloseChannel) and SECOND in self.queues:
            for waiting in self.queues.values():
                waiting.extend([*waiting])
        return super().handle(operation)


class Exits(Hostile):
    """Ends its process without a word."""

    def act(self, _operation: Operation) -> Answer | None:
        """Exit."""
        os._exit(0)


class KillsItself(Hostile):
    """Ends like a crash in native code."""

    def act(self, _operation: Operation) -> Answer | None:
        """Crash, without the dump of a test runner."""
        faulthandler.disable()
        os.kill(os.getpid(), signal.SIGSEGV)
        return None


class LongAnswer(Hostile):
    """Returns an error message of 50 MB."""

    def act(self, _operation: Operation) -> Answer | None:
        """Refuse at length."""
        return Answer(error=Error("internal", "no " * (MEGABYTES_50 // 3)))


class LongException(Hostile):
    """Raises an exception of 50 MB."""

    def act(self, _operation: Operation) -> Answer | None:
        """Raise at length."""
        raise RuntimeError("no " * (MEGABYTES_50 // 3))


class ManyEvents(Hostile):
    """Returns a million events."""

    def act(self, operation: Operation) -> Answer | None:
        """Answer with invented events."""
        assert isinstance(operation, Publish)
        phantom = Delivered(delivery="d", consumer=None, queue=operation.queue, message="m")
        return Answer((phantom,) * 10**6)


class Allocates(Hostile):
    """Takes ten gigabytes."""

    def act(self, _operation: Operation) -> Answer | None:
        """Fill memory, a part at a time."""
        held = [b"x" * 10**8 for _ in range(100)]
        return None if held else OK


class Forks(Hostile):
    """Forks its process, and the copy goes on as if it were the gate."""

    def act(self, _operation: Operation) -> Answer | None:
        """Fork."""
        os.fork()
        return None


class ForksAndStays(Hostile):
    """Forks its process, and the copy stays."""

    def act(self, _operation: Operation) -> Answer | None:
        """Fork, and wait in the copy."""
        if os.fork() == 0:
            time.sleep(600)
        return None


class ClosesOutput(Hostile):
    """Closes standard output and standard error."""

    def act(self, _operation: Operation) -> Answer | None:
        """Close them."""
        sys.stdout.close()
        sys.stderr.close()
        for place in (1, 2):
            os.close(os.dup(place))
            os.close(place)
            os.open(os.devnull, os.O_RDONLY)
        return None


class ClosesAll(Hostile):
    """Closes whatever its process has open."""

    def act(self, _operation: Operation) -> Answer | None:
        """Close it."""
        os.closerange(0, 256)
        return None


class IgnoresSignals(Hostile):
    """Hears no signal that can be ignored, and does not come back."""

    def act(self, _operation: Operation) -> Answer | None:
        """Ignore, and wait in a way that nothing interrupts."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(60)


class SwallowsAll(Hostile):
    """Catches whatever is raised in it, and does not come back."""

    def act(self, _operation: Operation) -> Answer | None:
        """Catch."""
        while True:
            try:
                while True:
                    threading.Event().wait(1)
            except BaseException:  # noqa: BLE001, S112 - that is the fault
                continue


class Prints(Hostile):
    """Prints a gigabyte."""

    def act(self, _operation: Operation) -> Answer | None:
        """Print."""
        for _ in range(PRINTED_MEGABYTES):
            print("x" * 10**6)  # noqa: T201
        return None


class Leaves(Hostile):
    """Calls for an exit of the interpreter."""

    def act(self, _operation: Operation) -> Answer | None:
        """Leave."""
        sys.exit(0)


class LosesOneInAHundred(Box):
    """Loses the message of every hundredth publish, whatever it is copied to."""

    published = 0

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation, or lose."""
        if isinstance(operation, Publish) and operation.queue in self.queues:
            LosesOneInAHundred.published += 1
            if LosesOneInAHundred.published % 100 == 0:
                return OK
        return super().handle(operation)


HOSTILE: dict[str, Callable[[], Hostile]] = {
    each.__name__: each for each in Hostile.__subclasses__()
}
