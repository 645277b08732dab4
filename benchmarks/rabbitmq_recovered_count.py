"""Count what the index of RabbitMQ recovers from a journal whose segment has gone.

Loads the installed `rabbit_queue_index` with all its functions callable, reads a journal by its own
parser, recovers it with its own recovery beside no segment, and prints its count of unacknowledged
messages by segment. No broker is started.

    python benchmarks/rabbitmq_recovered_count.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

PLUGINS = "usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins/*/ebin"

JOURNALS = {
    "an acknowledgement": "<<3:2, 0:62>>",
    "a delivery and an acknowledgement": "<<2:2, 0:62, 3:2, 0:62>>",
    "a publish": "<<0:2, 0:62, 1:(28 * 8), 0:32>>",
}
"""Journals of one message, as bits in Erlang; the last is the control, which is exact."""

PROGRAM = """
{{ok, {{_, [{{abstract_code, {{_, Forms}}}}]}}}} =
    beam_lib:chunks(code:which(rabbit_queue_index), [abstract_code]),
{{ok, Index, Code}} = compile:forms(Forms, [export_all, nowarn_export_all]),
{{module, Index}} = code:load_binary(Index, "rabbit_queue_index", Code),
application:set_env(rabbit, queue_index_max_journal_entries, 32768),
put(segment_entry_count, 2048),
Nothing = fun(_) -> ok end,
Queue = {{resource, <<"/">>, queue, <<"q">>}},
Blank = Index:blank_state_name_dir_funs(Queue, "{folder}", Nothing, Nothing),
Read = Index:parse_journal_entries({journal}, Blank),
{{Counts, _}} = Index:terminate(Index:recover_journal(Read)),
io:format("~w", [Counts]),
halt().
"""


def counts(journal: str, folders: list[str]) -> str:
    """Return the counts by segment after recovery, as Erlang writes them."""
    with tempfile.TemporaryDirectory() as folder:
        program = PROGRAM.format(folder=folder, journal=journal)
        command = ["erl", "-noshell", *(w for each in folders for w in ("-pa", each))]
        done = subprocess.run(
            [*command, "-eval", program],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    if done.returncode or not done.stdout:
        sys.exit(f"erl ended with status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Print one line for each journal."""
    folders = [str(each) for each in Path("/").glob(PLUGINS)]
    if not folders:
        sys.exit(
            "there is no RabbitMQ; sudo apt-get install --no-install-recommends rabbitmq-server"
        )
    for title, journal in JOURNALS.items():
        print(f"{title} without a segment: {counts(journal, folders)}")


if __name__ == "__main__":
    main()
