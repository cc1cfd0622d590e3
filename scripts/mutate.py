"""Promises and their tests: each promise is broken on purpose, and a test must fail.

A mutation is a small change of text: in ``file`` the only place that reads ``old`` becomes ``new``.
Whoever changes such a place changes the mutation with it; one that no longer applies is an error.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 300  # s
LEFT_OUT = shutil.ignore_patterns(".venv", ".git", ".*_cache", "__pycache__", "site", "results")


class Mutation(NamedTuple):
    """One promise broken; ``tests`` are arguments of pytest."""

    name: str
    file: str
    old: str
    new: str
    tests: str


DISK = "tests/test_disk.py"
WRITER = "tests/store/test_store_writer.py"
HOSTILE = "tests/store/test_store_hostile.py"
CACHE = "tests/batch/test_batch_cache.py"
JOURNAL = "tests/duel/test_duel_journal.py"
ENGINE = "tests/duel/test_duel_engine.py"
MESH = "tests/mesh/test_mesh_file.py"
PAGE = "tests/web/test_web_fuzz.py"

MUTATIONS = [
    # What is on the disk when.
    Mutation("blocks and cache entries not synced", "files.py",
             "            os.fsync(file.fileno())\n        os.replace(draft",
             "        os.replace(draft",
             f"{DISK} {WRITER} -k 'CacheEntry or reaches_the_disk'"),
    Mutation("names of blocks not synced", "store/blocks.py",
             "            fsync_folder(self._folder)", "            pass",
             f"{WRITER} -k reaches_the_disk"),
    Mutation("name of a cache entry not synced", "batch/cache.py",
             "    fsync_folder(folder)\n", "", f"{DISK} -k CacheEntry"),
    Mutation("datasets not synced before the digests", "store/write.py",
             'disk.sync()\n                progress("to disk"', 'progress("to disk"',
             f"{WRITER} -k reach"),
    Mutation("store not synced before its status", "store/write.py",
             "disk.sync()\n                file.attrs.modify", "file.attrs.modify",
             f"{WRITER} -k reach"),
    Mutation("store not synced after its status", "store/write.py",
             "            disk.sync()\n    folder.publish()", "    folder.publish()",
             f"{WRITER} {DISK} -k 'reach or (crash and StoreByForce)'"),
    Mutation("status complete from the start", "store/write.py",
             "layout.STATUS_BUILDING\n", "layout.STATUS_COMPLETE\n", f"{WRITER} -k reach"),
    Mutation("name of the store not synced", "store/work.py",
             "            fsync_folder(self.output.parent)\n", "",
             f"{DISK} -k 'crash and StoreInFiles'"),
    Mutation("outputs not synced", "files.py",
             "                os.fsync(opened.fileno())", "                pass",
             f"{DISK} -k 'crash and (MeshByForce or Exports or NewSession)'"),
    Mutation("names of outputs and of a new journal not synced", "files.py",
             "        fsync_folder(target.parent)\n", "",
             f"{DISK} -k 'crash and (Exports or NewSession)'"),
    Mutation("an answer not synced", "duel/journal.py",
             "            os.fsync(self._descriptor)\n", "", f"{DISK} -k 'crash and NewSession'"),
    Mutation("an answer counts before it is kept", "duel/engine.py",
             "            if self._keep is not None:\n                self._keep(event)\n"
             "            kept = True\n            self._listed(event)",
             "            self._listed(event)\n            if self._keep is not None:\n"
             "                self._keep(event)\n            kept = True",
             f"{JOURNAL} {DISK} -k 'failed_write or TornSession or interrupted'"),
    # Errors.
    Mutation("errors of HDF5's writes passed over", "files.py",
             "        self.require()\n        os.fsync", "        os.fsync",
             f"{WRITER} {DISK} -k 'running_out or (failed and StoreByForce)'"),
    Mutation("errors of the last pieces passed over", "store/write.py",
             "            for job in waiting:\n                job.result()\n        return",
             "        return", f"{WRITER} -k not_lost"),
    Mutation("errors of other pieces passed over", "store/write.py",
             "                for job in waiting:\n                    job.result()\n",
             "", f"{WRITER} -k not_lost"),
    Mutation("an error of an fsync passed over", "store/work.py",
             "            fsync_folder(self.output.parent)\n",
             "            try:\n                fsync_folder(self.output.parent)\n"
             "            except OSError:\n                pass\n",
             f"{DISK} -k 'failed and StoreByForce and once'"),
    Mutation("a torn line cut without a word on errors", "duel/journal.py",
             "            with self._closed_on_failure():\n                os.ftruncate",
             "            if True:\n                os.ftruncate", f"{DISK} -k TornSession"),
    Mutation("a failed answer leaves the journal open", "duel/journal.py",
             "        except BaseException as error:\n            self.close()\n",
             "        except BaseException as error:\n", f"{JOURNAL} {DISK} -k 'failed_write'"),
    Mutation("no look at free space", "store/write.py", "    if need > free:", "    if False:",
             f"{WRITER} -k too_small"),
    # Nothing else is touched.
    Mutation("--force removes the old store first", "store/work.py",
             "                os.replace(self.draft, self.output)",
             "                self.output.unlink(missing_ok=True)\n"
             "                os.replace(self.draft, self.output)",
             f"{DISK} -k 'crash and StoreByForce'"),
    Mutation("a name taken meanwhile is overwritten", "store/work.py",
             "os.link(self.draft, self.output)", "os.replace(self.draft, self.output)",
             f"{WRITER} -k meanwhile"),
    Mutation("any folder is a work folder", "store/work.py",
             "            return False\n        mark", "            pass\n        mark",
             f"{WRITER} -k our_mark"),
    Mutation("folders without the mark are work folders", "store/work.py",
             "return marked or not", "return True or not", f"{WRITER} -k our_mark"),
    Mutation("everything in a work folder is removed", "store/work.py",
             'OURS = ("*.rows", "*.new", "store.h5")', 'OURS = ("*",)',
             f"{WRITER} -k 'of_others_in'"),
    Mutation("no lock on the work folder", "store/work.py",
             'self._lock = FileLock(self.path / LOCK, timeout=0)',
             'self._lock = FileLock(self.path / f"{os.urandom(4).hex()}.new", timeout=0)',
             f"{WRITER} -k 'second_writer'"),
    Mutation("drafts of HDF5 follow links", "files.py", 'super().__init__(path, "x+")',
             'super().__init__(path, "w+")', f"{WRITER} -k new_file"),
    Mutation("existing outputs replaced without --force", "files.py",
             "if os.path.lexists(target) and not force:", "if False and not force:",
             f"{MESH} tests/export -k 'existing_file or overwritten or link'"),
    Mutation("inputs replaced", "files.py",
             "target.exists() and file.exists() and target.samefile(file)", "False",
             "tests/export tests/simulate/test_simulate_cli.py -k 'never_overwritten or by_force'"),
    Mutation("outputs written in place", "files.py",
             "        yield Path(folder) / target.name\n", "        yield target\n",
             f"{DISK} -k 'crash and Exports'"),
    Mutation("simulations replace files", "cli/simulate.py",
             "            refuse_existing(path,", "            dict(path=path,",
             "tests/simulate/test_simulate_cli.py -k by_force"),
    Mutation("a file beside a journal overwritten", "duel/journal.py",
             "if _recorded_lines(self.path) is not None:", "if True:",
             f"{JOURNAL} -k not_ours"),
    Mutation("no lock on a journal", "duel/journal.py",
             "        lock.acquire()\n    except Timeout", "        pass\n    except Timeout",
             f"{JOURNAL} -k second_writer"),
    # What a trial and two processes share with others.
    Mutation("trials pass over require_positive", "duel/_kernels.py",
             "tau = tau if (log_near[k] <= 0.0) & (log_far[k] <= 0.0) else 0.0", "tau = tau",
             "tests/simulate/test_simulate_trials.py -k agree_over_all_options"),
    Mutation("an entry that another process removed ends a batch", "batch/cache.py",
             "        with suppress(OSError):\n            status = file.stat()",
             "        if True:\n            status = file.stat()", f"{CACHE} -k same_time"),
    # What is believed.
    Mutation("a line's check does not cover the line before", "duel/journal.py",
             "hashlib.sha256((before + body)", "hashlib.sha256((body)", f"{JOURNAL} -k covers"),
    Mutation("a line's check not compared", "duel/journal.py",
             "if check != _digest(before, body):", "if False:", f"{JOURNAL} -k 'edited or covers'"),
    Mutation("lines cut off at the end not missed", "duel/journal.py",
             "if content.lines < (recorded or 0):", "if False:", f"{JOURNAL} -k cut_off"),
    Mutation("changes of a journal by others not seen", "duel/journal.py",
             "if not same or own.st_size", "if False and own.st_size", f"{JOURNAL} -k outside"),
    Mutation("any store goes with a journal", "duel/session.py",
             "if not belongs(store, source):", "if False:", f"{JOURNAL} -k another_store"),
    Mutation("stores agree to 1e-3", "duel/origin.py", "ROUNDING = 1e-6", "ROUNDING = 1e-3",
             f"{JOURNAL} -k computed_again"),
    Mutation("polarities need not agree", "duel/origin.py",
             'if name not in ("hash", "name")', 'if name not in ("hash", "name", "polarity")',
             f"{JOURNAL} -k computed_again"),
    Mutation("names of contacts need not agree", "duel/origin.py",
             'if name not in ("hash", "name")', 'if name not in ("hash", "name", "contacts")',
             f"{JOURNAL} -k computed_again"),
    Mutation("a store computed again is another", "duel/origin.py",
             'if kept.get("hash") == found["hash"]:\n        return True',
             'if kept.get("hash") != found["hash"]:\n        return False',
             f"{JOURNAL} -k computed_again"),
    Mutation("thresholds of neighbourhoods need not agree", "duel/origin.py",
             'if kept.get("neighbourhoods") not in (None, found.get("neighbourhoods")):',
             "if False:", f"{JOURNAL} -k threshold"),
    Mutation("digests not compared", "store/file.py",
             "if layout.digest_array(layout.BY_PATH[name], array) != self.digests.get(name):",
             "if False:", f"{HOSTILE} -k not_what_was_written"),
    Mutation("unfinished stores opened", "store/file.py",
             "if not isinstance(status, str) or status != layout.STATUS_COMPLETE:", "if False:",
             f"{HOSTILE} -k unfinished"),
    Mutation("blank rows served", "store/reader.py",
             "r.max() <= 1.0 and (r[own, first + own] == 1.0).all()", "r.max() <= 1.0",
             f"{HOSTILE} -k blank"),
    Mutation("neighbours at the threshold served", "store/reader.py",
             "elif not (r.min() > self.threshold and r.max() <= 1.0):", "elif False:",
             f"{HOSTILE} -k 'blank'"),
    Mutation("neighbours in any order served", "store/reader.py",
             "ascending = in_range and (indices[1:] > indices[:-1]).all()", "ascending = in_range",
             f"{HOSTILE} -k 'blank or ascend'"),
    Mutation("neighbours out of range served", "store/reader.py",
             "in_range = indices[0] >= 0 and indices[-1] < len(self)", "in_range = True",
             f"{HOSTILE} -k bounds"),
    Mutation("links out of a store followed", "store/file.py",
             ".type != h5py.h5l.TYPE_HARD", ".type == -1", f"{HOSTILE} -k links"),
    Mutation("digest of a cache entry not compared", "batch/cache.py",
             "if content[-32:] != _digest(key, content[:-32]):", "if False:",
             f"{CACHE} -k 'changed_byte or poisoned or another'"),
    Mutation("cache entries of others believed", "batch/cache.py",
             "status.st_uid != os.geteuid() or ", "", f"{CACHE} -k another_user"),
    Mutation("cache entries that others may write believed", "batch/cache.py",
             " or status.st_mode & 0o022", "", f"{CACHE} -k may_write"),
    Mutation("checksum of a mesh not compared", "mesh/fcmesh.py",
             "if wanted not in (None, hashlib.sha256(body).hexdigest()):", "if False:",
             f"{MESH} -k checksum"),
    Mutation("hash of a mesh not compared", "mesh/fcmesh.py", "if mesh.hash != digest:",
             "if False:", MESH),
    Mutation("files without checksum read in this process", "mesh/fcmesh.py",
             "    if not (is_sealed or is_listed):\n        _read_apart(source)\n", "",
             f"{MESH} -k hangs"),
    # What belongs together.
    *(
        Mutation(f"cache key without {what}", "batch/fields.py", old, "", f"{CACHE} -k physics")
        for what, old in {
            "conductivities": '        "tissues": {name: t.principal_S_per_m for name, t in '
                              "sorted(model.tissues.items())},\n",
            "contact model": '        "contacts": model.contacts.model_dump(mode="json"),\n',
            "boundary": '        "outer": model.boundary.outer,\n',
            "order": '        "order": order,\n',
            "tolerance": '        "tolerance": model.solver.tolerance,\n',
            "shapes": '        "shapes": model.shape_hash,\n',
            "mesh": '        "mesh": mesh.hash,\n',
        }.items()
    ),
    Mutation("cache key without code", "batch/cache.py",
             '{**inputs, "code": field_code_hash()}', "{**inputs}", f"{CACHE} -k in_the_key"),
    Mutation("keys without versions", "batch/cache.py", '{**versions(), "processor"',
             '{"processor"', f"{CACHE} -k versions"),
    Mutation("keys without the processor", "batch/cache.py",
             '"processor": llvmlite.binding.get_host_cpu_name()', '"processor": ""',
             f"{CACHE} -k processor"),
    *(
        Mutation(f"blocks known without {what}", "store/blocks.py",
                 "[options.threshold, options.top_k, options.matrix, embedding.shape, key]",
                 f"[{rest}]", f"{WRITER} -k known_by")
        for what, rest in {
            "threshold": "options.top_k, options.matrix, embedding.shape, key",
            "top-k": "options.threshold, options.matrix, embedding.shape, key",
            "matrix": "options.threshold, options.top_k, embedding.shape, key",
            "code": "options.threshold, options.top_k, options.matrix, embedding.shape",
        }.items()
    ),
    Mutation("blocks known without their embedding", "store/blocks.py",
             '    total.update(np.ascontiguousarray(embedding, dtype="<f8").data)\n', "",
             f"{WRITER} -k known_by"),
    Mutation("blocks of another processor used", "store/blocks.py",
             "return block if same and block.first_row().equals(fresh) else None",
             "return block if same else None", f"{WRITER} -k other_code"),
    Mutation("blocks of another name used", "store/blocks.py",
             "return block if same and block", "return block if block",
             f"{WRITER} -k says_it_is_another"),
    # Undo.
    Mutation("what was undone is remembered", "duel/engine.py",
             "self._remembered[-1].events > place:", "self._remembered[-1].events > place + 3:",
             f"{ENGINE} -k taken_back"),
    Mutation("remembered across an exclusion", "duel/engine.py",
             "        if event.kind in _RETROACTIVE:\n            self._remembered.clear()\n", "",
             f"{ENGINE} -k 'remembered or undo'"),
    Mutation("remembered states are not copies", "duel/engine.py",
             "learnt=deepcopy(self.learnt)", "learnt=self.learnt", f"{ENGINE} -k remembered"),
    Mutation("remembered sets are not copies", "duel/engine.py",
             "active=self.active.copy()", "active=self.active", f"{ENGINE} -k remembered"),
    Mutation("nothing is remembered", "duel/engine.py",
             "            self._remembered.append(self._course.copy())", "            pass",
             f"{ENGINE} -k begin_at_the_start"),
    Mutation("an interrupted engine goes on", "duel/engine.py",
             "            self._in_doubt = kept or not isinstance(error, Exception)\n", "",
             f"{JOURNAL} {ENGINE} -k interrupted"),
    # What is sent to the session page.
    Mutation("an answer to another question counts", "web/server.py",
             "if lines != self._session.journal.lines:", "if lines > 10**9:", PAGE),
    Mutation("a request that was cut ends in a traceback", "web/server.py",
             "except ClientDisconnect as error:", "except ZeroDivisionError as error:", PAGE),
    Mutation("a page sends numbers that no journal can keep", "web/server.py",
             "type(value) in (int, float) and abs(value) < MOST_NUMBER",
             "type(value) in (int, float)", PAGE),
    Mutation("a page sends bodies of any size", "web/server.py",
             "            if len(data) > MOST_BYTES:", "            if len(data) > 1e9:",
             "tests/web/test_web_session.py -k bad_words"),
]  # fmt: skip


def run_tests(tree: Path, arguments: str) -> int:
    """Run tests of a tree and return pytest's exit code: 0 passed, 1 failed, others no result.

    Tests that do not end have failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["NUMBA_CACHE_DIR"] = str(tree / "kernels")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, *shlex.split(arguments)], cwd=tree, env=environment, capture_output=True,
            text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1
    if done.returncode not in (0, 1):
        print(done.stdout[-3000:] + done.stderr[-1000:])
    return done.returncode


def attempt(mutation: Mutation, tree: Path) -> str:
    """Break a promise, run its tests, mend it again; return what became of it."""
    path = tree / "fieldcorr" / mutation.file
    status, text = path.stat(), path.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        return f"does not apply: its text is there {text.count(mutation.old)} times"
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        code = run_tests(tree, mutation.tests)
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return {0: "SURVIVED", 1: "killed"}.get(code, f"no result: pytest ended with {code}")


def main() -> None:
    """Try all mutations, or those that the command line names, and print the table."""
    words = sys.argv[1:]
    chosen = [m for m in MUTATIONS if not words or any(w in f"{m.name} {m.file}" for w in words)]
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="fieldcorr-mutate-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
        for number, mutation in enumerate(chosen, start=1):
            outcomes.append(attempt(mutation, tree))
            print(f"{number:3d}  {outcomes[-1]:10s}  {mutation.name}", flush=True)
    killed = outcomes.count("killed")
    print("\n| promises broken | seen by a test | not seen |\n|---:|---:|---:|")
    print(f"| {len(outcomes)} | {killed} | {len(outcomes) - killed} |")
    sys.exit(killed != len(outcomes))


if __name__ == "__main__":
    main()
