#!/usr/bin/env python3
"""v3demu inspect: what a draw takes in and makes, what a large capture costs to open, and questions that come at once.

usage: draw_test.py draw|large|busy V3DEMU MESA FOLDER DEVICE PROGRAM...
PROGRAM's jobs are captured. `draw` wants two textures of 512x512 with all levels, and vertices with attributes.
"""
import json
import os
import re
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from inspect_test import HERE, ask, capture, drive, end, expect, need_browser, need_page, served

sys.path.insert(0, os.path.join(HERE, ".."))
from capture_records import HEADER_BYTES, PAGE_BYTES, PAGES, SETS, records  # noqa: E402  pylint: disable=wrong-import-position


def of_draw(address, job, draw):
    """What the server says of a draw, apart from the page."""
    return ask(address, "vertices", job=job, draw=draw), ask(address, "job", job=job)["draws"][draw], ask(address, "textures", job=job, draw=draw)


def check_vertices(table, size):
    """Positions on the screen beside those in front of clipping, by the rules of the viewport: all of the frame."""
    expect(table["count"] > 16 and table["attributes"] and not table["problem"], "the table", table)
    for vertex in table["vertices"]:
        x, y, _, w = vertex["clip"]
        if w <= 0:
            continue
        screen = [(one / w + 1) / 2 * length for one, length in zip((x, y), size)]
        flipped = [screen[0], size[1] - screen[1]]
        near = any(all(abs(a - b) < 0.05 for a, b in zip(vertex["screen"], way)) for way in (screen, flipped))
        expect(near, "a position on the screen", (vertex, screen))
        expect(abs(vertex["reciprocal_w"] * w - 1) < 1e-3, "1/W beside W", vertex)


def check_thread(address, job, shown, vertex):
    """The thread that the table leads to has the words of the attributes in that lane."""
    steps = ask(address, "steps", job=job, stage=shown["stage"], thread=shown["thread"], count=2048)
    lane = shown["lane"]
    seen = {lanes[lane] for lanes in steps["initial"]} | {lanes[lane] for step in steps["steps"] for _, lanes in step["changed"]}
    words = {word for attribute in vertex["attributes"] for word in attribute}
    expect(words and words <= seen, "attributes in the registers of the thread", (words - seen, shown))


def draw(v3demu, mesa, folder, device, *program):
    need_browser(v3demu, folder)
    path = capture(v3demu, mesa, folder, device, program)
    server, address = served(v3demu, path)
    try:
        shown = drive("draw_test.mjs", folder, address, "draw.png")
        expect(shown["errors"] == [], "the page's errors", shown["errors"])
        table, state, textures = of_draw(address, shown["job"], shown["draw"])
        with urllib.request.urlopen(f"{address}ask/picture?job={shown['job']}") as answer:
            body = answer.read()
        frame = json.loads(body[4:4 + struct.unpack("<I", body[:4])[0]])
        check_vertices(table, (frame["width"], frame["height"]))
        check_thread(address, shown["job"], shown["vertices"], table["vertices"][17])
        expect(shown["vertices"]["cells"][1] == str(table["vertices"][17]["index"]), "the row of the vertex", shown["vertices"])
        expect(len(shown["vertices"]["heads"]) == len(shown["vertices"]["cells"]), "heads of the table", shown["vertices"])
        expect(shown["vertices"]["cut"] == [], "instructions that are cut at 1280 pixels", shown["vertices"]["cut"])
        expect(0 <= shown["corner"] < table["count"], "the vertex of the pixel's primitive", shown["corner"])
        expect(any("LESS" in line for line in state["state"]) and "LESS" in shown["state"], "names of functions", state["state"])
        expect([one["stage"] for one in textures["textures"]] == ["fragment"] * 2, "textures of the draw", textures)
        for text in shown["textures"]["texts"]:
            expect("512x512" in text and "2048 B" in text and "LINEAR" in text, "a texture with its rows", text)
        expect(shown["textures"]["colors"] > 100 and shown["textures"]["size"] == [256, 256], "pictures of textures", shown["textures"])
        expect("1024 B" in shown["textures"]["level"], "the row of a level", shown["textures"]["level"])
        unharmed = shown["unharmed"]
        expect(unharmed["elements"] == 0 and unharmed["tab"] == "v3demu inspect" and unharmed["texts"] > 5, "hostile texts", unharmed)
        for wrong in ({"draw": 1 << 31}, {"draw": len(table) + 1000, "first": 1 << 31}):
            for question in ("vertices", "textures"):
                try:
                    ask(address, question, job=shown["job"], **wrong)
                    sys.exit(f"{question} of a draw that is not there")
                except urllib.error.HTTPError as error:
                    expect(error.code == 404 and error.read(), "a draw that is not there", error)
    finally:
        end(server)


def enlarged(path, folder, size):
    """A copy with so many bytes of pages in front that no job uses: a hole, where the file system has such."""
    with open(path, "rb") as file:
        data = file.read()
    large = os.path.join(folder, "large.v3dcap")
    most = 1 << 28
    with open(large, "wb") as file:
        file.write(data[:HEADER_BYTES])
        for _ in range(size // most):
            file.write(struct.pack("<II", PAGES, most))
            file.seek(most, os.SEEK_CUR)
        moved = size // most * (most // PAGE_BYTES)
        for _, kind, payload in records(data):
            if kind == SETS:
                words = list(struct.unpack(f"<{len(payload) // 4}I", payload))
                words[2::2] = [number + moved if number else 0 for number in words[2::2]]
                payload = struct.pack(f"<{len(words)}I", *words)
            file.write(struct.pack("<II", kind, len(payload)) + payload)
    return large


def bytes_read(pid):
    with open(f"/proc/{pid}/io", encoding="utf-8") as file:
        return int(re.search(r"rchar: (\d+)", file.read())[1])


def large(v3demu, mesa, folder, device, *program):
    """A capture of 1 GiB opens, and shows its first picture, by a small part of it; what it shows is as ever."""
    need_page(v3demu)
    path = capture(v3demu, mesa, folder, device, program)
    whole = enlarged(path, folder, 1 << 30)
    size = os.path.getsize(whole)
    expect(size > 1 << 30, "the size of the capture", size)
    pictures = []
    for one in (path, whole):
        start = time.monotonic()
        server, address = served(v3demu, one)
        try:
            jobs = ask(address, "capture")["jobs"]
            job = next(job["number"] for job in jobs if job["kind"] == "render")
            with urllib.request.urlopen(f"{address}ask/picture?job={job}") as answer:
                pictures.append(answer.read())
            taken = time.monotonic() - start
            read = bytes_read(server.pid)
        finally:
            end(server)
    os.remove(whole)
    print(f"{len(jobs)} jobs in {size >> 20} MiB: {read >> 10} KiB read in {taken:.2f} s up to the first picture")
    expect(read < size // 32, "bytes that were read", read)
    expect(pictures[0] == pictures[1] and len(pictures[0]) > PAGE_BYTES, "the picture of the larger capture")


def busy(v3demu, mesa, folder, device, *program):
    """Times give way to what the user looks at, and are answered in the end."""
    need_page(v3demu)
    path = capture(v3demu, mesa, folder, device, program)
    server, address = served(v3demu, path)
    try:
        jobs = [job["number"] for job in ask(address, "capture")["jobs"] if job["kind"] in ("render", "compute", "bin")]
        states = []

        def predict():
            for job in jobs * 4:
                answer = ask(address, "time", job=job)
                states.append("busy" if answer.get("busy") else answer["end"])
        asking = threading.Thread(target=predict)
        asking.start()
        looks = 0
        while asking.is_alive():
            ask(address, "job", job=jobs[looks % len(jobs)])
            looks += 1
        asking.join()
        expect(looks > 0 and set(states) <= {"busy", "done"}, "times beside other questions", states)
        for job in jobs:
            expect(ask(address, "time", job=job)["end"] == "done", "a time without other questions", job)
    finally:
        end(server)


def main():
    modes = {"draw": draw, "large": large, "busy": busy}
    modes[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
