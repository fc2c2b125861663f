"""What is on the screen, as whoever may look at it sees it: python3 screen.py under `v3demu run`, as root."""
import fcntl
import mmap
import os
import struct
import sys

CRTC = 32


def ioctl(node, number, size, data):
    argument = bytearray(data.ljust(size, b"\0"))
    fcntl.ioctl(node, 0xC0000000 | size << 16 | ord("d") << 8 | number, argument)
    return argument


def grab(node, fb):
    """The pixels of a framebuffer: width, height, pitch, and its memory."""
    got = ioctl(node, 0xCE, 104, struct.pack("<I", fb))  # GETFB2
    width, height = struct.unpack_from("<II", got, 4)
    (handle,) = struct.unpack_from("<I", got, 20)
    (pitch,) = struct.unpack_from("<I", got, 36)
    if handle == 0:
        raise PermissionError("only root sees other programs' framebuffers")
    (fd,) = struct.unpack_from("<i", ioctl(node, 0x2D, 12, struct.pack("<IIi", handle, os.O_CLOEXEC, -1)), 8)
    memory = mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ)
    os.close(fd)
    ioctl_close = struct.pack("<II", handle, 0)
    fcntl.ioctl(node, 0x40086409, ioctl_close)
    return width, height, pitch, memory


def planes(node):
    """Framebuffers that are shown, by plane."""
    fcntl.ioctl(node, 0x4010640D, struct.pack("<QQ", 2, 1))  # UNIVERSAL_PLANES
    shown = {}
    for plane in range(35, 53):
        got = ioctl(node, 0xB6, 32, struct.pack("<I", plane))
        _, crtc, fb = struct.unpack_from("<III", got)
        if crtc and fb:
            shown[plane] = fb
    return shown


def main():
    """One line for each plane: its id, width, height, and how many of 16 x 16 pixels of it differ in colour."""
    card = "/dev/dri/card1"
    node = os.open(card if os.path.exists(card) else "/dev/dri/card0", os.O_RDWR)  # one device for both on a Pi 0 to 3
    for plane, fb in planes(node).items():
        try:
            width, height, pitch, memory = grab(node, fb)
        except (OSError, PermissionError) as error:
            print("denied" if isinstance(error, PermissionError) else "gone")
            continue
        size = 4 if pitch >= 4 * width else 2
        colours = {memory[y * pitch + size * x:y * pitch + size * x + min(size, 3)]
                   for y in range(height // 32, height, max(1, height // 16))
                   for x in range(width // 32, width, max(1, width // 16))}
        print(plane, width, height, len(colours))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
