"""The display node before anybody has set a mode, /dev/fb0, and what sysfs says of both: one word, ok or what is wrong."""
import errno
import fcntl
import mmap
import os
import stat
import struct
import sys

VIRTUAL = "/sys/class/graphics/fb0/"


def check(condition, what):
    if not condition:
        sys.exit(f"WRONG: {what}")


def drm(node, number, argument):
    fcntl.ioctl(node, 0xC0000000 | len(argument) << 16 | ord("d") << 8 | number, argument)
    return argument


def read(path):
    with open(path, "rb") as file:
        return file.read()


def framebuffer():
    fd = os.open("/dev/fb0", os.O_RDWR)
    check(stat.S_ISCHR(os.fstat(fd).st_mode) and os.stat("/dev/fb0").st_rdev == os.makedev(29, 0), "no device")
    fixed, screen = bytearray(80), bytearray(160)
    fcntl.ioctl(fd, 0x4602, fixed)
    fcntl.ioctl(fd, 0x4600, screen)
    check(fixed[:8] == b"vc4drmfb" and struct.unpack_from("<I", fixed, 48)[0] == 3840, "fixed")
    check(struct.unpack_from("<IIII", screen) == (1920, 1080, 1920, 1080), "screen")
    check(struct.unpack_from("<I", screen, 24)[0] == 16, "bits")
    with mmap.mmap(fd, 3840 * 1080) as memory:
        memory[:4] = b"\xff\xff\x00\xf8"
        check(os.pread(fd, 4, 0) == b"\xff\xff\x00\xf8", "memory")
    os.pwrite(fd, b"\0\0\0\0", 0)
    fcntl.ioctl(fd, 0x4606, screen)  # PAN, without a master
    fcntl.ioctl(fd, 0x4601, screen)
    fcntl.ioctl(fd, 0x4611, 0)
    check(read(VIRTUAL + "virtual_size") == b"1920,1080\n" and read(VIRTUAL + "name") == b"vc4drmfb\n", "sysfs")
    if os.geteuid() == 0:
        os.chmod("/dev/fb0", 0o600)
        check(os.stat("/dev/fb0").st_mode & 0o777 == 0o600, "chmod")
        os.chmod("/dev/fb0", 0o660)
    try:
        os.chmod(VIRTUAL + "name", 0o600)
        check(False, "chmod of sysfs")
    except PermissionError:
        pass
    check("fb0" in os.listdir("/sys/class/graphics") and "fb0" in os.listdir("/dev"), "listings")
    return fd, screen


def connector(node, number):
    """encoder_id, connection."""
    return struct.unpack_from("<I12xI", drm(node, 0xA7, bytearray(struct.pack("<48xI28x", number))), 44)


def main():
    fd, screen = framebuffer()
    node = os.open("/dev/dri/card1", os.O_RDWR)
    encoder = connector(node, 34)[0]
    check(encoder != 0, "no encoder")
    crtc = struct.unpack_from("<I", drm(node, 0xA6, bytearray(struct.pack("<I16x", encoder))), 8)[0]
    check(struct.unpack_from("<I", drm(node, 0xA1, bytearray(struct.pack("<12xI88x", crtc))), 32)[0] == 1, "no mode")
    try:
        fcntl.ioctl(fd, 0x4606, screen)
        check(False, "PAN under a master")
    except OSError as error:
        check(error.errno == errno.EBUSY, error)
    first, second = "/sys/class/drm/card1-HDMI-A-1/", "/sys/class/drm/card1-HDMI-A-2/"
    check(read(first + "status") == b"connected\n" and read(first + "enabled") == b"enabled\n", "first")
    check(read(first + "modes").startswith(b"1920x1080\n1280x720\n") and len(read(first + "edid")) == 256, "monitor")
    check(int(read(first + "connector_id")) == 34 and int(read(second + "connector_id")) == 54, "ids")
    monitor = connector(node, 54)[1] == 1
    check(read(second + "status") == (b"connected\n" if monitor else b"disconnected\n"), "second")
    check((read(second + "edid") == read(first + "edid")) == monitor, "edid")
    check(read(second + "enabled") == (b"enabled\n" if monitor else b"disabled\n"), "the console is on every monitor")
    writebacks = [name for name in os.listdir("/sys/class/drm") if name.startswith("card1-Writeback-")]
    check(len(writebacks) == 2 and read(f"/sys/class/drm/{writebacks[0]}/status") == b"unknown\n", writebacks)
    print("ok", "monitor" if monitor else "empty")


if __name__ == "__main__":
    main()
