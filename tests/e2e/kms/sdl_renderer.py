#!/usr/bin/env python3
"""A program of SDL 2's renderer, by ctypes: rectangles, lines, a streamed texture that is scaled, turned, tinted and blended, a clip and a
target texture. Reads back what it has drawn and compares pixels with what the calls mean.

    sdl_renderer.py VIDEO_DRIVER        kmsdrm, x11, wayland
"""
import ctypes
import os
import sys

os.environ["SDL_VIDEODRIVER"] = sys.argv[1]
os.environ["SDL_RENDER_DRIVER"] = "opengles2"
sdl = ctypes.CDLL("libSDL2-2.0.so.0")
for name in ("CreateWindow", "CreateRenderer", "CreateTexture"):
    getattr(sdl, "SDL_" + name).restype = ctypes.c_void_p
sdl.SDL_GetError.restype = sdl.SDL_GetCurrentVideoDriver.restype = ctypes.c_char_p
Four = ctypes.c_int * 4  # SDL_Rect


class Info(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("flags", ctypes.c_uint32), ("count", ctypes.c_uint32), ("formats", ctypes.c_uint32 * 16),
                ("max_width", ctypes.c_int), ("max_height", ctypes.c_int)]


def check(good, what):
    if not good:
        sys.exit(f"{what}: {(sdl.SDL_GetError() or b'').decode()}")


WIDTH, HEIGHT = 640, 480
ARGB, STREAMING, TARGET, BLEND, ACCELERATED, TO_TARGET = 0x16362004, 1, 2, 1, 2, 8
check(sdl.SDL_Init(0x20) == 0, "SDL_Init")
window = sdl.SDL_CreateWindow(b"renderer", 0, 0, WIDTH, HEIGHT, 4)
check(window, "SDL_CreateWindow")
renderer = ctypes.c_void_p(sdl.SDL_CreateRenderer(ctypes.c_void_p(window), -1, ACCELERATED | TO_TARGET))
check(renderer, "SDL_CreateRenderer")
info = Info()
check(sdl.SDL_GetRendererInfo(renderer, ctypes.byref(info)) == 0 and info.name == b"opengles2", "the renderer is another one")


def color(red, green, blue, alpha=255):
    sdl.SDL_SetRenderDrawColor(renderer, red, green, blue, alpha)


def fill(*rectangle):
    sdl.SDL_RenderFillRect(renderer, Four(*rectangle))


def texture(access, width, height):
    made = ctypes.c_void_p(sdl.SDL_CreateTexture(renderer, ARGB, access, width, height))
    check(made, "SDL_CreateTexture")
    return made


# Four texels: red, green, blue, and white at half.
four = texture(STREAMING, 2, 2)
texels = (ctypes.c_uint32 * 4)(0xffff0000, 0xff00ff00, 0xff0000ff, 0x80ffffff)
sdl.SDL_UpdateTexture(four, None, texels, 8)
sdl.SDL_SetTextureBlendMode(four, BLEND)
target = texture(TARGET, 64, 64)


def draw():
    sdl.SDL_SetRenderTarget(renderer, target)
    color(10, 20, 30)
    sdl.SDL_RenderClear(renderer)
    color(200, 100, 50)
    fill(16, 16, 32, 32)
    sdl.SDL_SetRenderTarget(renderer, None)
    color(0, 0, 64)
    sdl.SDL_RenderClear(renderer)
    color(255, 255, 0)
    fill(20, 20, 100, 60)
    color(255, 0, 255)
    sdl.SDL_RenderDrawLine(renderer, 20, 100, 119, 100)
    sdl.SDL_SetRenderDrawBlendMode(renderer, BLEND)
    color(255, 255, 255, 128)
    fill(60, 40, 100, 20)
    sdl.SDL_SetRenderDrawBlendMode(renderer, 0)
    sdl.SDL_RenderCopy(renderer, four, None, Four(200, 20, 80, 80))
    sdl.SDL_SetTextureColorMod(four, 128, 128, 128)
    sdl.SDL_RenderCopyEx(renderer, four, None, Four(300, 20, 80, 80), ctypes.c_double(90), None, 0)
    sdl.SDL_SetTextureColorMod(four, 255, 255, 255)
    sdl.SDL_RenderSetClipRect(renderer, Four(400, 20, 40, 40))
    color(0, 255, 255)
    fill(400, 20, 100, 100)
    sdl.SDL_RenderSetClipRect(renderer, None)
    sdl.SDL_RenderCopy(renderer, target, None, Four(20, 200, 128, 128))


EXPECTED = {  # x, y: red, green, blue
    (5, 5): (0, 0, 64), (25, 25): (255, 255, 0), (119, 79): (255, 255, 0), (120, 80): (0, 0, 64),
    (70, 100): (255, 0, 255), (70, 101): (0, 0, 64),
    (70, 50): (255, 255, 128), (140, 50): (128, 128, 160),
    (220, 40): (255, 0, 0), (260, 40): (0, 255, 0), (220, 80): (0, 0, 255), (260, 80): (128, 128, 160),
    (320, 40): (0, 0, 128), (360, 40): (128, 0, 0), (360, 80): (0, 128, 0), (320, 80): (64, 64, 96),
    (439, 59): (0, 255, 255), (440, 59): (0, 0, 64), (439, 60): (0, 0, 64),
    (30, 210): (10, 20, 30), (84, 264): (200, 100, 50), (140, 320): (10, 20, 30), (150, 264): (0, 0, 64),
}
for frame in range(3):
    draw()
    pixels = (ctypes.c_uint32 * (WIDTH * HEIGHT))()
    check(sdl.SDL_RenderReadPixels(renderer, Four(0, 0, WIDTH, HEIGHT), ARGB, pixels, WIDTH * 4) == 0, "SDL_RenderReadPixels")
    for (x, y), right in EXPECTED.items():
        got = tuple(pixels[y * WIDTH + x] >> shift & 255 for shift in (16, 8, 0))
        if max(abs(a - b) for a, b in zip(got, right)) > 2:
            sys.exit(f"frame {frame}: pixel {x}, {y} is {got} instead of {right}")
    sdl.SDL_RenderPresent(renderer)
print(f"{sdl.SDL_GetCurrentVideoDriver().decode()}, {info.name.decode()}: as it is to be")
