"""What people send: outputs of v3dprobe, and of v3demu replay --compare --json. They are looked through before anything is made of them."""
import json
import os
import re

from questions import QUESTIONS

PROBE, COMPARISON = "v3dprobe", "v3demu replay --compare"
FORMATS = {PROBE: 1, COMPARISON: 1}
# Processors of Raspberry Pis. Elsewhere v3dprobe asks an emulated board, whose answers are the model's own.
MACHINES = ("aarch64", "armv6l", "armv7l", "armv8l")
CHIPS = {71: "7.1", 42: "4.2"}
KNOWN = {question.name: question for question in QUESTIONS}
NO_ALTERNATIVES = ("none of the alternatives", "nothing was stored", "the kernel refuses the job")
MOST_BYTES, MOST_TEXT = 16 << 20, 200

CHIP = {"version": int, "revision": int, "qpus": int}
JOB = {"job": int, "kind": str, "end": str, "equal": bool, "images": list, "memory": list}
ANSWER = {"name": str, "answer": str, "assumed": str, "words": str}
KEPT = {PROBE: {"board": str, "kernel": str, "machine": str, "chip": dict, "idents": list, "questions": list},
        COMPARISON: {"version": str, "profile": str, "chip": dict, "jobs": list}}


class Failure(Exception):
    """One message for the person who calls."""


def fields(what, found, wanted):
    for name, kind in wanted.items():
        value = found.get(name) if isinstance(found, dict) else None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise Failure(f"{what}: \"{name}\" is missing, or is not what it should be")


def text(what, value):
    """One line that a table can hold."""
    if not isinstance(value, str) or not 0 < len(value.strip()) <= MOST_TEXT or not value.isprintable():
        raise Failure(f"{what} must be a line of text, of at most {MOST_TEXT} letters")
    return " ".join(value.split())


def load(path):
    try:
        if os.path.getsize(path) > MOST_BYTES:
            raise Failure(f"{path} has more than {MOST_BYTES >> 20} MiB")
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Failure(f"{path} is no whole JSON: {str(error)[:MOST_TEXT]}") from error


def answer_of(answer):
    """By this version's alternatives, which may be more than those of the version that has asked."""
    question = KNOWN[answer["name"]]
    return question.answer_of([int(word, 16) for word in answer["words"].split()]) or (
        answer["answer"] if answer["answer"] in NO_ALTERNATIVES else NO_ALTERNATIVES[0])


def check_answers(path, results):
    seen = set()
    for number, answer in enumerate(results["questions"], 1):
        fields(f"{path}, question {number}", answer, ANSWER)
        if answer["name"] not in KNOWN:
            raise Failure(f"{path}, question {number}: v3dprobe of this version does not ask {answer['name'][:MOST_TEXT]!r}")
        if answer["name"] in seen:
            raise Failure(f"{path}, question {number}: {answer['name']} is there twice")
        if not re.fullmatch(r"[0-9a-f]{8}( [0-9a-f]{8})*", answer["words"]):
            raise Failure(f"{path}, question {number}: its words are not hexadecimal")
        if len(answer["words"].split()) != KNOWN[answer["name"]].num_words():
            raise Failure(f"{path}, question {number}: {answer['name']} has another number of words in this version")
        text(f"{path}, question {number}: the answer", answer["answer"])
        seen.add(answer["name"])
    if not seen:
        raise Failure(f"{path} has no answers: v3dprobe has run with --rows, or was ended")
    if results["machine"] not in MACHINES:
        raise Failure(f"{path} is of a processor {text('machine', results['machine'])!r}, which no Raspberry Pi has: v3dprobe has asked an emulated board")


def check_jobs(path, results):
    for number, job in enumerate(results["jobs"], 1):
        fields(f"{path}, job {number}", job, JOB)
        text(f"{path}, job {number}: its kind", job["kind"])
        text(f"{path}, job {number}: its end", job["end"])
        for image in job["images"]:
            if "no_pixels" not in (image if isinstance(image, dict) else {}):
                fields(f"{path}, job {number}, an image", image, {"width": int, "height": int, "pixels": int, "largest": int})
        for place in job["memory"]:
            fields(f"{path}, job {number}, memory", place, {"words": int, "largest": int})
    if not results["jobs"]:
        raise Failure(f"{path} compares no job: the recording has no memory after its jobs")


def read(path):
    """An output, of which what this tool needs is left."""
    results = load(path)
    program = results.get("program") if isinstance(results, dict) else None
    if not isinstance(program, str) or program not in FORMATS:
        raise Failure(f"{path} is an output neither of v3dprobe nor of v3demu replay --compare --json")
    if results.get("format") != FORMATS[program]:
        raise Failure(f"{path} is of another version of {program}: format {str(results.get('format'))[:20]}, not {FORMATS[program]}")
    fields(path, results, KEPT[program])
    fields(f"{path}, chip", results["chip"], CHIP)
    (check_answers if program == PROBE else check_jobs)(path, results)
    return {"program": program, "format": FORMATS[program], **{name: results[name] for name in KEPT[program]}}


def with_board(path, summary, board, kernel):
    """Of which board and kernel it is."""
    if summary["program"] == PROBE:
        if board or kernel:
            raise Failure(f"{path} says itself of which board and kernel it is")
        board, kernel = summary["board"], summary["kernel"]
    elif not board or not kernel:
        raise Failure(f"{path} does not say on which board it was recorded: --board and --kernel do")
    return text("the board", board), text("the kernel", kernel)


def add(folder, path, sender, board, kernel):
    """Stores a file that was sent. Returns the name that it has there."""
    summary = read(path)
    board, kernel = with_board(path, summary, board, kernel)
    entry = {"sender": text("the sender", sender), "board": board, "kernel": kernel, "summary": summary}
    if entry in [known for _, known in entries(folder)]:
        raise Failure(f"{path} has been added before")
    os.makedirs(folder, exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", f"{sender} {board}".lower()).strip("-")[:60]
    number = 1
    while os.path.exists(os.path.join(folder, f"{slug}-{number}.json")):
        number += 1
    name = os.path.join(folder, f"{slug}-{number}.json")
    with open(name, "w", encoding="utf-8") as file:
        json.dump(entry, file, indent=1)
        file.write("\n")
    return name


def entries(folder):
    """[(name, entry)], by name."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(".json")) if os.path.isdir(folder) else []
    return [(name, load(os.path.join(folder, name))) for name in names]


def read_all(folder):
    """Entries whose summaries have been looked through again."""
    found = []
    for name, entry in entries(folder):
        path = os.path.join(folder, name)
        fields(path, entry, {"sender": str, "board": str, "kernel": str, "summary": dict})
        summary = entry["summary"]
        program = summary.get("program")
        if not isinstance(program, str) or program not in FORMATS:
            raise Failure(f"{path} has no summary that this version reads")
        fields(path, summary, KEPT[program])
        fields(f"{path}, chip", summary["chip"], CHIP)
        (check_answers if program == PROBE else check_jobs)(path, summary)
        found.append(entry)
    return found
