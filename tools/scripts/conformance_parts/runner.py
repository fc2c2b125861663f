"""The runner brings every case to a result, whatever its process does."""
import concurrent.futures
import json
import os
import sys
import tempfile
import threading
import time

from new_file import check_regular
from . import ending
from .lists import Result
from .shares import Shares


class Journal:
    """Results on disk as they come, a line of JSON each, so that an interrupted run can go on."""

    def __init__(self, path):
        self.path, self.found = path, []
        if not path or not os.path.exists(path):
            return
        whole = 0
        with open(path, "rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break  # the run was killed here
                self.found.append(Result(*json.loads(line)))
                whole += len(line)
        os.truncate(path, whole)

    def add(self, results):
        if self.path:
            check_regular(self.path)
            with open(self.path, "a", encoding="utf-8") as file:
                file.writelines(json.dumps(result) + "\n" for result in results)


class Runner:
    """Runs every case to a result: shares of them in parallel, each resumed after the case that ended its process."""

    def __init__(self, suite, lists, options):
        self.journal = Journal(options.journal)
        self.suite, self.lists, self.retries, self.jobs = suite, lists, options.retries, options.jobs
        self.batch = min(options.batch, suite.batch_limit)
        self.lock = threading.Lock()
        self.done = 0
        self.failed = False  # a worker has, and the others are to end
        self.progress = sys.stderr.isatty() or options.progress

    def run(self, cases):
        """Results of the cases, and of their subtests."""
        results = {result.case: result for result in self.journal.found}
        cases = sorted(case for case in cases if case not in results)  # neighbours share groups, which each process has to make
        shares = Shares(cases, self.batch, self.jobs)
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            workers = [pool.submit(self._work, shares, len(cases)) for _ in range(self.jobs)]
            # Not without end: a signal may come to another thread, which wakes nobody, and handlers run in this one alone.
            while concurrent.futures.wait(workers, timeout=0.5).not_done:
                pass
            for worker in workers:
                results.update((result.case, result) for result in worker.result())
        return results

    def _work(self, shares, total):
        """Results of one share after the other."""
        results = []
        while share := shares.take(lambda: ending.is_told() or self.failed):
            left = []
            try:
                new, left = self._finish(share, total)
                results += new
            except BaseException:
                self.failed = True
                raise
            finally:
                shares.end(share, left)
        return results

    def _finish(self, share, total):
        """Results of a share, whatever ends the processes that run it, and the cases that others are to run."""
        results, left = [], list(share.cases)
        while left and not ending.is_told() and not share.is_wanted.is_set():
            new, why = self._attempt(left, share.goes_on)
            results += new
            if ending.is_told():
                break
            reported = {result.case for result in new}
            still = [case for case in left if case not in reported]
            if len(still) == len(left) and not share.is_wanted.is_set():  # no case of these was even begun
                results += [Result(case, "Missing", why, 0, None) for case in left]
                still = []
            with self.lock:
                self.done += len(left) - len(still)
                if self.progress:
                    print(f"{time.strftime('%H:%M:%S')} {self.done}/{total}", file=sys.stderr, flush=True)
            left = still
        results = [self._settle(result) for result in results]
        if ending.is_told():  # what was not run again may be no more than that end
            results = [result for result in results if not self.lists.doubtful(result)]
        with self.lock:
            self.journal.add(result for result in results if result.status != "Missing")  # which was not even begun
        return results, left

    def _attempt(self, cases, goes_on=lambda: True):
        with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
            return self.suite.run(cases, scratch, goes_on)

    def _settle(self, result):
        """What is not as listed is run again, alone; one that then differs is a flake."""
        if result.status == "Missing" or result.detail == "subtest" or not self.lists.doubtful(result):
            return result
        for _ in range(self.retries):
            again = [new for new in self._attempt([result.case])[0] if new.case == result.case]
            if again and again[0].status != result.status:
                return result._replace(status="Flake", detail=f"{result.status}, then {again[0].status}: {result.detail}")
        return result
