#!/usr/bin/env python3
"""Runs weston's DRM backend where there is no seat: neither logind nor a virtual terminal. It plays the part of weston-launch,
which opens devices for weston and passes them on.

  weston_seat.py WESTON [ARGUMENT...]

WESTON is started with WESTON_LAUNCHER_SOCK. It is told to have the seat at once, and never loses it.
Exit status: weston's; 127 it cannot be started.
"""
import array
import os
import socket
import struct
import subprocess
import sys
import threading

OPEN = 0        # what weston asks for
OPEN_REPLY = 3  # what it is told (weston_launcher_event)


def serve(launcher):
    """Answers weston until it is gone: a number, and with it a descriptor when the device could be opened."""
    while True:
        message = launcher.recv(4096)
        if not message:
            return
        (opcode,) = struct.unpack_from("=i", message)
        if opcode != OPEN:
            continue
        (flags,) = struct.unpack_from("=i", message, 4)
        path = message[8:].split(b"\0")[0]
        try:
            device = os.open(path, flags)
        except OSError:
            launcher.send(struct.pack("=ii", OPEN_REPLY, -1))
            continue
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [device]))
        launcher.sendmsg([struct.pack("=ii", OPEN_REPLY, 0)], [rights])
        os.close(device)


def main():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    terminal = os.open("/dev/null", os.O_RDWR)
    environment = {**os.environ, "WESTON_LAUNCHER_SOCK": str(theirs.fileno()), "WESTON_TTY_FD": str(terminal)}
    try:
        weston = subprocess.Popen(sys.argv[1:], env=environment, pass_fds=(theirs.fileno(), terminal))
    except OSError as error:
        print(f"weston_seat: {error}", file=sys.stderr)
        return 127
    theirs.close()
    threading.Thread(target=serve, args=(ours,), daemon=True).start()
    try:
        return weston.wait()
    except KeyboardInterrupt:
        weston.terminate()
        return weston.wait()


if __name__ == "__main__":
    sys.exit(main())
