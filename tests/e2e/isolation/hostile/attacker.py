#!/usr/bin/env python3
"""Runs one attack of the folder on the daemon of $V3DEMU_SOCKET.

usage: attacker.py NAME SEED SECONDS COUNTERS       exit status 0: it got the answers that a hostile client may get
"""
import os
import sys
import traceback

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from hostile import assault, catalogue  # pylint: disable=wrong-import-position


def main():
    name, seed, seconds, counters = sys.argv[1:]
    attacker = os.getpid()
    try:
        catalogue.ATTACKS[name].run(assault.Assault(int(seed), float(seconds), assault.Counters(counters)))
    except assault.Unexpected as problem:
        print(problem, file=sys.stderr)
        return 1
    except BaseException:  # pylint: disable=broad-except
        if os.getpid() != attacker:
            os._exit(1)  # of a fork that went astray
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # without the destructors of what was hoarded
