"""The records of captures (daemon/capture.h), for tests that look into files or change them."""
import struct

HEADER_BYTES, PAGE_BYTES = 32, 4096
PAGE, MAPS, SETS, JOB, END, FRAME, PROGRAMS, AFTER, PAGES, CHUNK, SUBMISSION, AFTER_HASHES = range(1, 13)


def records(data):
    """Position, type and payload of each record."""
    at = HEADER_BYTES
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        yield at, kind, data[at + 8:at + 8 + size]
        at += 8 + size


def pages_of(kind, payload):
    """The pages that a record brings, but for compressed ones; what is missing of the last one is 0."""
    if kind not in (PAGE, PAGES):
        return []
    end = PAGE_BYTES if kind == PAGE else len(payload)
    return [payload[at:at + PAGE_BYTES].ljust(PAGE_BYTES, b"\0") for at in range(0, end, PAGE_BYTES)]
