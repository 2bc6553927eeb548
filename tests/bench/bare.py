"""How long does one process take to decode every line of a tree and do nothing else?

    python -m tests.bench.bare TREE

Prints one JSON object: seconds (reading included, start of Python not), lines, bytes, undecodable lines. It is the
yardstick of the other measurements, run in the same minute on the same machine.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import orjson


def decode_all(tree: Path) -> dict[str, float]:
    """Decodes each line of each ``*.jsonl`` below ``tree``, as bytes between line feeds."""
    paths = sorted(str(path) for path in tree.rglob("*.jsonl"))
    loads = orjson.loads
    lines = size = undecodable = 0
    started = time.perf_counter()
    for path in paths:
        with open(path, "rb") as file:  # noqa: PTH123 - a plain string: nothing but decoding is measured
            for line in file:
                lines += 1
                size += len(line)
                try:
                    loads(line)
                except ValueError:
                    undecodable += 1
    seconds = time.perf_counter() - started
    return {"seconds": round(seconds, 4), "lines": lines, "bytes": size, "undecodable": undecodable}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(decode_all(Path(sys.argv[1]))))
