"""What libudev finds of the GPU, and whether an inotify watcher sees what happens to its nodes."""
import ctypes
import os
import struct

udev = ctypes.CDLL("libudev.so.1")
for name in ("udev_new", "udev_enumerate_new", "udev_enumerate_get_list_entry", "udev_list_entry_get_next",
             "udev_device_new_from_syspath", "udev_device_get_parent"):
    getattr(udev, name).restype = ctypes.c_void_p
for name in ("udev_list_entry_get_name", "udev_device_get_devnode", "udev_device_get_sysname", "udev_device_get_driver"):
    getattr(udev, name).restype = ctypes.c_char_p
udev.udev_device_get_devnum.restype = ctypes.c_ulong


def text(function, device):
    value = function(ctypes.c_void_p(device))
    return value.decode() if value else "-"


context = ctypes.c_void_p(udev.udev_new())
found = ctypes.c_void_p(udev.udev_enumerate_new(context))
udev.udev_enumerate_add_match_subsystem(found, b"drm")
udev.udev_enumerate_scan_devices(found)
entry = udev.udev_enumerate_get_list_entry(found)
while entry:
    path = udev.udev_list_entry_get_name(ctypes.c_void_p(entry))
    device = udev.udev_device_new_from_syspath(context, path)
    number = udev.udev_device_get_devnum(ctypes.c_void_p(device))
    uevent = os.path.join(path.decode(), "device", "uevent")
    driver = "-"
    if os.path.exists(uevent):
        with open(uevent, encoding="ascii") as file:
            driver = dict(line.split("=", 1) for line in file.read().split()).get("DRIVER", "-")
    print(text(udev.udev_device_get_sysname, device), text(udev.udev_device_get_devnode, device),
          f"{os.major(number)}:{os.minor(number)}", driver)
    entry = udev.udev_list_entry_get_next(ctypes.c_void_p(entry))

libc = ctypes.CDLL(None, use_errno=True)
IN_OPEN, IN_CLOSE_NOWRITE = 0x20, 0x10
watch = libc.inotify_init1(os.O_NONBLOCK)
assert watch >= 0 and libc.inotify_add_watch(watch, b"/dev/dri", IN_OPEN | IN_CLOSE_NOWRITE) >= 0, os.strerror(ctypes.get_errno())
os.close(os.open("/dev/dri/renderD128", os.O_PATH))  # no opening
assert libc.inotify_add_watch(watch, b"/sys/class/drm/renderD128", IN_OPEN) >= 0
with open("/sys/class/drm/renderD128/uevent", encoding="ascii") as file:
    file.read()
data = os.read(watch, 4096)
_, mask, _, length = struct.unpack_from("iIII", data)
assert mask & IN_OPEN and data[16:16 + length].rstrip(b"\0") == b"uevent", data
print("watched:", "renderD128")
