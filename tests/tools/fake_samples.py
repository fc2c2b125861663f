#!/usr/bin/env python3
"""Stands in for v3demu, vulkan_samples and gl_samples, by the name under which it is called.

As v3demu it runs the command as "on the emulated GPU". As samples it draws a pattern; on the emulated GPU scenes go
wrong as $FAKE_PICTURES says: SCENE=blank|shifted|rounded|small|cut|none|fails|elsewhere, separated by commas."""
import os
import sys

SCENES = ("shadow", "normal_map", "normal_map_trilinear", "instancing", "msaa")


def color(x, y):
    return (255 if (x // 8 + y // 8) % 2 else 40, 3 * x % 256, 5 * y % 256)


def draw(wrong, width, height):
    if wrong == "small":
        width -= 1
    shift = 3 if wrong == "shifted" else 0
    pixels = [(9, 9, 9) if wrong == "blank" else color(x + shift, y) for y in range(height) for x in range(width)]
    if wrong == "rounded":  # by one step in one channel, and in one pixel wrong
        pixels = [(min(255, r + 1), g, b) for r, g, b in pixels]
        pixels[0] = (0, 0, 0)
    data = b"P6\n%d %d\n255\n" % (width, height) + bytes(value for pixel in pixels for value in pixel)
    return data[:-5] if wrong == "cut" else data


def main():
    name = os.path.basename(sys.argv[0])
    if name == "v3demu":
        command = sys.argv[sys.argv.index("--") + 1:]
        os.execve(command[0], command, dict(os.environ, FAKE_EMULATED="1"))
    if sys.argv[1:] == ["--list"]:
        print("\n".join(SCENES))
        return
    options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    emulated = "FAKE_EMULATED" in os.environ
    wrong = dict(item.split("=") for item in os.environ.get("FAKE_PICTURES", "").split(",") if item)
    wrong = wrong.get(options["--scene"], "") if emulated else ""
    print("V3D 7.1.7.0" if emulated and wrong != "elsewhere" else "llvmpipe (LLVM 15.0.6, 256 bits)")
    if wrong == "fails":
        sys.exit("it failed")
    if wrong != "none":
        with open(options["--output"], "wb") as file:
            file.write(draw(wrong, *map(int, options["--size"].split("x"))))


if __name__ == "__main__":
    main()
