"""Answers recorded from the releases' own classes; none is computed.

`MEMORY` is `MemoryUsage` of 5.17.2, of three nodes one below the other, named 0, 1 and 2, the lower
ones with half of the limit above and all with a delta of 5. A line is the call on a node, the
answer, limit/used/percent of the three, and the notifications: a callback by its letter, a listener
by its node and the change. A dash means no answer.

`AUDIT` is `ActiveMQMessageAudit` with a depth of 63 and 2 producers at first. A line is the query,
and the answers of 5.1.0 and 5.17.2, or the one answer of both.
"""

from __future__ import annotations

MEMORY = """
inc 2 25 | - 100/25/25 50/25/50 25/25/100 | 2:0-100 1:0-50 0:0-25
notify 2 a | true 100/25/25 50/25/50 25/25/100 |
notify 1 b | false 100/25/25 50/25/50 25/25/100 |
inc 1 30 | - 100/55/55 50/55/110 25/25/100 | 1:50-110 0:25-55
notify 2 c | true 100/55/55 50/55/110 25/25/100 |
notify 1 d | true 100/55/55 50/55/110 25/25/100 |
dec 2 3 | - 100/52/50 50/52/100 25/22/85 | a 2:100-85 1:110-100 0:55-50
inc 0 44 | - 100/96/95 50/52/100 25/22/85 | 0:50-95
notify 2 e | true 100/96/95 50/52/100 25/22/85 |
notify 0 f | false 100/96/95 50/52/100 25/22/85 |
inc 0 1 | - 100/97/95 50/52/100 25/22/85 |
notify 2 g | true 100/97/95 50/52/100 25/22/85 |
dec 1 6 | - 100/91/90 50/46/90 25/22/85 | c d e g 1:100-90 0:95-90
inc 2 3 | - 100/94/90 50/49/95 25/25/100 | 2:85-100 1:90-95
dec 0 20 | - 100/74/70 50/49/95 25/25/100 | 0:90-70
dec 2 1 | - 100/73/70 50/48/95 25/24/95 | 2:100-95
limit 0 210 | - 210/73/30 105/48/45 52/24/45 | 0:70-30 1:95-45 2:95-45
limit 1 50 | - 210/73/30 50/48/95 25/24/95 | 1:45-95 2:45-95
notify 1 h | false 210/73/30 50/48/95 25/24/95 |
limit 1 0 | - 210/73/30 0/48/0 0/24/0 | 1:95-0 2:95-0
portion 1 0.3 | - 210/73/30 63/48/75 31/24/75 | 1:0-75 2:0-75
limit 0 50 | - 50/73/145 15/48/320 7/24/340 | 0:30-145 1:75-320 2:75-340
dec 2 24 | - 50/49/95 15/24/160 7/0/0 | 2:340-0 1:320-160 0:145-95
dec 1 24 | - 50/25/50 15/0/0 7/0/0 | 1:160-0 0:95-50
dec 0 25 | - 50/0/0 15/0/0 7/0/0 | 0:50-0
"""

AUDIT = """
dup a 5 | false
dup b 1 | false
dup a 6 | false
dup c 1 | false
dup a 5 | true
ord b 7 | true
dup c 1 | false
roll d 1 | -
ord b 8 | true
roll a 5 | -
dup a 5 | false
producers 1 | -
dup b 1 | false
dup a 5 | true false
dup c 1 | false
producers 3 | -
dup a 1 | false
dup b 1 | false
dup c 1 | true
dup a 1 | true
"""
