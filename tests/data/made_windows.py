# SPDX-License-Identifier: BSD-3-Clause
"""windows.csv of runs that are made up, for tests. The columns are those of docs/results.md."""

import csv
import os

COLUMNS = """schema run_id utc_start host scenario block position visit window warmup tainted taint mode source
burst pkt_len lcore cpu sibling_cpu relation duration_ns tsc_delta tsc_hz rx_packets tx_packets tx_dropped
rx_missed rx_nombuf polls empty_polls pps tsc_cycles_per_packet busy_cycles_per_packet core_cycles_per_packet
instructions_per_packet irqs ctx_switches steal_ns smi sibling_idle_entries sibling_idle_ns sibling_state
sibling_spec_ctrl emulated""".split()


def visits(arms, blocks):
    """Block, position, visit (from 1) and arm: forward and backward, every other block reversed."""
    visit = 0
    for block in range(blocks):
        order = arms + arms[::-1] if block % 2 == 0 else arms[::-1] + arms
        for position, arm in enumerate(order, 1):
            visit += 1
            yield block + 1, position, visit, arm


def window(scenario, block, position, visit, packets, ticks, **more):
    """The only window of a visit: a second long, of so many packets and TSC ticks."""
    packets = round(packets)
    row = {
        "schema": 1, "host": "lab", "scenario": scenario, "block": block, "position": position,
        "utc_start": "2023-07-27T%02d:%02d:%02d.000Z" % (visit // 3600, visit // 60 % 60, visit % 60),
        "visit": visit, "window": 1, "warmup": 0, "mode": "macswap", "source": "dev", "burst": 32,
        "pkt_len": 64, "lcore": 1, "cpu": 1, "sibling_cpu": 2, "relation": "smt",
        "duration_ns": 10**9, "tsc_delta": ticks, "tsc_hz": ticks, "rx_packets": packets,
        "tx_packets": packets, "tx_dropped": 0, "polls": 10**6, "empty_polls": 0, "pps": packets,
        "tsc_cycles_per_packet": ticks / packets if packets else "", "emulated": 0, **more,
    }
    row["tainted"] = int(row.setdefault("taint", "") != "")
    return row


def write(name, windows, columns=None):
    """Make the directory name with these windows; their run is called so unless they say otherwise."""
    os.makedirs(name)
    with open(os.path.join(name, "windows.csv"), "w", newline="") as file:
        out = csv.DictWriter(
            file, columns or COLUMNS, restval="", extrasaction="ignore", lineterminator="\n"
        )
        out.writeheader()
        out.writerows({"run_id": name, **row} for row in windows)
