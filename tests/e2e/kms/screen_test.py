#!/usr/bin/env python3
"""What programs show on the display node, as v3demu screen, run --screen-png and desktop give it.

  screen_test.py V3DEMU V3DEMUD MESA TEST [MORE]   TEST: a name of TESTS below; MORE: rounds of `viewers`, default 6;
                                              the program of `vulkan`, vulkan_display

Exit status: 0 as it should be, 1 not, 77 the program is not installed.
"""
import os
import random
import shutil
import subprocess
import sys
import time

from kms_test import PATIENCE, expect, is_v3d, main, need

SIZE = (1920, 1080)


def read_picture(path):
    """Width, height and a function that gives the colour of a pixel."""
    need("convert")
    header, pixels = subprocess.run(["convert", path, "-depth", "8", "ppm:-"], check=True, capture_output=True,
                                    timeout=PATIENCE).stdout.split(b"\n255\n", 1)
    width, height = (int(word) for word in header.split()[1:])
    return width, height, lambda x, y: tuple(pixels[3 * (y * width + x):3 * (y * width + x) + 3])


def colours(pixel, left, top, right, bottom):
    """The different colours of 32 x 32 pixels of a rectangle."""
    return {pixel(x, y) for y in range(top, bottom, max(1, (bottom - top) // 32))
            for x in range(left, right, max(1, (right - left) // 32))}


def expect_cube(path):
    """A cube of many colours in the middle; beside it, one grey."""
    width, height, pixel = read_picture(path)
    expect((width, height) == SIZE, f"{width}x{height}")
    around = colours(pixel, 0, 0, width, 20) | colours(pixel, 0, height - 20, width, height)
    expect(around == {(128, 128, 128)} or around == {(127, 127, 127)}, f"around the cube: {sorted(around)[:8]}")
    inside = colours(pixel, width // 3, height // 3, 2 * width // 3, 2 * height // 3)
    expect(len(inside) > 100, f"{len(inside)} colours of the cube")


def run(display, *arguments, stdin=subprocess.DEVNULL):
    return subprocess.run([display.v3demu, *arguments], env=display.environment, stdin=stdin, capture_output=True,
                          text=True, timeout=PATIENCE, check=False)


def with_input(display, *arguments):
    """With an input from which nothing comes: kmscube ends when it can read."""
    reader, writer = os.pipe()
    try:
        return run(display, *arguments, stdin=reader)
    finally:
        os.close(reader)
        os.close(writer)


def last_picture(display):
    need("kmscube")
    path = f"{display.folder}/last.png"
    ended = with_input(display, "run", "--mesa", display.mesa, "--screen-png", path, "--", "kmscube", "-c", "20")
    expect(ended.returncode == 0, ended.stderr)
    is_v3d(ended.stdout)
    expect_cube(path)
    # The status is the program's; where nothing was shown there is nothing to save.
    os.remove(path)
    ended = with_input(display, "run", "--mesa", display.mesa, "--screen-png", path, "--", "sh", "-c", "exit 7")
    expect(ended.returncode == 7, f"status {ended.returncode}")


def vulkan(display, program):
    """VK_KHR_display: the last or nearly last of 30 frames, each drawn 16 pixels further."""
    path = f"{display.folder}/vulkan.png"
    ended = run(display, "run", "--mesa", display.mesa, "--screen-png", path, "--", program, "30")
    expect(ended.returncode == 0 and "30 frames of 1920x1080" in ended.stdout, ended.stdout + ended.stderr)
    is_v3d(ended.stdout)
    width, height, pixel = read_picture(path)
    for place, colour in [((1, 1), (0, 0, 255)), ((3, 3), (255, 0, 0)), ((11, 3), (0, 255, 0))]:
        seen = pixel(place[0] * width // 16, place[1] * height // 8)
        expect(seen == colour, f"{seen} in place of {colour}")
    bar = [x for x in range(width) if pixel(x, height * 13 // 16) == (255, 255, 255)]
    expect(len(bar) == 16 and bar[0] in range(26 * 16, 30 * 16, 16), f"the bar is at {bar[:1]}")


def pictures(display):
    need("kmscube")
    display.start("kmscube", "-A")
    ended = run(display, "screen", "--png", f"{display.folder}/%02d.png", "--frames", "3")
    expect(ended.returncode == 0 and "3 pictures" in ended.stdout, ended.stdout + ended.stderr)
    for number in range(3):
        expect_cube(f"{display.folder}/{number:02}.png")
    for wrong in ["x%s.png"], ["x.png", "--frames", "2"]:
        ended = run(display, "screen", "--png", *wrong)
        expect(ended.returncode == 1 and "in the name" in ended.stderr or "for the number" in ended.stderr, ended.stderr)


def video(display):
    for program in "kmscube", "ffmpeg", "ffprobe":
        need(program)
    path = f"{display.folder}/cube.mp4"
    display.start("kmscube")
    ended = run(display, "screen", "--video", path, "--rate", "10", "--frames", "8")
    expect(ended.returncode == 0, ended.stderr)
    said = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-select_streams", "v", "-of", "csv=p=0",
                           "-show_entries", "stream=width,height,nb_read_frames", path], check=True,
                          capture_output=True, text=True, timeout=PATIENCE).stdout.strip()
    expect(said == "1920,1080,8", said)


def viewers(display, rounds=6):
    """Viewers that are killed at any moment, and more of them than may be."""
    need("kmscube")
    program = display.start("kmscube")
    run(display, "screen", "--png", f"{display.folder}/first.png")
    order = random.Random(20261124)
    for _ in range(rounds):
        viewer = subprocess.Popen([display.v3demu, "screen", "--png", f"{display.folder}/%d.png", "--frames", "100000"],
                                  env=display.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        display.running.append(viewer)
        time.sleep(order.uniform(0, 0.4))
        viewer.kill()
        viewer.wait()
    expect(program.poll() is None, "kmscube ended")
    program.kill()
    program.wait()
    deadline = time.monotonic() + PATIENCE
    while "0 open nodes" not in display.status() or "0 clients leaving" not in display.status():
        expect(time.monotonic() < deadline, display.status())
        time.sleep(0.2)
    is_v3d(display.output("kmscube", "-c", "5"))


def desktop(display):
    for program in "weston", "weston-simple-egl", "vkcube-wayland":
        need(program)
    path = f"{display.folder}/desktop.png"
    # The program that runs inside is over when its windows have been there for a while, whatever the machine.
    inside = "weston-simple-egl & one=$!; vkcube-wayland & sleep 6; kill $one $!; exit 5"
    ended = run(display, "desktop", "--mesa", display.mesa, "--mode", "1280x720", "--png", path, "--", "sh", "-c", inside)
    expect(ended.returncode == 5, f"status {ended.returncode}: {ended.stderr}")
    width, height, pixel = read_picture(path)
    expect((width, height) == (1280, 720), f"{width}x{height}")
    expect(len(colours(pixel, 0, 0, width, height)) > 8, "an empty desktop")
    blue = [1 for y in range(0, height, 8) for x in range(0, width, 8)
            if pixel(x, y)[2] > pixel(x, y)[0] + 30 and abs(pixel(x, y)[2] - pixel(x, y)[1]) < 30]
    expect(len(blue) > 30, "no cube of vkcube-wayland")  # what is printed on it
    ended = run(display, "desktop", "--mesa", display.mesa, "--mode", "1x1", "--png", path, "--", "true")
    expect(ended.returncode == 1 and "1x1" in ended.stderr, f"status {ended.returncode}: {ended.stderr}")


WITHOUT_X_SOCKET = """#!/bin/sh
# weston 10 whose socket for X programs is another user's
for word; do case $word in
  --log=*) log=${word#--log=} ;;
  --xwayland) echo "[00:00:00.000] failed to bind to /tmp/.X11-unix/X0: Permission denied" >>"$log"; kill -SEGV $$ ;;
esac; done
exec WESTON "$@"
"""


def desktop_without_x(display):
    """Where weston dies of the socket for X programs, the reason is told and the desktop has none."""
    for program in "weston", "weston-simple-egl", "Xwayland":
        need(program)
    os.mkdir(f"{display.folder}/bin")
    weston = f"{display.folder}/bin/weston"
    with open(weston, "w", encoding="utf-8") as file:
        file.write(WITHOUT_X_SOCKET.replace("WESTON", shutil.which("weston")))
    os.chmod(weston, 0o755)
    display.environment["PATH"] = f"{display.folder}/bin:{display.environment.get('PATH', os.environ['PATH'])}"
    path = f"{display.folder}/desktop.png"
    inside = "weston-simple-egl & sleep 3; kill $!; echo display=$DISPLAY; exit 5"
    ended = run(display, "desktop", "--mesa", display.mesa, "--png", path, "--", "sh", "-c", inside)
    expect(ended.returncode == 5, f"status {ended.returncode}: {ended.stderr}")
    expect("no X programs: weston failed to bind to /tmp/.X11-unix/X0: Permission denied" in ended.stderr, ended.stderr)
    expect("display=\n" in ended.stdout, ended.stdout)
    width, height, pixel = read_picture(path)
    expect(len(colours(pixel, 0, 0, width, height)) > 8, "an empty desktop")


def window(display):
    """Where a window would be seen by nobody, nothing is started."""
    for name in "DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER":
        display.environment.pop(name, None)
    for words in (["screen"], ["run", "--screen", "--mesa", display.mesa, "--", "echo", "started"],
                  ["desktop", "--mesa", display.mesa, "--", "echo", "started"]):
        ended = run(display, *words)
        expect(ended.returncode == 1 and "no window: " in ended.stderr, f"{words}: status {ended.returncode}: {ended.stderr}")
        expect("started" not in ended.stdout, f"{words} started its program")


TESTS = {test.__name__: test for test in (last_picture, vulkan, pictures, video, viewers, desktop, desktop_without_x, window)}

if __name__ == "__main__":
    sys.exit(main(TESTS))
