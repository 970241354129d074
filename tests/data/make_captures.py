#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make the captures that the tests read, and judge what a forwarder saved of them.

  make_captures.py DIR                  all captures, each with NAME.json: what to expect of it
  make_captures.py --bulk FILE N LEN    one capture of N frames of LEN bytes
  make_captures.py --check SAVED EXPECTED N BURST
                                        SAVED holds N frames, sent in turn by two ports, BURST at
                                        a time: each port sends the usable frames of EXPECTED (a
                                        NAME.json, or a capture that is all usable) round and round
  make_captures.py --said EXPECTED.json  what a program is to say, a line each

Nothing here knows the program under test: what is expected follows from how a frame was made.
"""
import json
import os
import struct
import sys

FRAME_MAX = 2048  # room of an mbuf as the tests assume it: 2176 bytes less the headroom
COUNTERS = ('vlan', 'arp', 'ipv4', 'ipv6', 'tcp', 'udp', 'icmp', 'icmpv6', 'fragments', 'other')
CAUSES = {'empty': 'empty', 'truncated': 'cut by the snap length',
          'runt': 'shorter than an Ethernet header', 'oversize': 'too long for an mbuf'}
DST, SRC = bytes.fromhex('020000000001'), bytes.fromhex('020000000002')


class Frame:
    """Bytes on the wire, the counters they belong to, and how much of them was captured."""

    def __init__(self, data, labels=(), captured=None, refused=None):
        self.data, self.labels, self.refused = data, tuple(labels), refused
        self.captured = len(data) if captured is None else captured

    def cut(self, captured, cause='truncated'):
        return Frame(self.data, self.labels, captured, cause)


# ---- frames ----

def fill(n, seed=0):
    return bytes((i * 7 + seed) & 0xff for i in range(n))


def ether(kind, payload, labels, tags=()):
    head = DST + SRC + b''.join(struct.pack('>HH', tpid, tci) for tpid, tci in tags)
    data = head + struct.pack('>H', kind) + payload
    return Frame(data, (('vlan',) if tags else ()) + tuple(labels))


def checksum(data):
    total = sum(struct.unpack('>%dH' % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ipv4(proto, payload, labels, tags=(), frag=0, options=b''):
    ihl = 5 + len(options) // 4
    head = struct.pack('>BBHHHBBH4s4s', 4 << 4 | ihl, 0, ihl * 4 + len(payload), 1, frag, 64, proto,
                       0, bytes([198, 18, 0, 1]), bytes([198, 18, 0, 2])) + options
    head = head[:10] + struct.pack('>H', checksum(head)) + head[12:]
    return ether(0x0800, head + payload, ('ipv4',) + tuple(labels), tags)


def ipv6(nxt, payload, labels, tags=()):
    head = struct.pack('>IHBB16s16s', 6 << 28, len(payload), nxt, 64,
                       bytes.fromhex('20010db8' + '00' * 11 + '01'),
                       bytes.fromhex('20010db8' + '00' * 11 + '02'))
    return ether(0x86dd, head + payload, ('ipv6',) + tuple(labels), tags)


def udp(n):
    return struct.pack('>HHHH', 9, 9, 8 + n, 0) + fill(n)


def tcp(n):
    return struct.pack('>HHIIBBHHH', 80, 4000, 1, 2, 5 << 4, 0x10, 1024, 0, 0) + fill(n)


def arp():
    body = struct.pack('>HHBBH6s4s6s4s', 1, 0x0800, 6, 4, 1, SRC, bytes([198, 18, 0, 1]), bytes(6),
                       bytes([198, 18, 0, 2]))
    return ether(0x0806, body + bytes(18), ('arp',))


ECHO = struct.pack('>BBHHH', 8, 0, 0, 1, 1)
ECHO6 = struct.pack('>BBHHH', 128, 0, 0, 1, 1)
C_TAG, S_TAG, OLD_TAG = (0x8100, 5), (0x88a8, 100), (0x9100, 200)


def plain():
    return [ipv4(17, udp(22), ('udp',)), ipv4(17, udp(86), ('udp',)), ipv4(6, tcp(1440), ('tcp',))]


def zoo():
    """One frame of every protocol that is counted, and some that look like one."""
    hop = struct.pack('>BB6x', 17, 0)
    auth = struct.pack('>BBHIII', 60, 2, 0, 1, 1, 0)
    dst = struct.pack('>BB6x', 6, 0)

    def frag6(nxt, offset):
        return struct.pack('>BBHI', nxt, 0, offset, 1)
    return [
        arp(),
        ipv4(6, tcp(100), ('tcp',)),
        ipv4(17, udp(100), ('udp',)),
        ipv4(1, ECHO + fill(56), ('icmp',)),
        ipv4(17, udp(40), ('udp',), options=b'\x01' * 8),
        ipv4(17, udp(64), ('udp', 'fragments'), frag=0x2000),
        ipv4(17, fill(64), ('fragments',), frag=0x0009),
        ipv4(47, fill(64), ()),
        ipv6(6, tcp(100), ('tcp',)),
        ipv6(17, udp(100), ('udp',)),
        ipv6(58, ECHO6 + fill(56), ('icmpv6',)),
        ipv6(0, hop + udp(32), ('udp',)),
        ipv6(51, auth + dst + tcp(32), ('tcp',)),
        ipv6(44, frag6(17, 0x0001) + udp(32), ('udp', 'fragments')),
        ipv6(44, frag6(17, 0x0048) + fill(32), ('fragments',)),
        ipv6(44, frag6(17, 0) + udp(32), ('udp',)),     # RFC 6946: an atomic fragment is whole
        ipv6(44, frag6(17, 6) + udp(32), ('udp',)),     # reserved bits are not the offset
        ipv6(59, fill(20), ()),
        ipv4(58, ECHO6, ()),                            # ICMPv6 over IPv4 is nothing
        ipv6(1, ECHO, ()),
        ipv4(17, udp(100), ('udp',), tags=(C_TAG,)),
        ipv6(6, tcp(100), ('tcp',), tags=(C_TAG,)),
        ipv4(6, tcp(100), ('tcp',), tags=(S_TAG, C_TAG)),
        ipv4(6, tcp(100), ('tcp',), tags=(OLD_TAG, C_TAG)),
        ether(0x88cc, fill(46), ('other',)),            # LLDP
        ether(38, b'\x42\x42\x03' + fill(35), ('other',)),  # 802.3 length and LLC
        ether(0x88cc, b'', ('other',)),                 # just a header
    ]


def liars():
    """Whole frames whose headers promise more than there is."""
    v4, v6 = ipv4(17, udp(22), ()).data, ipv6(17, udp(22), ()).data

    def has(data, *labels):
        return Frame(data, labels)
    return [
        has(v4[:14], 'ipv4'),                           # type, but no header behind it
        has(v4[:33], 'ipv4'),                           # half a header
        has(v4[:14] + b'\x4f' + v4[15:40], 'ipv4'),     # header length beyond the frame
        has(v4[:14] + b'\x42' + v4[15:], 'ipv4'),       # header length below the least
        has(v4[:14] + b'\x65' + v4[15:], 'ipv4'),       # another version
        has(v6[:14], 'ipv6'),
        has(v6[:53], 'ipv6'),
        has(v6[:14] + b'\x40' + v6[15:], 'ipv6'),
        has(v6[:20] + b'\x00' + v6[21:54] + b'\x11\xff' + bytes(6), 'ipv6'),
        has(v6[:20] + b'\x00' + v6[21:54] + b'\x00', 'ipv6'),
        has(v6[:20] + b'\x2c' + v6[21:54] + b'\x11\x00', 'ipv6'),
        has(v6[:20] + b'\x2c' + v6[21:54] + b'\x11\x00\x00', 'ipv6'),
        has(DST + SRC + b'\x81\x00', 'vlan', 'other'),  # a tag's type and no tag
        has(DST + SRC + b'\x81\x00\x00\x05', 'vlan', 'other'),
        has(DST + SRC + b'\x81\x00\x00\x05\x08', 'vlan', 'other'),
        has(DST + SRC + b'\x81\x00\x00\x05' * 300 + b'\x08', 'vlan', 'other'),
    ]


# ---- files ----

def pcap(frames, order='<', nano=False, link=1, snap=262144, version=(2, 4)):
    out = [struct.pack(order + 'IHHiIII', 0xa1b23c4d if nano else 0xa1b2c3d4, *version, 0, 0, snap,
                       link)]
    for i, f in enumerate(frames):
        out.append(struct.pack(order + 'IIII', 1700000000 + i, 123456789 if nano else 123456,
                               f.captured, len(f.data)) + f.data[:f.captured])
    return b''.join(out)


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    size = len(body) + 12
    return struct.pack(order + 'II', kind, size) + body + struct.pack(order + 'I', size)


def section(order='<'):
    return block(order, 0x0a0d0d0a, struct.pack(order + 'IHHq', 0x1a2b3c4d, 1, 0, -1))


def interface(order='<', link=1, snap=262144, nano=False):
    options = struct.pack(order + 'HHB3xHH', 9, 1, 9, 0, 0) if nano else b''
    return block(order, 1, struct.pack(order + 'HHI', link, 0, snap) + options)


def enhanced(f, order='<', number=0, stamp=1700000000123456):
    return block(order, 6, struct.pack(order + 'IIIII', number, stamp >> 32, stamp & 0xffffffff,
                                       f.captured, len(f.data)) + f.data[:f.captured])


def simple(f, order='<'):
    return block(order, 3, struct.pack(order + 'I', len(f.data)) + f.data[:f.captured])


def pcapng(frames, order='<', nano=False):
    stamp = 1700000000123456789 if nano else 1700000000123456
    return section(order) + interface(order, nano=nano) + b''.join(
        enhanced(f, order, stamp=stamp + i) for i, f in enumerate(frames))


# ---- what to expect ----

def good(frames, kind='pcap', swapped=False, nano=False, cut_short=False):
    used = [f for f in frames if f.refused is None]
    lengths = [len(f.data) for f in used]
    refused = {c: sum(f.refused == c for f in frames) for c in CAUSES}
    said = ['%s' % kind, '%d of %d frames' % (len(used), len(frames))]
    said += ['%d %s' % (refused[c], CAUSES[c]) for c in CAUSES if refused[c]]
    if len(frames) != len(used):
        said.append('refused %d' % (len(frames) - len(used)))
    if cut_short:
        said.append('the file ends within a frame')
    return {
        'info': {
            'format': kind, 'swapped': swapped, 'nanoseconds': nano, 'cut_short': cut_short,
            'frames': len(frames), 'usable': len(used), 'bytes': sum(lengths),
            'len_min': min(lengths), 'len_max': max(lengths),
            'refused': refused,
            'protocols': {c: sum(c in f.labels for f in used) for c in COUNTERS},
        },
        'frames': [f.data.hex() for f in used],
        'said': said,
    }


def bad(*words):
    """Refused as a whole; the message has each of the words."""
    return {'error': list(words)}


def refusals():
    """Frames of every cause between ones that can be sent."""
    p = plain()
    big = ipv4(17, udp(9000 - 42), ('udp',))
    big.refused = 'oversize'
    over = ipv4(17, udp(FRAME_MAX + 1 - 42), ('udp',))
    over.refused = 'oversize'
    return [p[0], p[2].cut(96), Frame(b'', refused='empty'), p[1], Frame(fill(13), refused='runt'),
            big, ipv4(17, udp(FRAME_MAX - 42), ('udp',)), over, p[1].cut(0, 'empty'),
            Frame(fill(1), refused='runt'), p[2]]


def captures():
    p, z = plain(), zoo()
    whole = pcap(p)
    yield 'plain.pcap', whole, good(p)
    yield 'swapped.pcap', pcap(p, '>'), good(p, swapped=True)
    yield 'nano.pcap', pcap(p, nano=True), good(p, nano=True)
    yield 'nano-swapped.pcap', pcap(p, '>', nano=True), good(p, swapped=True, nano=True)
    yield 'plain.pcapng', pcapng(p), good(p, 'pcapng')
    yield 'swapped.pcapng', pcapng(p, '>'), good(p, 'pcapng', swapped=True)
    yield 'nano.pcapng', pcapng(p, nano=True), good(p, 'pcapng', nano=True)
    yield ('simple.pcapng', section() + interface() + b''.join(simple(f) for f in p),
           good(p, 'pcapng'))
    short = [p[0], p[2].cut(96), p[1].cut(96)]
    yield ('simple-cut.pcapng',
           section() + interface(snap=96) + b''.join(simple(f) for f in short),
           good(short, 'pcapng'))
    yield ('two-interfaces.pcapng',
           section() + interface() + interface()
           + b''.join(enhanced(f, number=i % 2) for i, f in enumerate(p)), good(p, 'pcapng'))
    yield ('two-sections.pcapng', pcapng(p) + pcapng(p), good(p + p, 'pcapng'))
    yield 'zoo.pcap', pcap(z), good(z)
    yield 'zoo.pcapng', pcapng(z, '>'), good(z, 'pcapng', swapped=True)
    for i, f in enumerate(liars()):
        # The snap length makes libpcap's buffer end with the frame: sanitizers see a step beyond.
        yield 'liar-%02d.pcap' % i, pcap([f], snap=len(f.data)), good([f])
    yield 'liars.pcap', pcap(liars()), good(liars())
    yield 'one.pcap', pcap(p[:1]), good(p[:1])
    yield 'refusals.pcap', pcap(refusals()), good(refusals())
    yield 'refusals.pcapng', pcapng(refusals()), good(refusals(), 'pcapng')
    # The snap length of the header is below the frames': libpcap cuts them.
    yield 'snap.pcap', pcap([p[0], p[2].cut(1494)], snap=200), good([p[0], p[2].cut(200)])
    # More captured than there was on the wire, as some writers have it.
    fat = struct.pack('<IIII', 1700000000, 0, 68, 64) + p[0].data + fill(4)
    yield 'fat.pcap', pcap([]) + fat, good(p[:1])
    yield 'cut-in-frame.pcap', whole[:-100], good(p[:2], cut_short=True)
    yield ('cut-in-frame-header.pcap', whole + b'\0' * 7, good(p, cut_short=True))
    yield 'cut-in-frame.pcapng', pcapng(p)[:-100], good(p[:2], 'pcapng', cut_short=True)

    yield 'empty-file.pcap', b'', bad('empty')
    yield 'cut-in-header.pcap', whole[:17], bad('not a capture')
    yield 'cut-in-magic.pcap', whole[:3], bad('not a capture')
    yield 'cut-in-section.pcapng', pcapng(p)[:17], bad('not a capture')
    yield 'no-interface.pcapng', section(), bad('not a capture')
    yield 'header-only.pcap', pcap([]), bad('no frame to send')
    yield 'header-only.pcapng', pcapng([]), bad('no frame to send')
    yield 'cut-in-first-frame.pcap', whole[:60], bad('no frame to send', 'ends within a frame')
    all_cut = [f.cut(40) for f in p] + [Frame(b'', refused='empty')]
    yield ('all-refused.pcap', pcap(all_cut),
           bad('no frame to send', 'refused 4', '1 empty', '3 cut by the snap length'))
    yield 'text.pcap', b'This is no capture.\nIt only has the name of one.\n', bad('not a capture')
    yield 'version.pcap', pcap(p, version=(3, 0)), bad('not a capture', '3.0')
    yield 'raw-ip.pcap', pcap([Frame(f.data[14:]) for f in p], link=101), \
        bad('link type RAW', 'only Ethernet')
    yield 'cooked.pcap', pcap([Frame(bytes(14) + f.data[12:]) for f in p], link=113), \
        bad('link type LINUX_SLL', 'only Ethernet')
    yield 'unknown-link.pcap', pcap(p, link=60000), bad('link type 60000', 'only Ethernet')
    yield ('mixed-links.pcapng', section() + interface() + enhanced(p[0]) + interface(link=101)
           + enhanced(Frame(p[1].data[14:]), number=1), bad('frame 2', 'interface'))
    yield 'corrupt.pcap', whole + b'\xff' * 64, bad('frame 4')


def write_all(directory):
    for name, data, expected in captures():
        expected['file'] = name
        with open(os.path.join(directory, name), 'wb') as out:
            out.write(data)
        with open(os.path.join(directory, name + '.json'), 'w', encoding='ascii') as out:
            json.dump(expected, out)


def write_bulk(path, count, length):
    """Frames that differ: each carries its number behind the UDP header."""
    with open(path, 'wb') as out:
        out.write(pcap([]))
        head, rest = ipv4(17, udp(length - 42), ()).data[:42], fill(length - 46)
        for i in range(count):
            out.write(struct.pack('<IIII', 1700000000, i % 1000000, length, length) + head
                      + struct.pack('>I', i) + rest)


# ---- what was saved ----

def read_pcap(path, magic):
    """Frames of a classic little-endian pcap; fails on any byte that is not as it should be."""
    with open(path, 'rb') as stream:
        data = stream.read()
    if len(data) < 24 or struct.unpack_from('<IHH12xI', data) != (magic, 2, 4, 1):
        sys.exit('%s: not a little-endian pcap of Ethernet with magic number %#x' % (path, magic))
    frames, at = [], 24
    while at < len(data):
        _, fraction, captured, length = struct.unpack_from('<IIII', data, at)
        at += 16 + captured
        if captured != length or fraction >= 10**9 or at > len(data):
            sys.exit('%s: frame %d is not whole' % (path, len(frames)))
        frames.append(data[at - captured:at])
    return frames


def usable(path):
    if not path.endswith('.json'):
        return read_pcap(path, 0xa1b2c3d4)
    with open(path, encoding='ascii') as stream:
        return [bytes.fromhex(f) for f in json.load(stream)['frames']]


def check(saved, expected, count, burst):
    want, have = usable(expected), read_pcap(saved, 0xa1b23c4d)
    if len(have) != count:
        sys.exit('%s: %d frames, not %d' % (saved, len(have), count))
    for i, frame in enumerate(have):
        number = (i // (2 * burst) * burst + i % burst) % len(want)
        if frame != want[number]:
            sys.exit('%s: frame %d is not frame %d of the %d usable ones'
                     % (saved, i, number, len(want)))


def say(path):
    with open(path, encoding='ascii') as stream:
        expected = json.load(stream)
    print('\n'.join(expected.get('error') or expected['said']))


def main(argv):
    if len(argv) == 4 and argv[0] == '--bulk':
        write_bulk(argv[1], int(argv[2]), int(argv[3]))
    elif len(argv) == 5 and argv[0] == '--check':
        check(argv[1], argv[2], int(argv[3]), int(argv[4]))
    elif len(argv) == 2 and argv[0] == '--said':
        say(argv[1])
    elif len(argv) == 1 and not argv[0].startswith('-'):
        write_all(argv[0])
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main(sys.argv[1:])
