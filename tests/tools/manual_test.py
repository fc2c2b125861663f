#!/usr/bin/env python3
"""The man pages and the completion know what the programs know.

usage: manual_test.py TREE V3DEMU V3DEMUD
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import unittest

TREE, V3DEMU, V3DEMUD = sys.argv[1:4]
MANUAL = os.path.join(TREE, "packaging", "man")
COMPLETION = os.path.join(TREE, "packaging", "completion", "v3demu")


def help_of(*command):
    return subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout


def options_of(*command):
    """All that begin a line of the help text, and the other names of the same option."""
    return {name for line in help_of(*command).splitlines() if re.match("  -", line)
            for name in re.findall(r"(?:^|,)(--?[a-z][a-z-]*)", line.split()[0])}


def commands():
    return re.findall(r"^  ([a-z-]+) ", help_of(V3DEMU).split("\nCommands:\n")[1], re.M)


def page(name):
    with open(os.path.join(MANUAL, name), encoding="utf-8") as file:
        return file.read().replace("\\-", "-")


def without_general_options(names):
    return names - {"-h", "--help"}


class ManualTest(unittest.TestCase):
    def assert_named(self, names, text, where):
        missing = [name for name in sorted(names) if not re.search(rf"(?<![\w-]){name}(?![\w-])", text)]
        self.assertEqual(missing, [], where)

    def test_every_option_of_every_command_stands_in_its_section(self):
        sections = dict(re.findall(r"^\.SS v3demu ([\w\\-]+)\n(.*?)(?=^\.S)", page("v3demu.1"), re.M | re.S))
        self.assertEqual(sorted(sections), sorted(commands()))
        for command in set(commands()) - {"help"}:
            names = without_general_options(options_of(V3DEMU, command))
            self.assert_named(names, sections[command], command)
        self.assert_named(options_of(V3DEMU), page("v3demu.1"), "v3demu")

    def test_every_option_of_the_daemon_stands_in_its_page(self):
        self.assertGreater(len(options_of(V3DEMUD)), 10)
        self.assert_named(options_of(V3DEMUD), page("v3demud.8"), "v3demud")

    def test_no_page_names_an_option_that_does_not_exist(self):
        known = options_of(V3DEMU) | options_of(V3DEMUD)
        for command in commands():
            known |= options_of(V3DEMU, command)
        tagged = re.findall(r"^\.TP\n(\..*)", page("v3demu.1") + page("v3demud.8"), re.M)
        named = {name for line in tagged for name in re.findall(r"(?<!\w)--[a-z-]+", line)}
        self.assertEqual(sorted(named - known), [])

    def test_every_variable_that_the_programs_read_stands_in_a_page(self):
        read = set()
        for folder in ("daemon", "gpu", "ioctl", "shim", "tools"):
            for where, _, names in os.walk(os.path.join(TREE, folder)):
                for name in names:
                    if name.endswith((".cc", ".h", ".c")) and where != os.path.join(TREE, "tools", "frames"):  # helpers of scripts
                        with open(os.path.join(where, name), encoding="utf-8") as file:
                            read |= set(re.findall(r'"(V3DEMU_[A-Z0-9_]+)[="]', file.read()))
        self.assertIn("V3DEMU_DEVICE", read)
        pages = "".join(page(name) for name in os.listdir(MANUAL))
        self.assert_named(read - {"V3DEMU_SCREEN_END"}, pages, "between v3demu run and v3demu screen alone: V3DEMU_SCREEN_END")

    @unittest.skipUnless(shutil.which("man"), "man is not installed")
    def test_pages_have_no_warnings(self):
        for name in sorted(os.listdir(MANUAL)):
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", os.path.join(MANUAL, name)],
                                  capture_output=True, text=True, check=False,
                                  env=os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "80", "PAGER": "cat"})
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertIn("v3demu", done.stdout)


def calls(text):
    """Of v3demu in the code blocks of a page: command and options."""
    for block in re.findall(r"(?ms)^```sh\n(.*?)^```", text):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.shlex(line, posix=True, punctuation_chars=True)
            words.whitespace_split, words.commenters = True, "#"
            words = list(words)
            for at, word in enumerate(words[:-1]):
                if os.path.basename(word) == "v3demu" and re.fullmatch("[a-z][a-z-]*", words[at + 1]):
                    end = next((i for i in range(at, len(words)) if words[i] == "--" or re.fullmatch(r"[|&;()<>]+", words[i])), len(words))
                    yield words[at + 1], [option.split("=")[0] for option in words[at + 2:end] if re.match("-.", option)]


class PagesTest(unittest.TestCase):
    def test_pages_call_commands_with_options_that_they_have(self):
        known = {command: options_of(V3DEMU, command) for command in commands()}
        known["serve"] |= options_of(V3DEMUD)
        seen = set()
        for name in [*glob.glob(os.path.join(TREE, "*.md")), *glob.glob(os.path.join(TREE, "docs", "*.md"))]:
            with open(name, encoding="utf-8") as file:
                for command, options in calls(file.read()):
                    self.assertIn(command, known, name)
                    self.assertEqual([option for option in options if option not in known[command]], [], f"{name}: v3demu {command}")
                    seen.add(command)
        self.assertGreater(seen, {"run", "capture", "replay", "decode", "asm", "disasm", "profile", "screen", "desktop"})


class HelpTest(unittest.TestCase):
    def test_the_version_is_that_of_the_tree(self):
        with open(os.path.join(TREE, "CMakeLists.txt"), encoding="utf-8") as file:
            version = re.search(r"project\(v3demu VERSION ([\d.]+)", file.read())[1]
        for program in (V3DEMU, V3DEMUD):
            said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
            self.assertEqual(said, f"{os.path.basename(program)} {version}\n")

    def test_every_help_is_in_words(self):
        for command in ["", *commands()]:
            text = help_of(V3DEMU, *filter(None, [command]))
            self.assertIsNone(re.search(r"\b(TEXT|U?INT|FLOAT|ENUM|POSITIVE|REQUIRED|Excludes|Needs|SUBCOMMAND)\b|\bin \[| VALUE\b",
                                        text), text)

    def test_help_is_a_command(self):
        def said(*words):
            done = subprocess.run([V3DEMU, *words], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout
        self.assertEqual(said("help"), (0, help_of(V3DEMU)))
        for command in commands():
            if command != "help":
                self.assertEqual(said("help", command), (0, help_of(V3DEMU, command)))

    def test_the_example_in_the_help_of_asm_is_a_program(self):
        example = help_of(V3DEMU, "asm").strip().split("\n\n")[-1]
        self.assertIn("loop:", example)
        done = subprocess.run([V3DEMU, "asm", "-"], input=example, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_is_misspelt_is_named_with_what_may_be_meant(self):
        for words, text in ((["captrue"], 'v3demu: there is no command "captrue"; did you mean capture?\n'),
                            (["sh"], 'v3demu: there is no command "sh"; to run that program: v3demu run -- sh\n'),
                            (["nothing", "at", "all"], 'v3demu: there is no command "nothing"\n'),
                            (["--devise"], "v3demu: there is no option --devise, nor a command\n"),
                            (["run", "--devise", "rpi5", "--", "true"],
                             "v3demu run: there is no option --devise; did you mean --device?\n"),
                            (["replay", "--tim", "x"], "v3demu replay: there is no option --tim; did you mean --time?\n"),
                            (["replay", "--sample", "x"], "v3demu replay: --sample goes only with --time\n"),
                            (["replay", "--repeat"], "v3demu replay: --repeat needs a value\n"),
                            (["replay"], "v3demu replay: FILE is missing\n"),
                            (["decode", "a", "b"], 'v3demu decode: "b" is one word too many\n'),
                            (["run"], "v3demu run: a program to run is required\n")):
            done = subprocess.run([V3DEMU, *words], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertTrue(done.stderr.startswith(text), done.stderr)
            self.assertIn("(v3demu help", done.stderr)
        alone = subprocess.run([V3DEMU], capture_output=True, text=True, check=False)
        self.assertEqual((alone.returncode, alone.stderr), (2, help_of(V3DEMU)))


class CompletionTest(unittest.TestCase):
    def complete(self, *words):
        """What is offered for the last word."""
        script = (f'source "{COMPLETION}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _v3demu "{V3DEMU}"; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", "v3demu", *words], capture_output=True,
                              text=True, check=True)
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_offers_commands(self):
        self.assertEqual(self.complete(""), set(commands()) | {"--help", "--version"})
        self.assertEqual(self.complete("dec"), {"decode"})

    def test_offers_the_options_of_a_command(self):
        for command in commands():
            known = options_of(V3DEMU, command)
            if command == "serve":
                known |= options_of(V3DEMUD)
            if command != "help":
                self.assertEqual(self.complete(command, "-"), known | {"--"}, command)

    def test_offers_commands_behind_help(self):
        self.assertEqual(self.complete("help", ""), set(commands()))

    def test_offers_values(self):
        self.assertEqual(self.complete("run", "--device", ""), {"rpi5", "rpi5-16", "rpi5-c1", "rpi5-d0", "rpi5-7.1.5", "rpi4", "rpi3", "rpi2", "rpi1", "rpi0"})
        self.assertEqual(self.complete("run", "--kernel", ""), {"7.3", "6.12", "6.1"})
        self.assertEqual(self.complete("serve", "--memory", "1"), {"128", "192"})
        self.assertEqual(self.complete("asm", "--format", "h"), {"hex"})
        self.assertEqual(self.complete("disasm", "--chip", ""), {"7.1", "4.2", "2.1"})
        self.assertEqual(self.complete("asm", "--device", "rpi3"), {"rpi3"})
        self.assertIn("system", self.complete("run", "--mesa", ""))

    def test_leaves_programs_their_words(self):
        self.assertEqual(self.complete("run", "--", "ls", "--"), set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
