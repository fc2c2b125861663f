#!/usr/bin/env python3
"""Makes inputs of the fuzz target `jobs` from a capture: one for each bin and render pair, dispatch or TFU job.

usage: make_job_seeds.py CAPTURE OUTPUT_PREFIX
Jobs whose memory does not fit into an input, or lies beyond that of the target, are left out and named.
"""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from capture_records import JOB, MAPS, PAGE_BYTES, SETS, pages_of, records  # noqa: E402  pylint: disable=wrong-import-position

MAX_BYTES, END = 6000, 4 << 20
BIN, RENDER = 0, 1
IMAGE_BYTES = 64  # of a page that is full: texels, of which a part will do


def chunks(address, page):
    """Runs of bytes that are not zero; gaps of less than 8 belong to them."""
    at, limit = 0, PAGE_BYTES if page.count(0) > PAGE_BYTES // 2 else IMAGE_BYTES
    while at < limit:
        if page[at] == 0:
            at += 1
            continue
        end = page.find(bytes(8), at)
        end = min(limit, end if end >= 0 else limit)
        yield struct.pack("<BIH", 0, address + at, end - at) + page[at:end]
        at = end


def main():
    capture, prefix = sys.argv[1:]
    with open(capture, "rb") as file:
        data = file.read()
    number, pages, memory, jobs = 0, [bytes(PAGE_BYTES)], {}, b""
    for _, kind, payload in records(data):
        words = struct.unpack(f"<{len(payload) // 4}I", payload)
        pages += pages_of(kind, payload)
        if kind == MAPS:
            memory = {}
        elif kind == SETS:
            memory.update((a, pages[n]) for a, n in zip(words[1::2], words[2::2]))
        elif kind == JOB:
            jobs += struct.pack("<B12I", words[1] + 1, *words[3:15])
            if words[1] == BIN:
                continue
            number += 1
            result = b"".join(c for a, p in sorted(memory.items()) if a < END for c in chunks(a, p)) + jobs
            jobs = b""
            if len(result) > MAX_BYTES or any(a >= END and any(p) for a, p in memory.items()):
                print(f"job {number}: {len(result)} bytes: left out")
                continue
            with open(f"{prefix}{number}", "wb") as file:
                file.write(result)


main()
