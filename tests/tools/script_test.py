#!/usr/bin/env python3
"""Commands that are programs in Python, and what ends them.

usage: script_test.py V3DEMU [unittest options]
"""
import errno
import os
import subprocess
import sys
import tempfile
import time
import unittest

V3DEMU = os.path.abspath(sys.argv.pop(1))


class Script(unittest.TestCase):
    def test_a_signal_to_the_command_leaves_nothing_that_goes_on(self):
        with tempfile.TemporaryDirectory() as tree:
            os.makedirs(os.path.join(tree, "src/broadcom/ci"))
            jobs = os.path.join(tree, "src/broadcom/ci/gitlab-ci-inc.yml")
            os.mkfifo(jobs)
            with subprocess.Popen([V3DEMU, "ci", "--list", "--mesa", tree], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as command:
                pipe = self.writing_end(jobs, command)
                command.terminate()
                message = command.communicate(timeout=100)[1]
        self.assertEqual((command.returncode, message), (143, "v3demu ci: ended by SIGTERM\n"))
        with self.assertRaises(BrokenPipeError):  # nobody reads it any more
            os.write(pipe, b"x")
        os.close(pipe)

    def writing_end(self, path, command):
        """Of a pipe, once somebody reads it."""
        while command.poll() is None:
            try:
                return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                self.assertEqual(error.errno, errno.ENXIO)
                time.sleep(0.01)
        return self.fail(command.communicate()[1])


if __name__ == "__main__":
    unittest.main()
