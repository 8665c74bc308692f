"""A process that appends lines to an audit file until it is ended: `writer.py FILE NAME CHAIN SHARED LIMIT`.

It prints the number of a line that was written: a test knows what must be there. A line that could not be written,
because others had the lock for too long, is tried again before the next one.
"""

from __future__ import annotations

import os
import sys

from hookproxy.audit.call_record import Record
from hookproxy.audit.log import Audit
from hookproxy.model.settings import Settings


def main() -> None:
    path, name, chain, shared, limit = sys.argv[1:]
    audit = Audit(
        Settings(
            audit_file=path,
            audit_chain=chain == "True",
            audit_shared=shared == "True",
            audit_max_file_bytes=int(limit),
        )
    )
    number = 0
    while True:
        size = (number * 7919) % 40_000 if number % 3 == 0 else 100
        error = audit.write(Record(name, "files", "write", b"%d" % number, b'{"x":"%b"}' % (b"y" * size)))
        while error:  # without waiting for it, more would wait than is kept
            error = audit.failure()
        os.write(1, b"%d\n" % number)
        number += 1


if __name__ == "__main__":
    main()
