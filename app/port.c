/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <net/if.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_version.h>

#include "machine.h"
#include "port.h"
#include "stop.h"
#include "warn.h"

#define DESC_POOL 1024 /* mbufs reserved a queue where the driver does not say */
#define LINK_WAIT_S 9.0 /* as testpmd */
#define FLUSH_S 0.1 /* virtual devices never run empty */
#define RING_FRAMES 512 /* that circulate in a port of --source=ring, at the most */
#define EAL_OVERHEAD_MIB 64 /* what EAL, rings and drivers take beside the pool, with room */

static atomic_bool removed[RTE_MAX_ETHPORTS];

static int
on_removed(uint16_t id, enum rte_eth_event_type type, void *arg, void *ret)
{
	RTE_SET_USED(type);
	RTE_SET_USED(arg);
	RTE_SET_USED(ret);
	atomic_store(&removed[id], true);
	return 0;
}

const char *
port_name(uint16_t id)
{
	static char name[RTE_ETH_NAME_MAX_LEN];

	if (rte_eth_dev_get_name_by_port(id, name) != 0)
		snprintf(name, sizeof(name), "gone");
	return name;
}

/* ---- which ports ---- */

static int
make_port(struct ports *p, const char *driver, unsigned int number, const char *args,
		struct err *err)
{
	char name[32];
	uint16_t id;
	int rc;

	snprintf(name, sizeof(name), "net_%s%u", driver, number);
	if (rte_eth_dev_get_port_by_name(name, &id) == 0)
		return err_set(err, EXIT_USAGE,
				"--vdev=%s and --source contradict each other: that source makes the port",
				name);
	rc = rte_eal_hotplug_add("vdev", name, args);
	if (rc != 0 || rte_eth_dev_get_port_by_name(name, &id) != 0)
		return err_set(err, EXIT_FAILED, "cannot make the port %s (%s): %s", name, args,
				rc != 0 ? strerror(-rc) : "driver net_* not loaded");
	p->port[p->nb++].id = id;
	return 0;
}

/* The two virtual ports of --source. */
static int
make_ports(struct ports *p, const struct options *o, const struct capture *capture, struct err *err)
{
	static const char *const drivers[] = {
		[SOURCE_NULL] = "null", [SOURCE_PCAP] = "pcap", [SOURCE_RING] = "ring"
	};
	char args[2048] = "";
	size_t used = 0;

	if (o->source == SOURCE_NULL)
		snprintf(args, sizeof(args), "size=%u", o->null_len);
	for (unsigned int q = 0; o->source == SOURCE_PCAP && q < o->nb_rxq; q++) {
		int n = snprintf(args + used, sizeof(args) - used, "rx_pcap=%s,", capture->path);

		used += (size_t)n;
		if (used + 16 > sizeof(args))
			return err_set(err, EXIT_USAGE, "--rxq=%u: more than net_pcap has",
					o->nb_rxq);
	}
	/* Frames are read once into mbufs, and then sent round and round from memory. */
	if (o->source == SOURCE_PCAP)
		snprintf(args + used, sizeof(args) - used, "infinite_rx=1");
	p->own = true;
	for (unsigned int i = 0; i < 2; i++)
		if (make_port(p, drivers[o->source], i, args, err) != 0)
			return -1;
	return 0;
}

static int
take_port(struct ports *p, uint16_t id, const char *option, struct err *err)
{
	if (id >= RTE_MAX_ETHPORTS || !rte_eth_dev_is_valid_port(id))
		return err_set(err, EXIT_USAGE, "--%s: port %u does not exist, there are %u",
				option, id, rte_eth_dev_count_avail());
	p->port[p->nb++].id = id;
	return 0;
}

/* EAL starts without a --vdev that it cannot make; a figure without it would mislead. */
static int
check_vdevs(struct err *err)
{
	struct rte_devargs *da;
	uint16_t id;

	RTE_EAL_DEVARGS_FOREACH("vdev", da)
	{
		if (strncmp(da->name, "net_", 4) == 0 &&
				rte_eth_dev_get_port_by_name(da->name, &id) != 0)
			return err_set(err, EXIT_FAILED, "--vdev=%s: DPDK cannot make this port",
					da->name);
	}
	return 0;
}

static int
take_ports(struct ports *p, const struct options *o, struct err *err)
{
	uint16_t id;

	if (check_vdevs(err) != 0)
		return -1;
	if (rte_eth_dev_count_avail() == 0)
		return err_set(err, EXIT_FAILED,
				"no ports: bind a NIC for DPDK, name a --vdev, or use --source=null");
	for (unsigned int i = 0; i < o->nb_ports; i++)
		if (take_port(p, o->ports[i], "portlist", err) != 0)
			return -1;
	for (id = 0; o->portmask >> id != 0; id++)
		if ((o->portmask >> id & 1) != 0 && take_port(p, id, "portmask", err) != 0)
			return -1;
	if (p->nb != 0)
		return 0;
	RTE_ETH_FOREACH_DEV (id)
		if (p->nb < OPTIONS_PORTS_MAX)
			p->port[p->nb++].id = id;
	return 0;
}

static int
port_error(const struct port *port, const char *what, int rc, struct err *err)
{
	return err_set(err, EXIT_FAILED, "port %u (%s): %s: %s", port->id, port_name(port->id),
			what, strerror(-rc));
}

static uint16_t
ring_size(uint16_t asked, uint16_t wished)
{
	if (asked != 0)
		return asked;
	return wished != 0 ? wished : DESC_POOL;
}

/* What the port can do, before anything is made for what it cannot; notes its descriptors. */
static int
check_limits(const struct options *o, struct port *port, struct err *err)
{
	struct rte_eth_dev_info info = { 0 };
	int rc = rte_eth_dev_info_get(port->id, &info);
	const struct {
		const char *option;
		unsigned int value, least, most;
	} limits[] = {
		{ "rxq", o->nb_rxq, 1, info.max_rx_queues },
		{ "txq", o->nb_txq, 1, info.max_tx_queues },
		{ "rxd", o->nb_rxd, info.rx_desc_lim.nb_min, info.rx_desc_lim.nb_max },
		{ "txd", o->nb_txd, info.tx_desc_lim.nb_min, info.tx_desc_lim.nb_max },
	};

	if (rc != 0)
		return port_error(port, "no information", rc, err);
	for (unsigned int i = 0; i < RTE_DIM(limits); i++)
		if (limits[i].value != 0 &&
				(limits[i].value > limits[i].most ||
						limits[i].value < limits[i].least))
			return err_set(err, EXIT_USAGE, "--%s=%u: port %u (%s) takes %u to %u",
					limits[i].option, limits[i].value, port->id,
					port_name(port->id), limits[i].least, limits[i].most);
	/* As ethdev resolves 0: the driver's wish. Drivers without one get what it falls back to. */
	port->rxd = ring_size(o->nb_rxd, info.default_rxportconf.ring_size);
	port->txd = ring_size(o->nb_txd, info.default_txportconf.ring_size);
	return 0;
}

/* ---- pools ---- */

/* Frames that the loop, the ports on one node and the modes can hold at once. */
static uint64_t
mbufs_needed(const struct ports *p, const struct capture *capture, unsigned int nb_lcores,
		int socket, bool smallest)
{
	const struct options *o = p->options;
	/* By commands the burst may grow, and the mode become noisy. */
	bool prompt = options_prompt(o);
	uint64_t burst = prompt ? LCORE_BURST_MAX : o->burst;
	uint64_t lcores = (uint64_t)nb_lcores * (o->mbcache * 3 / 2 + 2 * burst);
	uint64_t n = lcores;

	for (unsigned int i = 0; i < p->nb; i++) {
		if (p->port[i].socket != socket)
			continue;
		/* Own sources have no rings that hold frames, but net_ring's. */
		if (!smallest || !p->own || o->source == SOURCE_RING)
			n += (uint64_t)o->nb_rxq * p->port[i].rxd +
					(uint64_t)o->nb_txq * p->port[i].txd;
		if (capture != NULL)
			n += o->nb_rxq * capture->info.usable;
		if (prompt || strcmp(o->mode->name, "noisy") == 0)
			n += (uint64_t)o->nb_rxq * o->fwd.noisy_buffer;
	}
	return n;
}

/*
 * Memory of n mbufs, MiB. Objects do not cross pages, so with 4 KiB pages a pool takes a page
 * an mbuf (or the pages of a larger one).
 */
static uint64_t
mib_needed(const struct ports *p, uint64_t n)
{
	const struct options *o = p->options;
	uint16_t mbuf_size = o->mbuf_size;
	/* Each stream of mode noisy has its own. */
	uint64_t lookups = o->fwd.noisy_memory_mib * p->nb * RTE_MIN(o->nb_rxq, o->nb_txq);
	uint32_t object = rte_mempool_calc_obj_size(
			(uint32_t)sizeof(struct rte_mbuf) + mbuf_size, 0, NULL);
	uint64_t bytes = n * object;

	if (!rte_eal_has_hugepages()) {
		uint64_t page = 4096, per_page = page / object;

		bytes = per_page > 0 ? (n + per_page - 1) / per_page * page
				     : n * RTE_ALIGN_CEIL((uint64_t)object, page);
	}
	/* The pool's own ring, and net_pcap's of the frames, hold a pointer an mbuf each. */
	return (bytes + 2 * sizeof(void *) * rte_align64pow2(n + 1)) / (1 << 20) + lookups +
			EAL_OVERHEAD_MIB;
}

static int
make_pool(struct ports *p, const struct capture *capture, unsigned int nb_lcores, struct port *port,
		struct err *err)
{
	const struct options *o = p->options;
	uint64_t least = mbufs_needed(p, capture, nb_lcores, port->socket, true);
	uint64_t n = o->total_mbufs;
	char name[32];

	if (n == 0)
		n = mbufs_needed(p, capture, nb_lcores, port->socket, false);
	else if (n < least)
		return err_set(err, capture != NULL ? EXIT_FAILED : EXIT_USAGE,
				"--total-num-mbufs=%u: too small%s, %llu mbufs are needed: give --total-num-mbufs=%llu and EAL -m %llu",
				o->total_mbufs, capture != NULL ? " for the capture" : "",
				(unsigned long long)least, (unsigned long long)least,
				(unsigned long long)mib_needed(p, least));
	snprintf(name, sizeof(name), "sibfwd_%d", port->socket);
	port->pool = n > UINT32_MAX / 2 ? NULL
					: rte_pktmbuf_pool_create(name, (unsigned int)n, o->mbcache,
							  0, o->mbuf_size, port->socket);
	if (port->pool == NULL)
		return err_set(err, EXIT_FAILED,
				"no memory for %llu mbufs of %u bytes%s: give EAL -m %llu or more huge pages",
				(unsigned long long)n, o->mbuf_size,
				capture != NULL ? " (the capture is held in them)" : "",
				(unsigned long long)mib_needed(p, n));
	return 0;
}

/* The node that a port's pool is on. */
static int
port_socket(const struct options *o, uint16_t id)
{
	struct rte_eth_dev_info info = { 0 };
	int socket = rte_eth_dev_socket_id(id);

	if (o->socket >= 0)
		return o->socket;
	if (!o->numa)
		return 0;
	/*
	 * Memory of a virtual port belongs beside the lcore that touches it; the drivers name the
	 * main lcore's node, or none.
	 */
	if (socket < 0 || rte_eth_dev_info_get(id, &info) != 0 ||
			strcmp(rte_bus_name(rte_dev_bus(info.device)), "vdev") == 0)
		socket = (int)rte_lcore_to_socket_id(rte_get_next_lcore(-1, 1, 0));
	return socket;
}

static bool
have_socket(int socket)
{
	for (unsigned int i = 0; i < rte_socket_count(); i++)
		if (rte_socket_id_by_idx(i) == socket)
			return true;
	return false;
}

static int
make_pools(struct ports *p, const struct capture *capture, unsigned int nb_lcores, struct err *err)
{
	if (p->options->socket >= 0 && !have_socket(p->options->socket))
		return err_set(err, EXIT_USAGE, "--socket-num=%d: this machine has no such node",
				p->options->socket);
	for (unsigned int i = 0; i < p->nb; i++)
		p->port[i].socket = port_socket(p->options, p->port[i].id);
	for (unsigned int i = 0; i < p->nb; i++) {
		for (unsigned int k = 0; k < i && p->port[i].pool == NULL; k++)
			if (p->port[k].socket == p->port[i].socket)
				p->port[i].pool = p->port[k].pool;
		if (p->port[i].pool == NULL &&
				make_pool(p, capture, nb_lcores, &p->port[i], err) != 0)
			return -1;
	}
	return 0;
}

/* ---- configuration ---- */

/* Frames longer than one mbuf need segments, and a port that can send and receive them. */
static void
ask_offloads(const struct options *o, const struct rte_eth_dev_info *info,
		struct rte_eth_conf *conf)
{
	uint32_t room = o->mbuf_size - RTE_PKTMBUF_HEADROOM;
	bool segments = o->max_pkt_len > room || o->fwd.nb_tx_segs > 1;

	if (segments) {
		conf->txmode.offloads |= info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
		if (o->max_pkt_len > room)
			conf->rxmode.offloads |= info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
		if ((info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) == 0)
			warn("driver %s does not say that it sends frames of several segments",
					info->driver_name);
	} else {
		conf->txmode.offloads |= info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	}
	if (o->nb_rxq > 1) {
		conf->rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IP & info->flow_type_rss_offloads;
		if (conf->rx_adv_conf.rss_conf.rss_hf != 0)
			conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	}
	if ((*info->dev_flags & RTE_ETH_DEV_INTR_RMV) != 0)
		conf->intr_conf.rmv = 1;
}

static int
set_mtu(const struct options *o, const struct port *port, const struct rte_eth_dev_info *info,
		struct rte_eth_conf *conf, struct err *err)
{
	uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;

	if (o->max_pkt_len == 0)
		return 0;
	if (info->max_mtu != UINT16_MAX && info->max_rx_pktlen > info->max_mtu)
		overhead = info->max_rx_pktlen - info->max_mtu;
	if (o->max_pkt_len > info->max_rx_pktlen || o->max_pkt_len <= overhead)
		return err_set(err, EXIT_USAGE,
				"--max-pkt-len=%u: port %u (%s) takes frames of up to %u bytes",
				o->max_pkt_len, port->id, port_name(port->id), info->max_rx_pktlen);
	conf->rxmode.mtu = o->max_pkt_len - overhead;
	return 0;
}

static int
setup_queues(const struct options *o, struct port *port, const struct rte_eth_dev_info *info,
		const struct rte_eth_conf *conf, struct err *err)
{
	struct rte_eth_rxconf rx = info->default_rxconf;
	struct rte_eth_txconf tx = info->default_txconf;
	int rc;

	rx.offloads = conf->rxmode.offloads;
	tx.offloads = conf->txmode.offloads;
	for (uint16_t q = 0; q < o->nb_rxq; q++) {
		rc = rte_eth_rx_queue_setup(port->id, q, o->nb_rxd, (unsigned int)port->socket, &rx,
				port->pool);
		if (rc != 0)
			return port_error(port, "receive queue", rc, err);
	}
	for (uint16_t q = 0; q < o->nb_txq; q++) {
		rc = rte_eth_tx_queue_setup(
				port->id, q, o->nb_txd, (unsigned int)port->socket, &tx);
		if (rc != 0)
			return port_error(port, "transmit queue", rc, err);
	}
	return 0;
}

static int
start_port(const struct options *o, struct port *port, struct err *err)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf = { 0 };
	int rc = rte_eth_dev_info_get(port->id, &info);

	if (rc != 0)
		return port_error(port, "no information", rc, err);
	port->if_index = info.if_index;
	if (set_mtu(o, port, &info, &conf, err) != 0)
		return -1;
	ask_offloads(o, &info, &conf);
	port->rx_offloads = conf.rxmode.offloads;
	port->tx_offloads = conf.txmode.offloads;
	rc = rte_eth_dev_configure(port->id, o->nb_rxq, o->nb_txq, &conf);
	if (rc != 0)
		return port_error(port, "cannot be configured", rc, err);
	if (setup_queues(o, port, &info, &conf, err) != 0)
		return -1;
	rc = rte_eth_dev_start(port->id);
	if (rc != 0)
		return port_error(port, "does not start", rc, err);
	port->started = true;
	rc = rte_eth_promiscuous_enable(port->id);
	if (rc != 0 && rc != -ENOTSUP)
		warn("port %u (%s): no promiscuous mode: %s", port->id, port_name(port->id),
				strerror(-rc));
	rte_eth_macaddr_get(port->id, &port->mac);
	rte_eth_dev_callback_register(port->id, RTE_ETH_EVENT_INTR_RMV, on_removed, NULL);
	return 0;
}

static bool
link_up(uint16_t id)
{
	struct rte_eth_link link = { 0 };

	return rte_eth_link_get_nowait(id, &link) != 0 || link.link_status == RTE_ETH_LINK_UP;
}

static void
wait_links(const struct ports *p)
{
	double waited = 0;
	bool all = false;

	while (!all && !stop_asked()) {
		all = true;
		for (unsigned int i = 0; i < p->nb; i++)
			all &= link_up(p->port[i].id);
		if (all || waited >= LINK_WAIT_S)
			break;
		stop_sleep(0.1);
		waited += 0.1;
	}
	for (unsigned int i = 0; !all && i < p->nb; i++)
		if (!link_up(p->port[i].id))
			warn("port %u (%s): the link is down", p->port[i].id,
					port_name(p->port[i].id));
}

/* Frames that still wait in a port; drivers of rings leave them where they are. Some ports never run empty. */
static void
drain(const struct ports *p, const struct port *port)
{
	struct rte_mbuf *pkts[LCORE_BURST_MAX];
	uint32_t left = port->pool->size;

	for (uint16_t q = 0; q < p->options->nb_rxq; q++)
		for (uint16_t n = 1; n != 0 && left > 0; left -= RTE_MIN(n, left)) {
			n = rte_eth_rx_burst(port->id, q, pkts, LCORE_BURST_MAX);
			rte_pktmbuf_free_bulk(pkts, n);
		}
}

/* ---- which forward ---- */

const struct port *
ports_forwarding(const struct ports *p, unsigned int i)
{
	return &p->port[p->forward[i]];
}

int
ports_set_forward(struct ports *p, const uint16_t *ids, unsigned int nb, struct err *err)
{
	unsigned int found[OPTIONS_PORTS_MAX];

	for (unsigned int i = 0; i < nb; i++) {
		found[i] = 0;
		while (found[i] < p->nb &&
				(p->port[found[i]].id != ids[i] || p->port[found[i]].closed))
			found[i]++;
		if (found[i] == p->nb)
			return err_set(err, EXIT_USAGE, "Invalid port %u", ids[i]);
	}
	memcpy(p->forward, found, nb * sizeof(*found));
	p->nb_forward = nb;
	return 0;
}

int
ports_stop(const struct ports *p, struct port *port, struct err *err)
{
	int rc = 0;

	/* Of one that is stopped nothing can be received any more. */
	if (port->started) {
		drain(p, port);
		rc = rte_eth_dev_stop(port->id);
	}
	if (rc != 0)
		return port_error(port, "does not stop", rc, err);
	port->started = false;
	return 0;
}

int
ports_start(struct port *port, struct err *err)
{
	int rc = port->started ? 0 : rte_eth_dev_start(port->id);

	if (rc != 0)
		return port_error(port, "does not start", rc, err);
	port->started = true;
	return 0;
}

int
ports_shut(struct port *port, struct err *err)
{
	int rc = rte_eth_dev_close(port->id);

	if (rc != 0)
		return port_error(port, "cannot be closed", rc, err);
	port->closed = true;
	return 0;
}

/* ---- streams ---- */

/* testpmd's fwd_topology_tx_port_get(): which of the forwarding ports frames of the rx-th one leave by. */
static unsigned int
tx_of(const struct ports *p, unsigned int rx)
{
	if ((p->options->mode->kind & FWD_SAME_PORT) != 0)
		return rx;
	switch (p->options->topology) {
	case TOPOLOGY_CHAINED:
		return (rx + 1) % p->nb_forward;
	case TOPOLOGY_LOOP:
		return rx;
	case TOPOLOGY_PAIRED:
		break;
	}
	if ((rx & 1) != 0)
		return rx - 1;
	return rx + 1 < p->nb_forward ? rx + 1 : rx;
}

int
ports_make_streams(struct ports *p, struct err *err)
{
	const struct options *o = p->options;
	/* As testpmd: a stream a queue that both directions have, ports running fastest. */
	unsigned int queues = RTE_MIN(o->nb_rxq, o->nb_txq), nb = p->nb_forward;

	if (o->topology == TOPOLOGY_PAIRED && (nb & 1) != 0)
		warn("--port-topology=paired with an odd number of ports: port %u is paired with itself",
				ports_forwarding(p, nb - 1)->id);
	p->mode = o->mode;
	p->streams = rte_zmalloc("streams", nb * queues * sizeof(*p->streams), RTE_CACHE_LINE_SIZE);
	if (p->streams == NULL)
		return err_set(err, EXIT_FAILED, "no memory for the streams");
	for (unsigned int i = 0; i < nb * queues; i++) {
		const struct port *rx = ports_forwarding(p, i % nb);
		const struct port *tx = ports_forwarding(p, tx_of(p, i % nb));
		struct fwd_stream *st = &p->streams[i];

		*st = (struct fwd_stream){ .rx_port = rx->id,
			.rx_queue = (uint16_t)(i / nb),
			.tx_port = tx->id,
			.tx_queue = (uint16_t)(i / nb),
			.tx_mac = tx->mac,
			.peer = o->peer[tx->id % OPTIONS_PORTS_MAX],
			.tx_offloads = tx->tx_offloads,
			.burst = o->burst,
			.index = (uint16_t)i,
			.socket = rx->socket,
			.pool = rx->pool,
			.options = &o->fwd };
		p->nb_streams = i + 1;
	}
	for (unsigned int i = 0; i < p->nb_streams; i++) {
		if (o->mode->init != NULL && o->mode->init(&p->streams[i], err) != 0)
			return -1;
		p->nb_inited = i + 1;
	}
	return 0;
}

void
ports_end_streams(struct ports *p)
{
	for (unsigned int i = 0; i < p->nb_inited; i++)
		if (p->mode->fini != NULL)
			p->mode->fini(&p->streams[i]);
	rte_free(p->streams);
	p->streams = NULL;
	p->nb_streams = p->nb_inited = 0;
}

void
ports_flush(struct ports *p)
{
	struct rte_mbuf *pkts[LCORE_BURST_MAX];
	uint64_t end = rte_get_timer_cycles() + (uint64_t)(FLUSH_S * (double)rte_get_timer_hz());
	uint64_t got = 1;

	while (got != 0 && rte_get_timer_cycles() < end) {
		got = 0;
		for (unsigned int i = 0; i < p->nb_streams; i++) {
			uint16_t n = rte_eth_rx_burst(p->streams[i].rx_port, p->streams[i].rx_queue,
					pkts, LCORE_BURST_MAX);

			rte_pktmbuf_free_bulk(pkts, n);
			got += n;
		}
	}
}

static int
tx_first(struct fwd_stream *st, struct err *err)
{
	const struct fwd_mode *txonly = fwd_mode_find("txonly");
	struct rte_mbuf *pkts[LCORE_BURST_MAX];
	struct fwd_stream copy = *st;
	uint16_t made, sent;

	copy.priv = NULL;
	if (txonly->init != NULL && txonly->init(&copy, err) != 0)
		return -1;
	made = txonly->process(&copy, pkts, 0);
	sent = rte_eth_tx_burst(copy.tx_port, copy.tx_queue, pkts, made);
	st->counts.tx_packets += sent;
	st->counts.tx_dropped += made - sent;
	rte_pktmbuf_free_bulk(&pkts[sent], made - sent);
	if (txonly->fini != NULL)
		txonly->fini(&copy);
	return 0;
}

int
ports_tx_first(struct ports *p, struct err *err)
{
	for (unsigned int i = 0; i < p->nb_streams; i++)
		if (tx_first(&p->streams[i], err) != 0)
			return -1;
	return 0;
}

int
ports_refill(struct ports *p, struct err *err)
{
	/* Enough for full bursts even where a mode holds some back. */
	unsigned int bursts =
			RTE_MIN(8u, RTE_MAX(1u, RING_FRAMES / (unsigned int)p->options->burst));

	for (unsigned int i = 0; i < p->nb; i++)
		if (p->port[i].started)
			drain(p, &p->port[i]);
	for (unsigned int b = 0; b < bursts; b++)
		if (ports_tx_first(p, err) != 0)
			return -1;
	/* They are nobody's traffic. */
	for (unsigned int i = 0; i < p->nb_streams; i++)
		p->streams[i].counts = (struct lcore_counts){ 0 };
	return 0;
}

unsigned int
ports_assign(struct ports *p, struct lcore *lcs, unsigned int n)
{
	unsigned int next = 0, share, extra;

	n = RTE_MIN(n, p->nb_streams);
	share = p->nb_streams / n;
	extra = p->nb_streams % n;
	for (unsigned int i = 0; i < n; i++) {
		unsigned int mine = share + (i >= n - extra ? 1 : 0);

		lcs[i].streams = calloc(mine, sizeof(*lcs[i].streams));
		for (unsigned int k = 0; lcs[i].streams != NULL && k < mine; k++)
			lcs[i].streams[k] = &p->streams[next + k];
		lcs[i].nb_streams = lcs[i].streams != NULL ? mine : 0;
		next += mine;
	}
	return n;
}

int
ports_check(const struct ports *p, struct err *err)
{
	char name[IF_NAMESIZE];

	for (unsigned int i = 0; i < p->nb; i++) {
		const struct port *port = &p->port[i];

		if (port->closed)
			continue;
		if (!rte_eth_dev_is_valid_port(port->id) || atomic_load(&removed[port->id]) ||
				rte_eth_dev_is_removed(port->id) == 1 ||
				(port->if_index != 0 &&
						if_indextoname(port->if_index, name) == NULL))
			return err_set(err, EXIT_FAILED, "port %u (%s) went away", port->id,
					port_name(port->id));
	}
	return 0;
}

/* The first lcore that receives from a port; several share a port with several queues. */
static unsigned int
owner_of(const struct lcore *lcs, unsigned int last, uint16_t port)
{
	for (unsigned int i = 0; i <= last; i++)
		for (unsigned int k = 0; k < lcs[i].nb_streams; k++)
			if (lcs[i].streams[k]->rx_port == port)
				return i;
	return UINT32_MAX;
}

void
ports_counts(const struct ports *p, const struct lcore *lcs, unsigned int lcore,
		struct port_counts *c)
{
	*c = (struct port_counts){ 0 };
	for (unsigned int i = 0; i < p->nb; i++) {
		struct rte_eth_stats stats;

		if (p->port[i].closed || owner_of(lcs, lcore, p->port[i].id) != lcore ||
				c->missed == MACHINE_UNKNOWN)
			continue;
		if (rte_eth_stats_get(p->port[i].id, &stats) != 0) {
			c->missed = c->nombuf = MACHINE_UNKNOWN;
			continue;
		}
		c->missed += stats.imissed;
		c->nombuf += stats.rx_nombuf;
	}
}

static bool
in_list(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = strstr(list, word); at != NULL; at = strstr(at + 1, word))
		if ((at == list || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'))
			return true;
	return false;
}

/* True if the port has an extended statistic of that name. */
static bool
has_xstat(uint16_t id, const char *name)
{
	uint64_t number;

	return rte_eth_xstats_get_id_by_name(id, name, &number) == 0;
}

/* A name that no port knows would print nothing, for ever. */
static int
check_xstats(const struct ports *p, const char *wanted, struct err *err)
{
	char *list = strdup(wanted != NULL ? wanted : ""), *save = NULL;
	int rc = 0;

	if (list == NULL)
		return err_set(err, EXIT_FAILED, "out of memory");
	for (char *name = strtok_r(list, ",", &save); name != NULL && rc == 0;
			name = strtok_r(NULL, ",", &save)) {
		bool known = false;

		for (unsigned int i = 0; i < p->nb; i++)
			known |= has_xstat(p->port[i].id, name);
		if (!known)
			rc = err_set(err, EXIT_USAGE,
					"--display-xstats=%s: no port has a statistic of that name",
					name);
	}
	free(list);
	return rc;
}

void
ports_print_xstats(uint16_t id, const char *wanted, const char *indent, FILE *out)
{
	int n = rte_eth_xstats_get(id, NULL, 0);
	struct rte_eth_xstat_name *names = n > 0 ? calloc((size_t)n, sizeof(*names)) : NULL;
	struct rte_eth_xstat *values = n > 0 ? calloc((size_t)n, sizeof(*values)) : NULL;

	if (names != NULL && values != NULL &&
			rte_eth_xstats_get_names(id, names, (unsigned int)n) == n &&
			rte_eth_xstats_get(id, values, (unsigned int)n) == n)
		for (int i = 0; i < n; i++)
			if (wanted == NULL || in_list(wanted, names[i].name))
				fprintf(out, "%s%s: %" PRIu64 "\n", indent, names[i].name,
						values[i].value);
	free(names);
	free(values);
}

void
ports_print(const struct ports *p, const char *xstats, FILE *out)
{
	for (unsigned int i = 0; i < p->nb; i++) {
		struct rte_eth_stats s;
		uint16_t id = p->port[i].id;

		if (p->port[i].closed || rte_eth_stats_get(id, &s) != 0)
			continue;
		fprintf(out,
				"port %u (%s): RX-packets %" PRIu64 " RX-missed %" PRIu64
				" RX-nombuf %" PRIu64 " TX-packets %" PRIu64 " TX-errors %" PRIu64
				"\n",
				id, port_name(id), s.ipackets, s.imissed, s.rx_nombuf, s.opackets,
				s.oerrors);
		if (xstats != NULL)
			ports_print_xstats(id, xstats, "  ", out);
	}
}

int
ports_open(struct ports *p, const struct options *o, const struct capture *capture,
		unsigned int nb_lcores, struct err *err)
{
	memset(p, 0, sizeof(*p));
	p->options = o;
	if (o->source == SOURCE_DEV ? take_ports(p, o, err) != 0
				    : make_ports(p, o, capture, err) != 0)
		return -1;
	for (unsigned int i = 0; i < p->nb; i++)
		if (check_limits(o, &p->port[i], err) != 0)
			return -1;
	if (make_pools(p, capture, nb_lcores, err) != 0)
		return -1;
	for (unsigned int i = 0; i < p->nb; i++)
		if (start_port(o, &p->port[i], err) != 0)
			return -1;
	for (p->nb_forward = 0; p->nb_forward < p->nb; p->nb_forward++)
		p->forward[p->nb_forward] = p->nb_forward;
	if (check_xstats(p, o->xstats, err) != 0)
		return -1;
	wait_links(p);
	return 0;
}

json_t *
ports_json(const struct ports *p)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < p->nb; i++) {
		const struct port *port = &p->port[i];
		struct rte_eth_dev_info info;
		struct rte_eth_link link = { 0 };
		char mac[RTE_ETHER_ADDR_FMT_SIZE];

		if (port->closed || rte_eth_dev_info_get(port->id, &info) != 0)
			continue;
		if (rte_eth_link_get_nowait(port->id, &link) != 0)
			link.link_speed = 0;
		rte_ether_format_addr(mac, sizeof(mac), &port->mac);
		json_array_append_new(list,
				json_pack("{s:i, s:s, s:s, s:s, s:i, s:I, s:b, s:I, s:I}", "port",
						(int)port->id, "name", port_name(port->id),
						"driver", info.driver_name, "mac", mac, "numa_node",
						port->socket, "link_mbps",
						(json_int_t)link.link_speed, "link_up",
						link.link_status == RTE_ETH_LINK_UP, "tx_offloads",
						(json_int_t)port->tx_offloads, "pool_mbufs",
						(json_int_t)(port->pool != NULL ? port->pool->size
										: 0)));
	}
	return list;
}

void
ports_close(struct ports *p)
{
	char name[RTE_ETH_NAME_MAX_LEN];

	ports_end_streams(p);
	for (unsigned int i = 0; i < p->nb; i++) {
		uint16_t id = p->port[i].id;

		if (!rte_eth_dev_is_valid_port(id))
			continue;
		snprintf(name, sizeof(name), "%s", port_name(id));
		rte_eth_dev_callback_unregister(id, RTE_ETH_EVENT_INTR_RMV, on_removed, NULL);
		if (p->port[i].started) {
			drain(p, &p->port[i]);
			rte_eth_dev_stop(id);
		}
		rte_eth_dev_close(id);
		if (p->own)
			rte_eal_hotplug_remove("vdev", name);
	}
	/* After the ports, which give their frames back; several can share a pool. */
	for (unsigned int i = 0; i < p->nb; i++) {
		struct rte_mempool *pool = p->port[i].pool;

		for (unsigned int k = i; k < p->nb; k++)
			if (p->port[k].pool == pool)
				p->port[k].pool = NULL;
		if (pool != NULL && rte_mempool_avail_count(pool) != pool->populated_size)
			warn("%u mbufs were not given back",
					pool->populated_size - rte_mempool_avail_count(pool));
		rte_mempool_free(pool);
	}
}
