#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the hook may execute, read off sibidle.ko as it was built.

usage: paths.py sibidle.ko [counts]

Walks every path through the machine code, with both directions of every static branch
(__jump_table) and both forms of every alternative (.altinstructions), and prints TAP:
between the two writes of IA32_SPEC_CTRL there is no return, no call and no indirect branch,
and no way past the second write; and, with "counts", the longest paths are as short as promised.
"""
import re
import subprocess
import sys

TEXT = ".noinstr.text"
MSR_WRITE, MSR_READ = "wrmsr", "rdmsr"


def objdump(*arguments):
    return subprocess.run(["objdump", *arguments, sys.argv[1]], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.splitlines()


class Instruction:
    def __init__(self, address, text):
        self.address = address
        self.text = text
        self.word = text.split()[0]
        if self.word in ("lock", "ds", "cs", "notrack", "rep", "repz"):
            self.word = (text.split() + ["", ""])[1]
        self.calls = None  # symbol that a relocation names
        self.next = []
        self.instead = []  # what an alternative puts there


def disassemble(section):
    """Instructions of a section by address, and the addresses where its functions begin."""
    code, functions, last = {}, {}, None
    for line in objdump("-dr", "--no-show-raw-insn", "-j", section):
        symbol = re.match(r"^([0-9a-f]+) <([^>]+)>:$", line)
        if symbol:
            functions[symbol[2]] = int(symbol[1], 16)
            continue
        relocation = re.match(r"^\s+([0-9a-f]+): R_X86_64_(\w+)\s+(\S+)", line)
        if relocation and last:
            last.calls = relocation[3]
            continue
        found = re.match(r"^\s*([0-9a-f]+):\s+(\S.*)$", line)
        if found:
            last = Instruction(int(found[1], 16), found[2].strip())
            code[last.address] = last
    return code, functions


def relocations(section):
    """(offset, symbol, addend) of a section that holds tables."""
    for line in objdump("-r", "-j", section):
        found = re.match(r"^([0-9a-f]+) R_X86_64_\w+\s+([^\s+-]+)([+-]0x[0-9a-f]+)?", line)
        if found:
            yield int(found[1], 16), found[2], int(found[3] or "0", 16)


def is_return(i):
    return i.word in ("ret", "retq") or (i.word == "jmp" and "return_thunk" in (i.calls or ""))


def is_indirect(i):
    return (i.word in ("jmp", "call") and "*" in i.text) or "indirect_thunk" in (i.calls or "")


def is_call(i):
    return i.word in ("call", "callq", "syscall", "int", "int3", "sysret", "iret", "iretq")


def leaves(i):
    """A jump out of the section, as a tail call is. What asks for a CPU feature jumps too, to
    .altinstr_aux, but only until the alternatives are put in, which is before the code runs."""
    return i.word == "jmp" and i.calls is not None and \
        not i.calls.startswith((TEXT, ".altinstr_aux"))


def link(code):
    order = sorted(code)
    after = dict(zip(order, order[1:]))
    for address in order:
        i = code[address]
        target = re.match(r"^\S+\s+([0-9a-f]+)\b", i.text)
        goes = int(target[1], 16) if target and i.word.startswith(("j", "loop")) else None
        if i.calls and i.calls.startswith(TEXT) and i.word.startswith("j"):
            offset = re.search(r"\+0x([0-9a-f]+)$", i.calls)
            goes = int(offset[1], 16) + 4 if offset else None
        if (i.calls or "").startswith(".altinstr_aux"):
            continue
        if is_return(i) or leaves(i) or i.word == "ud2" or (i.word == "jmp" and is_indirect(i)):
            continue
        if goes is not None and goes in code:
            i.next.append(goes)
        if i.word != "jmp" and address in after:
            i.next.append(after[address])
    # Static branches: code, target, key; both ways.
    entries = [e for e in relocations("__jump_table")]
    for (_, where, at), (_, _, target) in zip(entries[0::3], entries[1::3]):
        if where == TEXT and at in code:
            code[at].next += [target, after[at]]
    # Alternatives: the original, the replacement; a replacement that jumps is another way, and
    # what else is in it may run too.
    entries = [e for e in relocations(".altinstructions")]
    other = disassemble(".altinstr_replacement")[0] if entries else {}
    begins = sorted({at for _, _, at in entries[1::2]})
    for (_, where, at), (_, _, instead) in zip(entries[0::2], entries[1::2]):
        if where != TEXT or at not in code:
            continue
        end = min([b for b in begins if b > instead], default=max(other, default=0) + 1)
        new = [other[o] for o in sorted(other) if instead <= o < end]
        code[at].next.append(after[at])
        for i in new:
            if i.word == "jmp" and i.calls and i.calls.startswith(TEXT):
                code[at].next.append(int(re.search(r"\+0x([0-9a-f]+)$", i.calls)[1], 16) + 4)
            else:
                code[at].instead.append(i)
    for i in code.values():
        i.next = sorted({n for n in i.next if n in code})


def reach(code, start, stop):
    """Instructions on paths that begin after start and end before an instruction of stop."""
    seen, todo = set(), list(code[start].next)
    while todo:
        at = todo.pop()
        if at in seen or stop(code[at]):
            continue
        seen.add(at)
        todo += code[at].next
    return [code[a] for a in sorted(seen)]


def leads_to(code, goal):
    """Addresses from which a path leads to goal."""
    seen, grew = {goal}, True
    while grew:
        more = {a for a in code if a not in seen and seen & set(code[a].next)}
        seen |= more
        grew = bool(more)
    return seen


def longest(code, start, avoid, end=None):
    """Most instructions from start to an end of the function, none to avoid; None if there is no
    such path, or a loop on one, which would have no longest."""
    end = end or (lambda i: is_return(i) or leaves(i))
    known, loops = {}, []

    def go(at, path):
        if avoid(code[at]):
            return None
        if at in path:
            loops.append(at)
            return None
        if at not in known:
            i = code[at]
            ways = [] if end(i) else [w for w in (go(n, path | {at}) for n in i.next) if w]
            known[at] = 1 + max(ways) if ways else (1 if end(i) else None)
        return known[at]

    length = go(start, frozenset())
    return None if loops else length


count = failed = 0


def ok(condition, text):
    global count, failed
    count += 1
    failed += not condition
    print(f"{'ok' if condition else 'not ok'} {count} - {text}")


def main():
    sys.setrecursionlimit(10000)
    code, functions = disassemble(TEXT)
    link(code)
    for name in ("hook_enter", "sleep_as_driver", "sleep_ourselves"):
        ok(name in functions, f"{name} is in {TEXT}")
    begin = functions["sleep_ourselves"]
    end = min([a for a in functions.values() if a > begin] + [max(code) + 1])
    writes = [a for a in sorted(code) if begin <= a < end and code[a].word == MSR_WRITE]
    ok(len(writes) == 2, f"IA32_SPEC_CTRL is written {len(writes)} times")
    first = min(writes, key=lambda w: len(reach(code, begin, lambda i, w=w: i.address == w)))
    second = [w for w in writes if w != first][0]
    # "mode is clear" is looked at once more before the second write: the way around it is not
    # one that a CPU in clear can take. It has to be the only way out.
    between = [i for i in reach(code, first, lambda i: i.address == second)]
    back = leads_to(code, second)
    inside = [i for i in between if i.address in back]
    outs = [i for i in inside if any(n not in back for n in i.next)]
    run = inside + [new for i in inside for new in i.instead]
    bad = [i for i in run if is_return(i) or is_call(i) or is_indirect(i) or leaves(i)]
    for i in bad + (outs if len(outs) != 1 else []):
        print(f"# {i.address:x}: {i.text} {i.calls or ''}")
    ok(len(inside) > 5 and any(i.word == "mwait" for i in inside) and not bad,
       f"no return, call or indirect branch among the {len(inside)} instructions between the writes")
    ok(len(outs) == 1 and outs[0].word.startswith("j"),
       "one branch, that on the mode, leads around the second write")
    ok(not [i for i in run if i.word in ("sti", "popf", "popfq")], "interrupts stay off between them")
    ok(not [i for i in run if i.word == MSR_WRITE], "nothing else is written")

    no_sample = lambda i: i.word == MSR_READ  # noqa: E731
    enter = functions["hook_enter"]
    driver = functions["sleep_as_driver"]
    ends_in = lambda f: lambda i: i.word == "jmp" and f in i.next  # noqa: E731
    stock = longest(code, enter, no_sample, ends_in(driver)) + longest(code, driver, no_sample)
    ours = longest(code, begin, no_sample)
    dispatch = longest(code, enter, no_sample, ends_in(begin))
    print(f"# instructions an idle entry: stock {stock}; "
          f"keep and clear at most {ours} + {dispatch}")
    if "counts" in sys.argv[2:]:
        check_counts(stock, ours, dispatch)
    print(f"1..{count}")
    return failed != 0


def check_counts(stock, ours, dispatch):
    ok(stock is not None and stock < 60, f"stock adds {stock} instructions, fewer than 60")
    ok(ours is not None and dispatch is not None and ours + dispatch < 100,
       f"keep and clear take {ours} + {dispatch} instructions, fewer than 100")


sys.exit(main())
