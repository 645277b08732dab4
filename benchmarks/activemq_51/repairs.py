"""Single repairs of ActiveMQ 5.1.0, compiled from its published source.

A repair replaces a few lines of the release. Maven fetches the source, `javac` compiles the changed
classes against the release's own jars, and they go in front of the class path. A line that is not
there exactly once ends the program, so no repair is ever left out in silence.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PACKAGE = "org/apache/activemq/"
RELEASE = "activemq-core-5.1.0"
AUDIT = f"{PACKAGE}util/BitArrayBin.class"
"""The windows of the audit. Nothing else of 5.2.0 is needed to repair D1."""

STORE = "store/kahadaptor/KahaReferenceStore"
SUBSCRIPTION = "broker/region/PrefetchSubscription"
STORE_CURSOR = "broker/region/cursors/AbstractStoreCursor"
QUEUE_CURSOR = "broker/region/cursors/StoreQueueCursor"

RECOUNT = "pendingCount = persistent.size() + nonPersistent.size();"


@dataclass(frozen=True)
class Edit:
    """A replacement in one source file."""

    file: str
    old: str
    new: str


STOPS_WITHOUT_ROOM: Final = (
    Edit(
        STORE,
        "lastBatchId = msg.getMessageId();\n                        }",
        "lastBatchId = msg.getMessageId();\n                        } else { break; }",
    ),
)
ASKS_FOR_THE_ID_FIRST: Final = (
    *STOPS_WITHOUT_ROOM,
    Edit(STORE, "if (msg != null ) {", "String asked = msg.getMessageId();\nif (msg != null) {"),
)
REFUSES_WHEN_DETACHED: Final = (
    Edit(
        SUBSCRIPTION,
        "synchronized (pendingLock) {\n            enqueueCounter++;",
        "boolean attached = destinations.contains(node.getRegionDestination());\n"
        "if (!attached && node != QueueMessageReference.NULL_MESSAGE) { return; }\n"
        "synchronized (pendingLock) {\n            enqueueCounter++;",
    ),
)
COUNTS_ANEW: Final = (
    Edit(STORE_CURSOR, "isStarted() && cacheEnabled)", "isStarted() && useCache)"),
    Edit(STORE_CURSOR, "return size <= 0;", "return size == 0;"),
    Edit(STORE_CURSOR, "if (isStarted()) {", "if (isStarted() && size >= 0) {"),
    Edit(
        STORE_CURSOR,
        "batchResetNeeded = true;\n        this.cacheEnabled=false;",
        "batchResetNeeded = true; cacheEnabled = false; if (isStarted()) size = getStoreSize();",
    ),
    Edit(QUEUE_CURSOR, "return pendingCount <= 0;", "return pendingCount == 0;"),
    Edit(
        QUEUE_CURSOR,
        "return pendingCount;",
        f"if (pendingCount < 0) {RECOUNT} return pendingCount;",
    ),
    Edit(QUEUE_CURSOR, "persistent.reset();\n    }", f"persistent.reset();\n{RECOUNT}\n}}"),
    Edit(
        QUEUE_CURSOR,
        "public synchronized void gc() {",
        f"public synchronized void gc() {{ gcBoth(); {RECOUNT} }}\nprivate void gcBoth() {{",
    ),
)


def build(edits: tuple[Edit, ...], jars: Path, into: Path) -> None:
    """Compile the classes with these edits, in front of whose rest are the release's own jars."""
    sources = into / "sources"
    fetched = subprocess.run(
        [
            *("mvn", "--batch-mode", "--quiet", "dependency:copy"),
            "-Dartifact=org.apache.activemq:activemq-core:5.1.0:jar:sources",
            f"-DoutputDirectory={sources}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if fetched.returncode:
        sys.exit(f"mvn ended with status {fetched.returncode}: {fetched.stdout}")
    texts: dict[str, str] = {}
    with zipfile.ZipFile(sources / f"{RELEASE}-sources.jar") as jar:
        for edit in edits:
            name = f"{PACKAGE}{edit.file}.java"
            text = texts.get(name) or jar.read(name).decode().replace("\r\n", "\n")
            if text.count(edit.old) != 1:
                sys.exit(f"{name} has not once: {edit.old}")
            texts[name] = text.replace(edit.old, edit.new)
    for name, text in texts.items():
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        (sources / name).write_text(text, encoding="utf-8")
    compiled = subprocess.run(
        [
            *("javac", "--release", "8", "-nowarn", "-proc:none", "-implicit:none"),
            *("-cp", f"{jars}/*", "-d", str(into)),
            *(str(sources / name) for name in texts),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if compiled.returncode:
        sys.exit(f"javac ended with status {compiled.returncode}: {compiled.stderr}")
