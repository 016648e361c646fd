/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * cm.h -- the rdma_cm half of the loopback device: the common parts of its
 * files, which are identifiers, event channels, and messages between two
 * identifiers.
 *
 * One mutex, lb_cm_lock(), guards everything below marked [lock]. Under the
 * mutex no verb, hook or callback runs and nothing blocks. Locks of the device
 * on line 7 are taken inside the mutex, and link.in when a peer takes nothing;
 * the mutex is taken inside no lock of the device.
 *
 * The mutex does not guard the public struct rdma_cm_id: as in librdmacm, only
 * threads that call a function on the identifier or read an event of the
 * identifier write the struct, never on behalf of the peer. Values needed by
 * the peer are kept a second time, in the private half. Identifiers know each
 * other by handle, looked up when a message arrives, so either may go away at
 * any time.
 *
 * doc/protocols/loopback-cm.md: states, order of events, possible overlaps;
 * cm_wire.md is about two processes.
 */

#ifndef LB_CM_H
#define LB_CM_H

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "base/base.h"
#include "base/list.h"
#include "base/opener.h"

/* sizes of private data on the wire, on RoCE and in port space TCP */
enum {
	LB_CM_REQ_PRIV = 56,
	LB_CM_REP_PRIV = 196,
	LB_CM_REJ_PRIV = 148,
	/* and of datagrams, whose requests and answers are a single packet
	 * each */
	LB_CM_UD_REQ_PRIV = 180,
	LB_CM_UD_REP_PRIV = 136,
	LB_CM_PRIV_MAX = 196,
};

/* reasons of a refusal: the status of REJECTED */
enum {
	LB_CM_REJ_NO_RESOURCES = 3,
	LB_CM_REJ_TIMEOUT = 4,
	LB_CM_REJ_COMM_ID = 6,
	LB_CM_REJ_NO_LISTENER = 8,
	LB_CM_REJ_CONSUMER = 28,
	LB_CM_REJ_VENDOR_OPTION = 35,
};

enum {
	LB_CM_BACKLOG = 1024, /* as the kernel: the default, and the most */
	LB_CM_MAX_IDS = 65536,
	LB_CM_WAITING = LB_CM_MAX_IDS, /* waiting for room in a backlog */
	LB_CM_PORT_NUM = 1,
};

/* the status of UNREACHABLE when a request of datagrams is refused */
enum {
	LB_CM_UD_NO_LISTENER = 1,
	LB_CM_UD_REJECTED = 2,
};

/* ---- objects ------------------------------------------------------------ */

/* The state of an identifier, as the application left the identifier. */
enum lb_cm_state {
	LB_CM_IDLE,
	LB_CM_BOUND,
	LB_CM_ADDR_RESOLVED,
	LB_CM_ROUTE_RESOLVED,
	LB_CM_CONNECT,	  /* from connect or a request, until the end */
	LB_CM_DISCONNECT, /* DISCONNECTED has been made */
	LB_CM_LISTEN,
	LB_CM_GONE, /* the device or the channel was taken away */
};

/* How far the handshake with the peer is. */
enum lb_cm_link {
	LB_CM_LINK_NONE, /* never connected */
	LB_CM_LINK_IDLE, /* never became a connection, or is no longer
			  * connected */
	LB_CM_LINK_REQ_SENT,
	LB_CM_LINK_REQ_RCVD,
	LB_CM_LINK_REP_SENT,
	LB_CM_LINK_REP_RCVD,
	LB_CM_LINK_ESTABLISHED,
	LB_CM_LINK_DREQ_SENT,
	LB_CM_LINK_DREQ_RCVD,
	LB_CM_LINK_TIMEWAIT,
};

/* Waits that end by a timer; an identifier has at most one. */
enum lb_cm_timer {
	LB_CM_TIMER_ANSWER, /* to a request or a reply */
	LB_CM_TIMER_DREQ,   /* to a disconnect */
	LB_CM_TIMER_TIMEWAIT,
	LB_CM_TIMERS,
};

/* An address in a single form: IPv4 as v4-mapped IPv6. */
struct lb_cm_addr {
	struct in6_addr ip;
	in_port_t port; /* network byte order */
	bool v4;
	bool any;
};

/* The parameters that an end sends to the other end. */
struct lb_cm_params {
	union ibv_gid gid;
	uint32_t qp_num;
	uint32_t psn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
};

enum lb_cm_msg_type {
	LB_CM_MSG_REQ,
	LB_CM_MSG_MRA, /* the request has arrived, the answer takes time */
	LB_CM_MSG_REP,
	LB_CM_MSG_RTU,
	LB_CM_MSG_REJ,
	LB_CM_MSG_DREQ,
	LB_CM_MSG_DREP,
	LB_CM_MSGS,
};

struct lb_link;	    /* the way to another process */
struct lb_cm_reach; /* a request looks for a way */

/* A message from one identifier to another, without pointers to either. */
struct lb_cm_msg {
	enum lb_cm_msg_type type;
	bool again;	     /* REQ: has been sent before */
	struct lb_link *via; /* NULL: both are in this process */
	uint32_t from;
	uint32_t to;		     /* 0 in a REQ: whoever listens at dst */
	int reason;		     /* REJ */
	enum rdma_port_space ps;     /* REQ */
	enum ibv_qp_type qp_type;    /* REQ */
	struct sockaddr_storage src; /* REQ: of the active side */
	struct sockaddr_storage dst; /* REQ */
	int dst_dev;		     /* REQ: whose address dst is */
	int dst_gid_index;
	struct lb_cm_params params; /* REQ, REP */
	uint8_t priv[LB_CM_PRIV_MAX];
};

struct lb_cm_channel {
	struct rdma_event_channel ch; /* first: the application's */
	uint64_t magic;
	struct lb_list events; /* [lock] unread, of struct lb_cm_event */
	struct lb_list ids;    /* [lock] users of the channel, of struct
			        * lb_cm_id */
	struct lb_list node;   /* [lock] of all channels */
	struct lb_opener opener;
};

struct lb_cm_event {
	struct rdma_cm_event ev; /* first: the application's */
	uint64_t magic;
	struct lb_list node; /* [lock] pending, of a channel, or unacked */
	struct lb_list unread_node; /* [lock] of the owner, until read */
	struct lb_cm_id
		*owner; /* [lock] until read, then fixed; NULL: dropped */
	struct lb_cm_id *child;	    /* of CONNECT_REQUEST, else NULL */
	struct lb_cm_group *group;  /* of MULTICAST_JOIN, else NULL */
	struct lb_cm_channel *from; /* [lock] the channel of the read */
	pthread_t reader;	    /* [lock] the reading thread */
	uint64_t not_before;	    /* [lock] held back until then */
	bool delivering; /* [lock] somebody runs the hook before delivery */
	bool delivered;	 /* [lock] on the channel of the owner */
	bool twice;	 /* a fault doubles the event */
	bool twin;	 /* and this is the second */
	uint8_t priv[LB_CM_PRIV_MAX];
};

/* A multicast group joined by an identifier. */
struct lb_cm_group {
	struct lb_list node; /* [lock] of the identifier */
	struct sockaddr_storage addr;
	void *context;
	bool send_only;
	union ibv_gid gid;
};

/*
 * Holds the words of an identifier that librdmacm's own rsocket() reads, where
 * librdmacm has the words: sockets over RDMA are librdmacm's code, which calls
 * the device for everything else. tests/launch/sockets fails with a librdmacm
 * that has another order.
 */
struct lb_cm_sockets {
	void *device;	 /* NULL: librdmacm asks all devices for limits */
	void *unused[2]; /* librdmacm's private data of a connection */
	int unused_too[2];
	int sync; /* [lock] when written: the channel is private and invisible
		   * to the application, calls wait for their events */
};

struct lb_cm_id {
	struct rdma_cm_id id;	      /* first: the application's; not [lock] */
	struct lb_cm_sockets sockets; /* second: see there */
	uint64_t magic;
	uint32_t handle; /* [lock] 0: cannot be found any more */

	/* rdma_create_ep(): only by callers on this identifier */
	struct ibv_qp_init_attr *qp_init_attr;
	void *connect_data;
	size_t connect_len;

	/* all the rest is [lock] */
	struct lb_opener
		opener; /* of the channel, which may go before the id */
	enum lb_cm_state state;
	enum lb_cm_link link;
	enum rdma_port_space ps;
	bool connect_error; /* CONNECT_ERROR given: no REJECTED afterwards */
	bool has_qp;	    /* connects the QP of the public half */
	bool quiet;	    /* a request that is not accepted: gets no events */
	bool is_inherited;  /* a parent process made it */
	bool is_said;	    /* which was said */
	struct lb_cm_channel *channel; /* NULL: destroyed earlier than the
				        * identifier */
	struct lb_list channel_node;   /* of channel */

	/* events */
	struct lb_list unread;	/* made, not read, in the order of making */
	struct lb_list unacked; /* read, not acknowledged */
	pthread_cond_t acked;
	unsigned unread_requests;
	uint64_t held; /* the last scan that found a delayed event */

	/* address */
	struct sockaddr_storage src;
	struct sockaddr_storage dst;
	int dev; /* index, -1: no device */
	int gid_index;
	int dst_dev; /* of the peer's address, once resolved */
	int dst_gid_index;
	union ibv_gid dgid;	  /* the peer's */
	struct lb_list bind_node; /* on a port */
	bool reuseaddr;
	bool afonly;
	bool afonly_set;
	uint8_t tos;
	uint8_t ack_timeout; /* 0: the default */

	/* listening */
	unsigned backlog;
	unsigned nwaiting;
	struct lb_list waiting; /* requests without room */

	struct lb_list groups; /* of struct lb_cm_group */

	/* connection */
	uint32_t peer;		   /* handle, 0: not known */
	struct lb_link *via;	   /* to the process of the peer; NULL: this
				    * process */
	struct lb_cm_reach *reach; /* NULL: not under way */
	struct lb_cm_params mine;
	struct lb_cm_params theirs;
	uint8_t responder_resources; /* as negotiated: of our QP */
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	struct lb_list timer_node;
	enum lb_cm_timer timer;
	void (*on_timer)(struct lb_cm_id *id);
	uint64_t deadline;
};

/* The type is fixed once the identifier is made. */
static inline bool lb_cm_id_is_ud(const struct lb_cm_id *id)
{
	return id->id.qp_type == IBV_QPT_UD;
}

/* As every rdma_* function reports an error. */
#define lb_cm_err(err) (lb_error_of(__func__, err), -1)

#endif /* LB_CM_H */
