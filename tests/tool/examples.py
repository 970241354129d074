#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run the examples of a document: blocks of indented lines, "$ COMMAND" and what it prints.

    examples.py FILE

"..." at a line's end or alone stands for what is left out, and the number of a process for any other.
Prints what differs; exit code 1 where something does, or where there was no example.
"""
import re
import subprocess
import sys


def blocks(text):
    """The indented blocks that hold a command."""
    block = []
    for line in text.splitlines() + [""]:
        if line.startswith("    ") or (block and line == ""):
            block.append(line[4:])
        else:
            if any(row.startswith("$ ") for row in block):
                yield block
            block = []


def examples(block):
    """Command and what it prints, of one block."""
    command, wanted = None, []
    for line in block:
        if line.startswith("$ "):
            if command:
                yield command, wanted
            command, wanted = line[2:], []
        elif command:
            wanted.append(line)
    yield command, wanted


def pattern(lines):
    """What was printed has to look so."""
    text = "\n".join(lines).rstrip("\n") + "\n"
    text = re.sub(r"(\\ )?\\\.\\\.\\\.(\\\n)?", ".*", re.escape(text))
    return re.compile(re.sub(r"process\\ \d+", r"process\\ \\d+", text), re.DOTALL)


def main():
    ran = failed = 0
    for block in blocks(open(sys.argv[1], encoding="utf-8").read()):
        # It takes a kill at the right moment; the tests of restore do that.
        if any("has ended" in line for line in block):
            continue
        for command, wanted in examples(block):
            got = subprocess.run(command, shell=True, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, check=False).stdout
            ran += 1
            if not pattern(wanted).fullmatch(re.sub(r" +$", "", got, flags=re.M)):
                failed += 1
                print(f"$ {command}\nprints:\n{got}and not:\n" + "\n".join(wanted))
    print(f"{ran} examples, {failed} differ")
    return 1 if failed or not ran else 0


sys.exit(main())
