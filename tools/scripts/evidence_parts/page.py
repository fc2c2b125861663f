"""docs/evidence.md as text. The same entries always make the same page."""
import collections

from questions import QUESTIONS, UNASKED

from evidence_parts.summaries import CHIPS, COMPARISON, KNOWN, PROBE, answer_of

HEAD = """# Evidence from boards

Where no public source tells what the GPU does, v3demu assumes something. Programs on real boards can tell whether that holds:
`v3dprobe` asks questions, and recordings of jobs are compared with what the model computes ([Recordings of boards](recording.md)). This page collects
the answers. It is made by `tools/evidence`, of the files in `docs/data/evidence`.
"""
SEND = """
## Send one

On a Raspberry Pi 4 or 5, in a clone of this repository or beside a copy of the folder `bench/measure`, as a user of the group `render`:

    cc -O2 -o v3dprobe bench/measure/v3dprobe.c
    ./v3dprobe > board.json

Attach `board.json` to an issue, with the name that this page shall give you. It holds the model of the board, versions of kernel and chip with
identity registers, and what the GPU computed and how long it took: no name of the machine or its user, no serial number. Of a recording, send
the output of `v3demu replay --compare --json`, with the model of the board and what `uname -r` says there. Who keeps this page adds them:

    tools/evidence --add board.json --from 'A. Sender'
    tools/evidence --add comparison.json --from 'A. Sender' --board 'Raspberry Pi 5 Model B Rev 1.0' --kernel 6.12.25
"""


def cell(text):
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`").replace("[", "\\[")


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(cell, row)) + " |" for row in rows]) + "\n"


def several(count, what):
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def chip_of(summary):
    chip = summary["chip"]
    return f"{CHIPS.get(chip['version'], chip['version'] / 10)}.{chip['revision']}"


def board_of(entry):
    return entry["board"], chip_of(entry["summary"])


def boards_text(entries):
    """How many, and which."""
    names = sorted({f"{board}, V3D {chip}" for board, chip in map(board_of, entries)})
    return "; ".join(names)


def boards(entries):
    def contents(summary):
        if summary["program"] == PROBE:
            differ = sum(answer_of(answer) != KNOWN[answer["name"]].assumed for answer in summary["questions"])
            return f"{several(len(summary['questions']), 'answer')}, {differ} not as assumed"
        differ = sum(not job["equal"] for job in summary["jobs"])
        return f"{several(len(summary['jobs']), 'job')} compared, {differ} different"

    rows = sorted((entry["board"], chip_of(entry["summary"]), str(entry["summary"]["chip"]["qpus"]), entry["kernel"], entry["sender"], contents(entry["summary"]))
                  for entry in entries)
    return "\n## Boards\n\n" + table(("board", "V3D", "QPUs", "kernel", "sent by", "what"), rows)


def answers_by_question(entries):
    """{(question, version of the chip): {answer: entries}}"""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for entry in entries:
        summary = entry["summary"]
        for answer in summary["questions"] if summary["program"] == PROBE else ():
            found[answer["name"], summary["chip"]["version"]][answer_of(answer)].append(entry)
    return found


def answer_row(question, chip, answers):
    agreeing, others = answers.get(question.assumed, []), {text: who for text, who in answers.items() if text != question.assumed}
    boards_of = lambda who: len({board_of(entry) for entry in who})  # noqa: E731
    agree = f"{boards_of(agreeing)} ({boards_text(agreeing)})" if agreeing else ""
    differ = " / ".join(f"{text}: {boards_of(others[text])} ({boards_text(others[text])})" for text in sorted(others))
    return CHIPS[chip], question.where, question.asks, question.assumed, agree, differ


def answered(entries):
    found = answers_by_question(entries)
    rows = [answer_row(question, chip, found[question.name, chip]) for question in QUESTIONS for chip in question.chips() if (question.name, chip) in found]
    rows.sort(key=lambda row: not row[-1])  # what differs first
    return ("\n## Answered\n\nHow many boards agree with the model, and what others answer instead.\n\n" +
            table(("V3D", "chapter", "question", "the model assumes", "boards that agree", "other answers"), rows)) if rows else ""


def open_questions(entries):
    found = answers_by_question(entries)
    rows = []
    for question in QUESTIONS:
        chips = [chip for chip in question.chips() if (question.name, chip) not in found]
        if chips:
            rows.append((", ".join(CHIPS[chip] for chip in chips), question.where, f"{question.name}: {question.asks}", question.assumed,
                         " / ".join(text for text in question.alternatives if text != question.assumed)))
    return (f"\n## Open questions\n\n{several(len(rows), 'question')} of `v3dprobe` that no board has answered. Chapters are those of"
            " [the reference](hardware/README.md).\n\n" +
            table(("V3D", "chapter", "question", "the model assumes", "what else it could be"), rows)) if rows else ""


def kind_of_difference(job):
    if job["end"] != "done":
        return f"ends here as: {job['end']}"
    if job["equal"]:
        return "equal"
    largest = max((image["largest"] for image in job["images"] if "largest" in image), default=None)
    if largest is None:
        return "memory alone"
    return f"colours by {'1' if largest == 1 else '2 to 4' if largest <= 4 else 'more than 4'} of 255"


def comparisons(entries):
    counts, who = collections.Counter(), collections.defaultdict(list)
    for entry in entries:
        summary = entry["summary"]
        for job in summary["jobs"] if summary["program"] == COMPARISON else ():
            key = CHIPS.get(summary["chip"]["version"], str(summary["chip"]["version"] / 10)), job["kind"], kind_of_difference(job)
            counts[key] += 1
            who[key].append(entry)
    rows = [(*key, str(counts[key]), boards_text(who[key])) for key in sorted(counts)]
    return "\n## Recordings\n\n" + table(("V3D", "kind of job", "in what they differ", "jobs", "boards"), rows) if rows else ""


def unasked():
    return "\n## Not asked\n\n" + table(("chapter", "what is open", "why v3dprobe does not ask"), [(u.where, u.asks, u.why) for u in UNASKED])


def text_of(entries):
    none = "\n**No board has sent anything yet**: all that is below is assumed, and nothing of it is known.\n"
    return HEAD + (boards(entries) + answered(entries) + comparisons(entries) if entries else none) + open_questions(entries) + unasked() + SEND
