"""One program of programs.py on the device, under v3demu run or capture.

usage: launch.py V3DEMU PROGRAM ARGUMENTS   (a JSON object: arguments of the program's function)
"""
import array
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tools", "scripts"), os.path.join(ROOT, "tests", "e2e", "qpu_programs")]
import v3d_drm  # pylint: disable=wrong-import-position
from calibrate_parts import programs  # pylint: disable=wrong-import-position

CODE_BYTES = 1 << 16


def assembled(v3demu, text, version):
    done = subprocess.run([v3demu, "asm", "--chip", f"{version // 10}.{version % 10}", "--format", "bin", "-"],
                          input=text.encode(), capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr.decode())
    return done.stdout


def run(device, program, v3demu):
    """What is wrong with its results, "" if nothing."""
    buffers = [device.bo(-(-size // 4096) * 4096) for size in program.sizes]
    code, uniforms = device.bo(CODE_BYTES), device.bo(4096)
    words = array.array("I", assembled(v3demu, program.text, device.version))
    code.words[:len(words)] = memoryview(words)
    for at, value in enumerate(program.uniforms):
        if isinstance(value, programs.Address):
            bo = uniforms if value.buffer == programs.UNIFORMS else buffers[value.buffer]
            value = bo.address + value.offset
        uniforms.words[at] = value
    memory = [bo.words.cast("B")[:size] for bo, size in zip(buffers, program.sizes)]
    if program.fill:
        program.fill(memory)
    device.submit_csd(v3d_drm.csd_config(device, code.address, uniforms.address, **program.dispatch), [code, uniforms, *buffers])
    device.wait(code, 600)
    problem = program.problem(memory) if program.problem else ""
    for view in memory:
        view.release()
    return problem


def main():
    v3demu, name, arguments = sys.argv[1:]
    device = v3d_drm.Device(v3d_drm.RENDER)
    program = getattr(programs, name)(device.version, **json.loads(arguments))
    problem = run(device, program, v3demu)
    if problem:
        sys.exit(f"{name}: {problem}")
    device.close()


if __name__ == "__main__":
    main()
