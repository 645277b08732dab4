"""RabbitMQ's backing queue as models, in the order to read them.

`paging_places` is the document's queue: five places and the moves between them. Its state is in
`paging_state`, its invariants are in `paging_invariants`. `paging_reduction` has the same queue as
numbers: how many messages a reduction of memory moves.
`paging_syncs` puts the disk under the places: syncs, confirms, crashes and starts. `paging_index`
is the index alone, down to its journal and its files. `paging_queue` adds the clients, and
`paging_queue_refines_contract` shows that the queue keeps the contract.

A *content* here is a `body` in the reference, a *position* is a `seq`.
"""
