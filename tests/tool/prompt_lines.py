#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Commands for the prompt, drawn at random from its grammar, with rubbish among them.

    prompt_lines.py GRAMMAR SEED COUNT

GRAMMAR has what the command "help" prints.
"""
import random
import re
import sys

MODES = "io mac macswap flowgen rxonly txonly csum icmpecho noisy 5tswap".split()
WORDS = {
    "<mode>": MODES,
    "<port>": ["0", "1", "all", "7", "-1", "x"],
    "[bursts]": ["1", "2", "0", "99999999999"],
    "<frames>": ["1", "8", "32", "512", "513", "0", "many"],
    "<number>": ["1", "1", "2", "0", "128"],
    "<list>": ["0", "1", "0,1", "1,0", "0-1", "1,1", "3-2", ",", "0,", "65536"],
    "<lengths>": ["64", "64,64", "1", "9000", "42", ",64", "64," * 300 + "64"],
    "<words>": ["as-is", "busy", "pause", "wake:200", "nonsense", "keep+clear", "c9", "limit:0", "as-is+busy", "+"],
    "<scenario>": ["as-is", "busy", "pause", "nonsense"],
    "<cpu>": ["0", "1", "auto", "4096", "-1"],
    "[seconds]": ["1", "0", "x"],
    "[windows]": ["1", "2", "0", "x"],
    "[blocks]": ["1", "0", "x"],
    "<directory...>": ["/proc/nowhere/at/all", "/"],
    "<file...>": ["/dev/null", "/nowhere", "/"],
}
# What would end the session, or takes its time for nothing.
SELDOM = {"quit": 0, "show live": 0.002, "compare": 0.01, "measure": 0.05}


def weight(words):
    for start, share in SELDOM.items():
        if words.startswith(start):
            return share
    return 1


def line(rnd, grammar):
    words = rnd.choices(grammar, [weight(g) for g in grammar])[0].split(" ")
    out = []
    for word in words:
        if word in ("[tx_first]", "[all]"):
            if rnd.random() < 0.5:
                break
            word = word[1:-1]
        elif word.startswith("["):
            if rnd.random() < 0.5:
                break
        if word in WORDS:
            word = rnd.choice(WORDS[word])
        elif "|" in word:
            word = rnd.choice(word.split("|"))
        out.append(word)
    return " ".join(out)


def rubbish(rnd, good):
    kind = rnd.randrange(6)
    if kind == 0:
        return "".join(chr(rnd.randrange(33, 127)) for _ in range(rnd.randrange(1, 60)))
    if kind == 1:
        return good + " " + rnd.choice(["x", "all", "0", "#", "\t"])
    if kind == 2:
        return good[: rnd.randrange(len(good) + 1)]
    if kind == 3:
        return rnd.choice(["", "   ", "# nothing", "?", "show ?\b", "\x01\x05\x0b", "\x1b[A\x1b[B", "a" * 2000])
    if kind == 4:
        return good.replace(" ", rnd.choice(["  ", "\t", ""]))
    return " ".join(reversed(good.split(" ")))


def main():
    grammar = [re.split("  +", text)[0] for text in open(sys.argv[1]) if re.match("[a-z]", text)]
    rnd = random.Random(int(sys.argv[2]))
    assert len(grammar) > 25, grammar
    for _ in range(int(sys.argv[3])):
        good = line(rnd, grammar)
        text = rubbish(rnd, good) if rnd.random() < 0.2 else good
        sys.stdout.buffer.write(text.encode("latin-1") + b"\n")


main()
