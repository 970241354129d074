/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "show.h"

/* ---- ports ---- */

struct mac_text {
	char text[RTE_ETHER_ADDR_FMT_SIZE];
};

static struct mac_text
mac_of(uint16_t port)
{
	struct rte_ether_addr mac = { { 0 } };
	struct mac_text t;

	rte_eth_macaddr_get(port, &mac);
	rte_ether_format_addr(t.text, sizeof(t.text), &mac);
	return t;
}

struct speed_text {
	char text[24];
};

/* As rte_eth_link_speed_to_str(), which is not part of DPDK's stable interface in 22.11. */
static struct speed_text
speed_of(uint32_t mbps)
{
	struct speed_text t;

	if (mbps == RTE_ETH_SPEED_NUM_NONE)
		snprintf(t.text, sizeof(t.text), "None");
	else if (mbps == RTE_ETH_SPEED_NUM_UNKNOWN)
		snprintf(t.text, sizeof(t.text), "Unknown");
	else if (mbps >= 1000)
		snprintf(t.text, sizeof(t.text), "%g Gbps", 1e-3 * mbps);
	else
		snprintf(t.text, sizeof(t.text), "%u Mbps", mbps);
	return t;
}

static const struct port *
find(const struct ports *p, unsigned int id)
{
	for (unsigned int i = 0; i < p->nb; i++)
		if (p->port[i].id == id)
			return &p->port[i];
	return NULL;
}

static void
show_queues(const char *kind, unsigned int now, unsigned int most, const struct rte_eth_desc_lim *d,
		FILE *out)
{
	fprintf(out,
			"Current number of %s queues: %u\n"
			"Max possible %s queues: %u\n"
			"Max possible number of %sDs per queue: %u\n"
			"Min possible number of %sDs per queue: %u\n"
			"%sDs number alignment: %u\n",
			kind, now, kind, most, kind, d->nb_max, kind, d->nb_min, kind, d->nb_align);
}

void
show_port_info(const struct port *port, FILE *out)
{
	struct rte_eth_dev_info info = { 0 };
	struct rte_eth_link link = { 0 };
	uint16_t id = port->id, mtu = 0;

	if (rte_eth_dev_info_get(id, &info) != 0)
		return;
	if (rte_eth_link_get_nowait(id, &link) != 0)
		memset(&link, 0, sizeof(link));
	rte_eth_dev_get_mtu(id, &mtu);
	fprintf(out,
			"\n********************* Infos for port %-2u *********************\n"
			"MAC address: %s\nDevice name: %s\nDriver name: %s\nConnect to socket: %d\n"
			"memory allocation on the socket: %d\n"
			"Link status: %s\nLink speed: %s\nLink duplex: %s\nAutoneg status: %s\n"
			"MTU: %u\nPromiscuous mode: %s\nAllmulticast mode: %s\n"
			"Maximum number of MAC addresses: %u\n"
			"Minimum size of RX buffer: %u\n"
			"Maximum configurable length of RX packet: %u\n",
			id, mac_of(id).text, port_name(id), info.driver_name,
			rte_eth_dev_socket_id(id), port->socket, link.link_status ? "up" : "down",
			speed_of(link.link_speed).text,
			link.link_duplex == RTE_ETH_LINK_FULL_DUPLEX ? "full-duplex"
								     : "half-duplex",
			link.link_autoneg == RTE_ETH_LINK_AUTONEG ? "On" : "Off", mtu,
			rte_eth_promiscuous_get(id) == 1 ? "enabled" : "disabled",
			rte_eth_allmulticast_get(id) == 1 ? "enabled" : "disabled",
			info.max_mac_addrs, info.min_rx_bufsize, info.max_rx_pktlen);
	show_queues("RX", info.nb_rx_queues, info.max_rx_queues, &info.rx_desc_lim, out);
	show_queues("TX", info.nb_tx_queues, info.max_tx_queues, &info.tx_desc_lim, out);
}

void
show_port_summary_head(FILE *out)
{
	fprintf(out, "Number of available ports: %u\n%-4s %-17s %-12s %-14s %-8s %s\n",
			rte_eth_dev_count_avail(), "Port", "MAC Address", "Name", "Driver",
			"Status", "Link");
}

void
show_port_summary(const struct port *port, FILE *out)
{
	struct rte_eth_dev_info info = { 0 };
	struct rte_eth_link link = { 0 };

	if (rte_eth_dev_info_get(port->id, &info) != 0 ||
			rte_eth_link_get_nowait(port->id, &link) != 0)
		return;
	fprintf(out, "%-4u %s %-12s %-14s %-8s %s\n", port->id, mac_of(port->id).text,
			port_name(port->id), info.driver_name, link.link_status ? "up" : "down",
			speed_of(link.link_speed).text);
}

/* Of a counter that only grows; one that was cleared begins at 0. */
static uint64_t
rate(uint64_t now, uint64_t before, uint64_t ticks)
{
	if (ticks == 0 || now < before)
		return 0;
	return (uint64_t)((double)(now - before) * (double)rte_get_tsc_hz() / (double)ticks);
}

void
show_port_stats(const struct port *port, FILE *out)
{
	static struct {
		struct rte_eth_stats stats;
		uint64_t tsc;
	} last[RTE_MAX_ETHPORTS];
	struct rte_eth_stats s;
	uint16_t id = port->id;
	uint64_t now = rte_rdtsc(), ticks = last[id].tsc != 0 ? now - last[id].tsc : 0;

	if (rte_eth_stats_get(id, &s) != 0)
		return;
	fprintf(out,
			"\n  ######################## NIC statistics for port %-2u ########################\n"
			"  RX-packets: %-10" PRIu64 " RX-missed: %-10" PRIu64
			" RX-bytes:  %-" PRIu64 "\n  RX-errors: %-" PRIu64
			"\n  RX-nombuf:  %-10" PRIu64 "\n  TX-packets: %-10" PRIu64
			" TX-errors: %-10" PRIu64 " TX-bytes:  %-" PRIu64
			"\n\n  Throughput (since last show)\n"
			"  Rx-pps: %12" PRIu64 "          Rx-bps: %12" PRIu64
			"\n  Tx-pps: %12" PRIu64 "          Tx-bps: %12" PRIu64
			"\n  ############################################################################\n",
			id, s.ipackets, s.imissed, s.ibytes, s.ierrors, s.rx_nombuf, s.opackets,
			s.oerrors, s.obytes, rate(s.ipackets, last[id].stats.ipackets, ticks),
			8 * rate(s.ibytes, last[id].stats.ibytes, ticks),
			rate(s.opackets, last[id].stats.opackets, ticks),
			8 * rate(s.obytes, last[id].stats.obytes, ticks));
	last[id].stats = s;
	last[id].tsc = now;
}

void
show_port_xstats(const struct port *port, FILE *out)
{
	fprintf(out, "###### NIC extended statistics for port %-2u\n", port->id);
	ports_print_xstats(port->id, NULL, "", out);
}

/* ---- forwarding ---- */

void
show_forwarding(const struct run *r, FILE *out)
{
	const struct options *o = &r->options;

	fprintf(out, "%s packet forwarding - ports=%u - cores=%u - streams=%u - NUMA support %s, MP allocation mode: native\n",
			o->mode->name, r->ports.nb_forward, r->nb_lcores, r->ports.nb_streams,
			o->numa ? "enabled" : "disabled");
	for (unsigned int i = 0; i < r->nb_lcores; i++) {
		const struct lcore *lc = &r->lcores[i];

		fprintf(out, "Logical Core %u (socket %u) forwards packets on %u streams:\n",
				lc->id, rte_lcore_to_socket_id(lc->id), lc->nb_streams);
		for (unsigned int k = 0; k < lc->nb_streams; k++) {
			const struct fwd_stream *st = lc->streams[k];
			char peer[RTE_ETHER_ADDR_FMT_SIZE];

			rte_ether_format_addr(peer, sizeof(peer), &st->peer);
			fprintf(out, "  RX P=%u/Q=%u (socket %d) -> TX P=%u/Q=%u (socket %d) peer=%s\n",
					st->rx_port, st->rx_queue, st->socket, st->tx_port,
					st->tx_queue, find(&r->ports, st->tx_port)->socket, peer);
		}
	}
	fprintf(out, "\n");
}

void
show_config(const struct run *r, FILE *out)
{
	const struct options *o = &r->options;

	fprintf(out, "  %s packet forwarding packets/burst=%u\n", o->mode->name, o->burst);
	if ((o->mode->kind & FWD_NO_RX) != 0 || strcmp(o->mode->name, "flowgen") == 0)
		fprintf(out, "  packet len=%u - nb packet segments=%u\n", o->fwd.tx_pkt_len,
				o->fwd.nb_tx_segs);
	fprintf(out, "  nb forwarding cores=%u - nb forwarding ports=%u\n", r->placement.nb,
			r->ports.nb_forward);
	for (unsigned int i = 0; i < r->ports.nb; i++) {
		const struct port *port = &r->ports.port[i];
		struct rte_eth_dev_info info = { 0 };

		if (rte_eth_dev_info_get(port->id, &info) != 0)
			continue;
		fprintf(out,
				"  port %u: RX queue number: %u Tx queue number: %u\n"
				"    Rx offloads=0x%" PRIx64 " Tx offloads=0x%" PRIx64 "\n",
				port->id, o->nb_rxq, o->nb_txq, port->rx_offloads,
				port->tx_offloads);
		for (unsigned int q = 0; q < o->nb_rxq; q++) {
			struct rte_eth_rxq_info rx = { .nb_desc = o->nb_rxd,
				.conf = info.default_rxconf };

			rte_eth_rx_queue_info_get(port->id, (uint16_t)q, &rx);
			fprintf(out,
					"    RX queue: %u\n"
					"      RX desc=%u - RX free threshold=%u\n"
					"      RX threshold registers: pthresh=%u hthresh=%u  wthresh=%u\n"
					"      RX Offloads=0x%" PRIx64 "\n",
					q, rx.nb_desc, rx.conf.rx_free_thresh,
					rx.conf.rx_thresh.pthresh, rx.conf.rx_thresh.hthresh,
					rx.conf.rx_thresh.wthresh, rx.conf.offloads);
		}
		for (unsigned int q = 0; q < o->nb_txq; q++) {
			struct rte_eth_txq_info tx = { .nb_desc = o->nb_txd,
				.conf = info.default_txconf };

			rte_eth_tx_queue_info_get(port->id, (uint16_t)q, &tx);
			fprintf(out,
					"    TX queue: %u\n"
					"      TX desc=%u - TX free threshold=%u\n"
					"      TX threshold registers: pthresh=%u hthresh=%u  wthresh=%u\n"
					"      TX offloads=0x%" PRIx64
					" - TX RS bit threshold=%u\n",
					q, tx.nb_desc, tx.conf.tx_free_thresh,
					tx.conf.tx_thresh.pthresh, tx.conf.tx_thresh.hthresh,
					tx.conf.tx_thresh.wthresh, tx.conf.offloads,
					tx.conf.tx_rs_thresh);
		}
	}
}

struct forward_stats {
	uint64_t rx, rx_dropped, tx, tx_dropped;
};

static void
show_two_lines(const struct forward_stats *s, FILE *out)
{
	fprintf(out,
			"  RX-packets: %-14" PRIu64 " RX-dropped: %-14" PRIu64 "RX-total: %" PRIu64
			"\n  TX-packets: %-14" PRIu64 " TX-dropped: %-14" PRIu64
			"TX-total: %" PRIu64 "\n",
			s->rx, s->rx_dropped, s->rx + s->rx_dropped, s->tx, s->tx_dropped,
			s->tx + s->tx_dropped);
}

static struct forward_stats
stats_of(const struct run *r, const struct port *port)
{
	struct forward_stats s = { 0 };
	struct rte_eth_stats now;

	for (unsigned int i = 0; i < r->ports.nb_streams; i++) {
		const struct fwd_stream *st = &r->ports.streams[i];
		const struct lcore_counts *base = &st->base, *edge = &st->edge;

		if (st->rx_port == port->id)
			s.rx += edge->rx_packets - base->rx_packets;
		if (st->tx_port == port->id) {
			s.tx += edge->tx_packets - base->tx_packets;
			s.tx_dropped += edge->tx_dropped - base->tx_dropped;
		}
	}
	if (rte_eth_stats_get(port->id, &now) == 0 && now.imissed > port->missed_base)
		s.rx_dropped = now.imissed - port->missed_base;
	return s;
}

#define PLUSES "++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++"

/* Busy cycles of what was recorded; testpmd takes what both directions moved, or one of a mode that has one. */
static void
show_cycles(const struct run *r, const struct forward_stats *all, FILE *out)
{
	bool sent = (r->ports.mode->kind & FWD_COUNTS_SENT) != 0;
	uint64_t cycles = 0, packets = sent ? all->tx : all->rx;

	for (unsigned int i = 0; i < r->ports.nb_streams; i++)
		cycles += r->ports.streams[i].edge.busy_cycles -
				r->ports.streams[i].base.busy_cycles;
	if (cycles == 0 || packets == 0)
		return;
	fprintf(out,
			"\n  CPU cycles/packet=%.2F (total cycles=%" PRIu64
			" / total %s packets=%" PRIu64 ") at %" PRIu64 " MHz Clock\n",
			(double)cycles / (double)packets, cycles,
			sent						    ? "tx"
					: (r->ports.mode->kind & FWD_NO_TX) ? "rx"
									    : "io",
			packets, rte_get_tsc_hz() / 1000000);
}

static void
show_bursts(const struct run *r, FILE *out)
{
	for (unsigned int i = 0; i < r->nb_lcores; i++) {
		const struct lcore *lc = &r->lcores[i];
		uint64_t all = 0;

		if ((lc->record & LCORE_RECORD_BURSTS) == 0)
			continue;
		for (unsigned int b = 0; b <= LCORE_BURST_MAX; b++)
			all += lc->edge.bursts[b] - lc->base_bursts[b];
		if (all == 0)
			continue;
		fprintf(out, "  bursts of lcore %u: %" PRIu64 " [", lc->id, all);
		for (unsigned int b = 0, n = 0; b <= LCORE_BURST_MAX; b++) {
			uint64_t count = lc->edge.bursts[b] - lc->base_bursts[b];

			if (count == 0)
				continue;
			fprintf(out, "%s%.3g%% of %u pkts", n++ > 0 ? " + " : "",
					100 * (double)count / (double)all, b);
		}
		fprintf(out, "]\n");
	}
}

void
show_forward_stats(const struct run *r, FILE *out)
{
	struct forward_stats all = { 0 };

	for (unsigned int i = 0; i < r->ports.nb_forward; i++) {
		const struct port *port = ports_forwarding(&r->ports, i);
		struct forward_stats s = stats_of(r, port);

		fprintf(out, "\n  ---------------------- Forward statistics for port %-2u ----------------------\n",
				port->id);
		show_two_lines(&s, out);
		fprintf(out, "  ----------------------------------------------------------------------------\n");
		all.rx += s.rx;
		all.rx_dropped += s.rx_dropped;
		all.tx += s.tx;
		all.tx_dropped += s.tx_dropped;
	}
	fprintf(out, "\n  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++\n");
	show_two_lines(&all, out);
	show_bursts(r, out);
	fprintf(out, "  " PLUSES "\n");
	show_cycles(r, &all, out);
}
