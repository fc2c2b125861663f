"""Which board the daemon is: attacks are for one or several."""
import os

DEFAULT = "rpi5"
V3D42 = "rpi4"
VIDEOCORE = "rpi3"
ALL = frozenset((DEFAULT, V3D42, VIDEOCORE))


def name():
    return os.environ.get("V3DEMU_DEVICE", DEFAULT)


def is_videocore():
    return name() == VIDEOCORE
