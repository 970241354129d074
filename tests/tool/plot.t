#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# scripts/plot as its user sees it: pictures and report of runs that are made up.
. tests/tap.sh

plot=$PWD/scripts/plot
/usr/bin/python3 -c 'import matplotlib' 2>/dev/null || { skip plot "no matplotlib"; end_tests; }
export PYTHONPATH=$PWD/tests/data PYTHONDONTWRITEBYTECODE=1
cd "$tmp" || exit 1
export MPLCONFIGDIR=$tmp/mpl

# directory NAME BLOCKS ARM...: an arm is SCENARIO;PPS;CYCLES[;SCATTER[;TAINT[;BURST[;LOOKUPS]]]]; scatter in
# percent. An arm without look-ups has no such column. The order is ABBA, a visit has a window.
directory() {
	/usr/bin/python3 - "$@" <<'PYTHON'
import os, sys
from made_windows import COLUMNS, visits, window, write
name, blocks, arms = sys.argv[1], int(sys.argv[2]), [(a + ";;;;").split(";") for a in sys.argv[3:]]
def rows():
    for block, position, visit, arm in visits(arms, blocks):
        pps = float(arm[1]) * (1 + float(arm[3] or 0) / 100 * ((7 * block + 3 * position) % 5 - 2))
        yield window(arm[0], block, position, visit, pps, round(pps * float(arm[2])), run_id="r1", taint=arm[4],
                     burst=arm[5] or 32, host=os.environ.get("HOST_NAME", "lab"),
                     emulated=os.environ.get("EMULATED", 0), noisy_lookups=arm[6])
write(name, rows(), COLUMNS + ["noisy_lookups"] * any(arm[6] for arm in arms))
PYTHON
}

# draws DIR NAME...: done, nothing said on stderr; these pictures are there, both kinds, and no others.
draws() {
	local dir=$1 name
	shift
	"$plot" "$dir" --html >out 2>err || { cat err; return 1; }
	[ ! -s err ] || { cat err; return 1; }
	is "$(cd "$dir" && ls ./*.png ./*.svg | tr '\n' ' ')" \
		"$(for name in "$@"; do printf './%s.png\n./%s.svg\n' "$name" "$name"; done | LC_ALL=C sort |
			tr '\n' ' ')" pictures || return 1
	for name in "$@"; do
		/usr/bin/python3 - "$dir/$name" <<'PYTHON' || return 1
import sys, xml.etree.ElementTree as e
assert open(sys.argv[1] + ".png", "rb").read(8) == b"\x89PNG\r\n\x1a\n"
assert e.parse(sys.argv[1] + ".svg").getroot().tag.endswith("svg")
PYTHON
	done
	is "$(tail -n 1 out)" "$dir/report.html" "last line"
}

# shown SVG WORDS...: the words stand in the text of a picture, whose lines are joined.
shown() {
	/usr/bin/python3 - "$@" <<'PYTHON'
import sys, xml.etree.ElementTree as e
texts = ["".join(t.itertext()) for t in e.parse(sys.argv[1]).iter("{http://www.w3.org/2000/svg}text")]
text = " ".join(" ".join(texts).split())
for words in sys.argv[2:]:
    assert words in text, (words, text)
PYTHON
}

# page DIR WORDS...: report.html is well-formed and self-contained, and its text has the words.
page() {
	/usr/bin/python3 - "$@" <<'PYTHON'
import sys
from html.parser import HTMLParser
allowed = set("html head meta title style body h1 h2 h3 p span table tr th td ul li img".split())
class Page(HTMLParser):
    open, text = [], []
    def handle_starttag(self, tag, attributes):
        assert tag in allowed, tag
        for name, value in attributes:
            assert name in ("lang", "charset", "class", "src", "alt"), (tag, name, value)
            assert name != "src" or value.startswith("data:image/png;base64,"), value
        if tag not in ("meta", "img"):
            self.open.append(tag)
    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag
    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text.append(data)
page = Page()
content = open(sys.argv[1] + "/report.html", encoding="utf-8").read()
page.feed(content)
page.close()
assert not page.open, page.open
assert "@import" not in content and "url(" not in content
text = " ".join(" ".join(page.text).split())
for words in sys.argv[2:]:
    assert words in text, (words, text)
PYTHON
}

# ---- two scenarios ----

directory two 10 'c1+keep;7.8e6;282.26;0.5' 'c1+clear;10.4e6;209.86;0.5'
cat >two/result.json <<'JSON'
{"run_id": "r1", "version": "0.1.0", "command_line": ["dpdk-sibfwd", "--out=two"], "order": "abba",
"published": {"machine": "a <big> machine", "rows": [
	{"scenario": "c1+keep", "label": "ibrs-on", "pps": 7800000.0, "tsc_cycles_per_packet": 282.26},
	{"scenario": "c1+clear", "label": "ibrs-off", "pps": 10400000.0, "tsc_cycles_per_packet": 209.86}]},
"estimates": {"scenarios": [{"scenario": "c1+keep", "all": {"windows": 20, "pps": 7801000.0,
	"tsc_cycles_per_packet": 282.261, "pps_mean": 7802000.0, "pps_mean_half_width": 12300.0}, "untainted": null}]},
"comparisons": [{"base": "c1+keep", "other": "c1+clear", "n_base": 10, "change_percent": 33.333,
	"interval_percent": [33.1, 33.5], "cycles_change_percent": -25.65, "sign_test_p": 0.00195,
	"verdict": "improvement", "drift_warning": true}, {"base": "c1+keep", "other": "x",
	"interval_percent": [null, null], "tainted_only": true, "verdict": "inconclusive"}],
"margin_percent": 2.0, "warnings": ["the <b>sibling</b> & its load"]}
JSON
echo '{"before": {"kernel": {"release": "6.1.0"}, "load": "1", "l": [1, null]},
	"after": {"kernel": {"release": "6.1.0"}, "load": "2<", "l": [1, null]}}' >two/environment.json
ok "two scenarios: windows, scenarios, ratios and a report" draws two ratios scenarios windows
ok "the scenarios, with units and what is published" shown two/scenarios.svg "rate (Mpps)" "TSC cycles/packet" \
	c1+keep c1+clear "95 % t interval" "published, a <big> machine" ibrs-on ibrs-off
ok "the ratios" shown two/ratios.svg "c1+clear over c1+keep" "ratio of the rates" block "95 % t interval"
ok "the windows, with their visits" shown two/windows.svg "visit to c1+keep" "visit to c1+clear" \
	"start of the window (s after the first)"
ok "the report has heading, comparisons, estimates, warnings" page two "lab, 2023-07-27, macswap" \
	"c1+clear over c1+keep 10 +33.33 [+33.10, +33.50] -25.65 0.0019 improvement, drift" \
	"x over c1+keep - - - - - inconclusive, tainted only" "margin of 2 %" \
	"c1+keep all 20 7.8010 282.26 7.8020 0.0123" "the <b>sibling</b> & its load" "a <big> machine" \
	"c1+clear ibrs-off 10.4000 209.86" "c1+keep 20 0"
ok "and the environment, with what changed" page two "kernel.release 6.1.0" "load 1 2<" "l[1] null"
ok "nothing is called emulated" eval '! grep -q "emulated</span>" two/report.html &&
	! grep -q emulated two/windows.svg'
ok "the report goes where --out says" eval '"$plot" two --html --zoom --out there >out && page there c1+keep &&
	[ -s there/ratios.png ]'
ok "without --html there is none" eval '"$plot" two --out bare >out && [ ! -e bare/report.html ]'

# ---- sweeps ----

arms=()
for burst in 1 4 32 512; do
	arms+=("c1+keep;$((4000000 + 1000 * burst));$((500 - burst / 2));0.5;;$burst")
	arms+=("c1+clear;$((5000000 + 1000 * burst));$((400 - burst / 2));0.5;;$burst")
done
directory bursts 4 "${arms[@]}"
ok "a sweep over bursts" draws bursts ratios scenarios sweep windows
ok "has the effect over the cycles" shown bursts/sweep.svg "burst (packets)" "rate (Mpps)" "TSC cycles/packet" \
	512 "TSC cycles/packet of c1+keep" "change of the rate (%)" "c1+clear over c1+keep" "burst 4"
ok "its arms have the burst in their names" shown bursts/scenarios.svg "c1+keep burst 1" "c1+clear burst 512"
ok "the ratios of many stand side by side" shown bursts/ratios.svg "at the right: 95 % t interval" \
	"c1+clear burst 512 over c1+keep burst 1"
directory lookups 3 'a;9e6;200;1;;;0' 'b;9e6;200;1;;;0' 'a;5e6;400;1;;;10' 'b;6e6;350;1;;;10'
ok "a sweep over look-ups" draws lookups ratios scenarios sweep windows
ok "says so" shown lookups/sweep.svg "look-ups (number a packet)" "look-ups 10"
directory same 3 'a;9e6;200;1;;;5' 'b;9e6;200;1;;;5'
ok "look-ups that do not vary are no sweep" eval 'draws same ratios scenarios windows && hasnt same/scenarios.svg look-ups'
directory both 2 'a;9e6;200;1;;1;0' 'a;8e6;210;1;;2;0' 'a;5e6;400;1;;1;10' 'a;4e6;450;1;;2;10'
ok "bursts and look-ups: a line a burst" eval 'draws both ratios scenarios sweep windows &&
	shown both/sweep.svg "a, burst 1" "a, burst 2" "look-ups (number a packet)" && hasnt both/sweep.svg change'
arms=()
for burst in 1 2 4 8 16 32 64 128 256 512; do
	arms+=("c1+keep;9e6;300;1;;$burst" "c1+clear;9.5e6;280;1;;$burst")
done
directory large 2 "${arms[@]}"
ok "twenty arms" draws large ratios scenarios sweep windows
directory three 3 'a;9e6;200;1' 'b;8e6;230;1' 'c;7e6;260;1'
ok "three scenarios: each over the first" eval 'draws three ratios scenarios windows &&
	shown three/ratios.svg "b over a" "c over a"'

# ---- little data ----

directory one 1 'a;9e6;200' 'b;8e6;230'
ok "one block has no interval, and is drawn" draws one ratios scenarios windows
ok "without result.json the report says so" page one "no result.json" "no environment.json" "a 2 0"
directory dirty 3 'a;9e6;200;1;irqs' 'b;8e6;230;1;irqs;;'
ok "tainted windows alone are hollow, and called so" eval 'draws dirty ratios scenarios windows &&
	shown dirty/scenarios.svg "tainted windows only (hollow)" && ! shown dirty/scenarios.svg untainted 2>err && shown dirty/ratios.svg "tainted only (hollow)" &&
	page dirty "scenario windows tainted irqs a 6 6 6 b 6 6 6"'
directory half 3 'a;9e6;200;1' 'b;8e6;230;1;smi'
ok "an arm without a clean window beside one with" draws half ratios scenarios windows
directory none 2 'a;0;1' 'b;0;1'
ok "no packets at all: no ratios" draws none scenarios windows
directory alone 3 'a;9e6;200;1'
ok "one scenario has its windows and a report" eval 'draws alone windows && page alone "a 6 0"'
EMULATED=1 directory emulated 2 'a;9e6;200;1' 'b;8e6;230;1'
ok "an emulated machine is called so, everywhere" eval 'draws emulated ratios scenarios windows &&
	page emulated "emulated The figures say nothing" && shown emulated/ratios.svg emulated &&
	shown emulated/scenarios.svg emulated'

# ---- hostile input ----

HOST_NAME='<script>alert("h")</script>&amp;' directory evil 2 \
	'<script>alert(1)</script>"&$x_{1}$;9e6;200;1' "_'><img src=http://x/>;8e6;230;1"
echo '{"warnings": ["</ul><script src=\"http://x\"></script>", 7], "comparisons": [3, {"other": "<i>"}],
	"estimates": [1], "published": {"rows": 5}, "command_line": "x", "emulated": "<b>"}' >evil/result.json
echo '{"before": {"<u>": "</table>"}, "after": 1}' >evil/environment.json
ok "names and texts are escaped" eval 'draws evil ratios scenarios windows &&
	page evil "<script>alert(\"h\")</script>&amp;," "_'"'"'><img src=http://x/>" "<i> over None" "<u> </table>"'
ok "and stand in the pictures as they are" shown evil/ratios.svg '$x_{1}$' "_'><img"
echo '{"warnings": [' >evil/result.json
ok "a result.json that is none is named" eval '! "$plot" evil --html >out 2>err && is "$(wc -l <err)" 1 lines &&
	has err evil/result.json'
echo '[]' >evil/result.json
ok "as is one that is no object" eval '! "$plot" evil --html >out 2>err && has err "not an object"'

# ---- the interval ----

if /usr/bin/python3 -c 'import scipy' 2>/dev/null; then
	ok "the t quantile by scipy" /usr/bin/python3 - "$plot" <<'PYTHON'
import importlib.machinery, importlib.util, math, sys
from scipy import stats
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("plot", sys.argv[1])
plot = importlib.util.module_from_spec(importlib.util.spec_from_loader("plot", loader))
loader.exec_module(plot)
for df in [*range(1, 60), 99, 100, 1000, 10001]:
    for level in (0.5, 0.95, 0.975, 0.999):
        wanted = stats.t.ppf((1 + level) / 2, df)
        assert math.isclose(plot.t_quantile(df, level), wanted, rel_tol=1e-8), (df, level)
mean, half = plot.mean_of([1.0, 2.0, 4.0, 7.0])
low, high = stats.t.interval(0.95, 3, mean, stats.sem([1.0, 2.0, 4.0, 7.0]))
assert math.isclose(mean - half, low) and math.isclose(mean + half, high)
PYTHON
else
	skip "the t quantile by scipy" "no scipy"
fi

end_tests
