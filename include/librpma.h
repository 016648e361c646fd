/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * librpma: remote memory over RDMA. The first part is the interface of
 * librpma 1.3, bit for bit; the second part is new in 1.4. This header has the
 * short contract of every group, the manual pages (man 3) have all cases.
 *
 * Rules for all: functions return 0 or a negative RPMA_E_*. Out-parameters are
 * written on success. A delete call takes the address of the pointer, accepts
 * a pointer to NULL (returns 0), and leaves NULL. In a child of fork(), calls
 * on objects that the parent made on a device return E_FORKED, and delete only
 * frees the memory.
 */

#ifndef LIBRPMA_H
#define LIBRPMA_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------ */
/* Errors                                                                    */
/* ------------------------------------------------------------------------ */

#define RPMA_E_UNKNOWN	       (-100000) /* unknown error */
#define RPMA_E_NOSUPP	       (-100001) /* not supported */
#define RPMA_E_PROVIDER	       (-100002) /* verbs or rdma_cm failed */
#define RPMA_E_NOMEM	       (-100003) /* out of memory */
#define RPMA_E_INVAL	       (-100004) /* invalid argument */
#define RPMA_E_NO_COMPLETION   (-100005) /* no completion is ready */
#define RPMA_E_NO_EVENT	       (-100006) /* no event is ready */
#define RPMA_E_AGAIN	       (-100007) /* not now, try again */
#define RPMA_E_SHARED_CHANNEL  (-100008) /* the channel is another's to read */
#define RPMA_E_NOT_SHARED_CHNL (-100009) /* the channel is not shared */
/* since 1.4 */
#define RPMA_E_CLAIMED (-100010) /* claimed by another owner */
#define RPMA_E_FORKED  (-100011) /* made before a fork: the parent's */

/* The text of an error; "Unknown error" for other numbers. */
const char *rpma_err_2str(int ret);

/* ------------------------------------------------------------------------ */
/* Devices                                                                   */
/* ------------------------------------------------------------------------ */

enum rpma_util_ibv_context_type {
	RPMA_UTIL_IBV_CONTEXT_LOCAL, /* the device that has the address */
	RPMA_UTIL_IBV_CONTEXT_REMOTE /* the device that leads to the address */
};

/* The context belongs to librdmacm, and must not be closed. */
int rpma_utils_get_ibv_context(const char *addr,
			       enum rpma_util_ibv_context_type type,
			       struct ibv_context **ibv_ctx_ptr);
int rpma_utils_ibv_context_is_odp_capable(struct ibv_context *ibv_ctx,
					  int *is_odp_capable);

/* ------------------------------------------------------------------------ */
/* Peer configuration: properties of a side's memory, for the other side     */
/* ------------------------------------------------------------------------ */

struct rpma_peer_cfg;

int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr);
int rpma_peer_cfg_delete(struct rpma_peer_cfg **pcfg_ptr);
/* Whether writes reach persistent memory directly. Default: false. */
int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg *pcfg,
					   bool supported);
int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg *pcfg,
					   bool *supported);
/* The descriptor is a byte for the peer; get the size first. */
int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg *pcfg, void *desc);
int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg *pcfg,
				      size_t *desc_size);
int rpma_peer_cfg_from_descriptor(const void *desc, size_t desc_size,
				  struct rpma_peer_cfg **pcfg_ptr);

/* ------------------------------------------------------------------------ */
/* Peer: a device and a protection domain of the device                      */
/* ------------------------------------------------------------------------ */

struct rpma_peer;

/* Serves any number of threads. Deleted after all objects of the peer. */
int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr);
int rpma_peer_delete(struct rpma_peer **peer_ptr);

/* ------------------------------------------------------------------------ */
/* Memory regions                                                            */
/* ------------------------------------------------------------------------ */

struct rpma_mr_local;
struct rpma_mr_remote;

#define RPMA_MR_USAGE_READ_SRC		    (1 << 0)
#define RPMA_MR_USAGE_READ_DST		    (1 << 1)
#define RPMA_MR_USAGE_WRITE_SRC		    (1 << 2)
#define RPMA_MR_USAGE_WRITE_DST		    (1 << 3)
#define RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY (1 << 4)
#define RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT (1 << 5)
#define RPMA_MR_USAGE_SEND		    (1 << 6)
#define RPMA_MR_USAGE_RECV		    (1 << 7)
/* Since 1.4; includes READ_SRC, the only part in descriptors. */
#define RPMA_MR_USAGE_ATOMIC (1 << 8 | RPMA_MR_USAGE_READ_SRC)

/* Register size bytes at ptr for the usages named. */
int rpma_mr_reg(struct rpma_peer *peer, void *ptr, size_t size, int usage,
		struct rpma_mr_local **mr_ptr);
int rpma_mr_dereg(struct rpma_mr_local **mr_ptr);
/* The descriptor is sent to the other side: 21 bytes. */
int rpma_mr_get_descriptor(const struct rpma_mr_local *mr, void *desc);
int rpma_mr_get_descriptor_size(const struct rpma_mr_local *mr,
				size_t *desc_size);
int rpma_mr_get_ptr(const struct rpma_mr_local *mr, void **ptr);
int rpma_mr_get_size(const struct rpma_mr_local *mr, size_t *size);
/* ibv_advise_mr() on a part of the region. */
int rpma_mr_advise(struct rpma_mr_local *mr, size_t offset, size_t len,
		   int advice, uint32_t flags);

/* The other side's view of a registered region. */
int rpma_mr_remote_from_descriptor(const void *desc, size_t desc_size,
				   struct rpma_mr_remote **mr_ptr);
int rpma_mr_remote_get_size(const struct rpma_mr_remote *mr, size_t *size);
/* A mask of RPMA_MR_USAGE_FLUSH_TYPE_* */
int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote *mr,
				  int *flush_type);
/* May be called while operations on the region are outstanding. */
int rpma_mr_remote_delete(struct rpma_mr_remote **mr_ptr);

/* ------------------------------------------------------------------------ */
/* Connection configuration: read once, when the request is made             */
/* ------------------------------------------------------------------------ */

struct rpma_conn_cfg;
struct rpma_srq;

#define RPMA_DEFAULT_TIMEOUT_MS 1000

int rpma_conn_cfg_new(struct rpma_conn_cfg **cfg_ptr);
int rpma_conn_cfg_delete(struct rpma_conn_cfg **cfg_ptr);
/* Applies to resolving the address, and again to the route. */
int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg *cfg, int timeout_ms);
int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms);
/* Defaults: CQ 10; no own CQ for receives; SQ 10; RQ 10. */
int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg *cfg, uint32_t cq_size);
int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg *cfg,
			      uint32_t *cq_size);
int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg *cfg, uint32_t rcq_size);
int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg *cfg,
			       uint32_t *rcq_size);
int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg *cfg, uint32_t sq_size);
int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg *cfg,
			      uint32_t *sq_size);
int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg *cfg, uint32_t rq_size);
int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg *cfg,
			      uint32_t *rq_size);
/* A common completion channel for CQ and RCQ. Default: false. */
int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg *cfg, bool shared);
int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg *cfg,
				    bool *shared);
/* Receives come from this SRQ. Cannot be unset. */
int rpma_conn_cfg_set_srq(struct rpma_conn_cfg *cfg, struct rpma_srq *srq);
int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg *cfg,
			  struct rpma_srq **srq_ptr);

/* ------------------------------------------------------------------------ */
/* Connection                                                                */
/* ------------------------------------------------------------------------ */

struct rpma_conn;
struct rpma_cq;

/* Bytes that travel with a connection request and with the answer. */
struct rpma_conn_private_data {
	void *ptr;
	uint8_t len;
};

enum rpma_conn_event {
	RPMA_CONN_UNDEFINED = -1,
	RPMA_CONN_ESTABLISHED,
	RPMA_CONN_CLOSED,
	RPMA_CONN_LOST,
	RPMA_CONN_REJECTED,
	RPMA_CONN_UNREACHABLE
};

const char *rpma_utils_conn_event_2str(enum rpma_conn_event conn_event);

/* Readable while the connection has an event. */
int rpma_conn_get_event_fd(const struct rpma_conn *conn, int *fd);
/* Reads an event; blocks unless the fd is non-blocking. */
int rpma_conn_next_event(struct rpma_conn *conn, enum rpma_conn_event *event);
/*
 * The library's memory, valid until the connection is deleted. Also the private
 * data of a refusal, which 1.3 does not return.
 */
int rpma_conn_get_private_data(const struct rpma_conn *conn,
			       struct rpma_conn_private_data *pdata);
int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn,
				    const struct rpma_peer_cfg *pcfg);
int rpma_conn_get_qp_num(const struct rpma_conn *conn, uint32_t *qp_num);
int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq_ptr);
/* NULL if receives complete elsewhere. */
int rpma_conn_get_rcq(const struct rpma_conn *conn, struct rpma_cq **rcq_ptr);
/* Work requests in flight complete with errors at once. */
int rpma_conn_disconnect(struct rpma_conn *conn);
/* Needs no disconnect before and no event read. */
int rpma_conn_delete(struct rpma_conn **conn_ptr);

/* The fd of a shared completion channel, and an event. */
int rpma_conn_get_compl_fd(const struct rpma_conn *conn, int *fd);
/* flags are reserved; is_rcq may be NULL. The CQ is armed again. */
int rpma_conn_wait(struct rpma_conn *conn, int flags, struct rpma_cq **cq,
		   bool *is_rcq);

/* ------------------------------------------------------------------------ */
/* Connection request                                                        */
/* ------------------------------------------------------------------------ */

struct rpma_conn_req;

/* Resolves address and route before the return. cfg NULL: the defaults. */
int rpma_conn_req_new(struct rpma_peer *peer, const char *addr,
		      const char *port, const struct rpma_conn_cfg *cfg,
		      struct rpma_conn_req **req_ptr);
/* Refuses the other side if the request came from the other side. */
int rpma_conn_req_delete(struct rpma_conn_req **req_ptr);
/*
 * Takes the request, also on failure; not on E_AGAIN (still resolving) and on
 * E_CLAIMED (a CQ of the request is claimed).
 */
int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
			  const struct rpma_conn_private_data *pdata,
			  struct rpma_conn **conn_ptr);
/* Posts a receive before the first message. */
int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst,
		       size_t offset, size_t len, const void *op_context);
int rpma_conn_req_get_private_data(const struct rpma_conn_req *req,
				   struct rpma_conn_private_data *pdata);

/* ------------------------------------------------------------------------ */
/* Shared receive queue                                                      */
/* ------------------------------------------------------------------------ */

struct rpma_srq_cfg;

/* Defaults: 20 receives, a CQ of 20 for them; CQ 0: the connections' CQs. */
int rpma_srq_cfg_new(struct rpma_srq_cfg **cfg_ptr);
int rpma_srq_cfg_delete(struct rpma_srq_cfg **cfg_ptr);
int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg *cfg, uint32_t rq_size);
int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg *cfg, uint32_t *rq_size);
int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg *cfg, uint32_t rcq_size);
int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg *cfg,
			      uint32_t *rcq_size);

int rpma_srq_new(struct rpma_peer *peer, struct rpma_srq_cfg *cfg,
		 struct rpma_srq **srq_ptr);
/* After its connections. */
int rpma_srq_delete(struct rpma_srq **srq_ptr);
int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst,
		  size_t offset, size_t len, const void *op_context);
/* NULL without an RCQ. */
int rpma_srq_get_rcq(const struct rpma_srq *srq, struct rpma_cq **rcq_ptr);

/* ------------------------------------------------------------------------ */
/* Endpoint: listens and hands out requests                                  */
/* ------------------------------------------------------------------------ */

struct rpma_ep;

int rpma_ep_listen(struct rpma_peer *peer, const char *addr, const char *port,
		   struct rpma_ep **ep_ptr);
int rpma_ep_shutdown(struct rpma_ep **ep_ptr);
/* Readable while a request waits. */
int rpma_ep_get_fd(const struct rpma_ep *ep, int *fd);
/* Blocks unless the fd does not. cfg NULL: the defaults. */
int rpma_ep_next_conn_req(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
			  struct rpma_conn_req **req_ptr);

/* ------------------------------------------------------------------------ */
/* Operations                                                                */
/* ------------------------------------------------------------------------ */

/*
 * Each posts a work request. Errors of posting are returned by the call, the
 * outcome of the operation is in the completion; never both.
 */

/* No flags of verbs: IBV_SEND_FENCE equals the first flag. */
#define RPMA_F_COMPLETION_ON_ERROR (1 << 0)
#define RPMA_F_COMPLETION_ALWAYS   (1 << 1 | RPMA_F_COMPLETION_ON_ERROR)

/*
 * Since 1.4, in any number together with a flag above; further bits have no
 * meaning. Alone each implies RPMA_F_COMPLETION_ON_ERROR.
 */
/* Begins when the reads and atomics posted before are complete. */
#define RPMA_F_FENCE (1 << 24)
/* Sends, write with imm: wakes waiters for solicited completions. */
#define RPMA_F_SOLICITED (1 << 26)
/*
 * Sends, writes: the post copies the bytes, and the region is the caller's
 * again. E_INVAL: more than rpma_conn_cfg_set_max_inline_data().
 */
#define RPMA_F_INLINE (1 << 27)

#define RPMA_ATOMIC_WRITE_ALIGNMENT 8

/* Kept for source compatibility; no function takes the type. */
#define RPMA_W_WAIT_FOR_COMPLETION (1)

enum rpma_flush_type { RPMA_FLUSH_TYPE_PERSISTENT, RPMA_FLUSH_TYPE_VISIBILITY };

/* A NULL region with offset and len 0: no bytes. */
int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst,
	      size_t dst_offset, const struct rpma_mr_remote *src,
	      size_t src_offset, size_t len, int flags, const void *op_context);
int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst,
	       size_t dst_offset, const struct rpma_mr_local *src,
	       size_t src_offset, size_t len, int flags,
	       const void *op_context);
int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst,
			size_t dst_offset, const struct rpma_mr_local *src,
			size_t src_offset, size_t len, int flags, uint32_t imm,
			const void *op_context);
/* src may be reused at once. dst_offset is a multiple of the alignment. */
int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst,
		      size_t dst_offset, const char src[8], int flags,
		      const void *op_context);
/* Completes after all earlier writes have reached the place named by type. */
int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst,
	       size_t dst_offset, size_t len, enum rpma_flush_type type,
	       int flags, const void *op_context);
int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src,
	      size_t offset, size_t len, int flags, const void *op_context);
int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src,
		       size_t offset, size_t len, int flags, uint32_t imm,
		       const void *op_context);
int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset,
	      size_t len, const void *op_context);

/* ------------------------------------------------------------------------ */
/* Completions                                                               */
/* ------------------------------------------------------------------------ */

int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd);
/* Takes an event and arms again; then poll until nothing is left. */
int rpma_cq_wait(struct rpma_cq *cq);
/* num_entries_got may be NULL if num_entries is 1. */
int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc,
		   int *num_entries_got);

/* ------------------------------------------------------------------------ */
/* Log                                                                       */
/* ------------------------------------------------------------------------ */

enum rpma_log_level {
	RPMA_LOG_DISABLED = -1,
	RPMA_LOG_LEVEL_FATAL,
	RPMA_LOG_LEVEL_ERROR,
	RPMA_LOG_LEVEL_WARNING,
	RPMA_LOG_LEVEL_NOTICE,
	RPMA_LOG_LEVEL_INFO,
	RPMA_LOG_LEVEL_DEBUG
};

enum rpma_log_threshold {
	RPMA_LOG_THRESHOLD,	/* messages that are logged */
	RPMA_LOG_THRESHOLD_AUX, /* messages that also go to stderr */
	RPMA_LOG_THRESHOLD_MAX
};

/* Called in the logging thread; any thread, several at once. */
typedef void rpma_log_function(enum rpma_log_level level, const char *file_name,
			       const int line_no, const char *function_name,
			       const char *message_format, ...);

#define RPMA_LOG_USE_DEFAULT_FUNCTION (NULL)

int rpma_log_set_threshold(enum rpma_log_threshold threshold,
			   enum rpma_log_level level);
int rpma_log_get_threshold(enum rpma_log_threshold threshold,
			   enum rpma_log_level *level);
int rpma_log_set_function(rpma_log_function *log_function);

/* ======================================================================== */
/* Additions of 1.4                                                          */
/* ======================================================================== */

/*
 * Logs a message of the caller, for libraries above: filtered by
 * RPMA_LOG_THRESHOLD and handed to the log function as messages of librpma; a
 * newline is added. file_name NULL: no place.
 */
void rpma_log_message(enum rpma_log_level level, const char *file_name,
		      int line_no, const char *function_name,
		      const char *message_format, ...)
	__attribute__((format(printf, 5, 6)));

/*
 * From rpma_log_hold() on, messages of the calling thread reach the log
 * function in rpma_log_release(), which the thread calls as often: for calls
 * under a lock which the log function may take. File and function names of
 * rpma_log_message() last until the release.
 */
void rpma_log_hold(void);
void rpma_log_release(void);

struct rdma_cm_id;
struct rdma_event_channel;

/* "owner": any pointer but NULL, the name of an object's claimer. */

/* ------------------------------------------------------------------------ */
/* Completion channel: several CQs, a common fd                              */
/* ------------------------------------------------------------------------ */

struct rpma_channel;

int rpma_channel_new(struct ibv_context *ibv_ctx,
		     struct rpma_channel **channel_ptr);
/* E_AGAIN, and the channel stays, while a CQ uses the channel. */
int rpma_channel_delete(struct rpma_channel **channel_ptr);
int rpma_channel_get_fd(const struct rpma_channel *channel, int *fd);
int rpma_channel_get_ibv_channel(const struct rpma_channel *channel,
				 struct ibv_comp_channel **ibv_channel);
/*
 * Takes and acknowledges an event, returns the CQ, arms nothing: then
 * rpma_cq_arm(), then poll. E_NO_COMPLETION: nothing on a non-blocking fd;
 * E_AGAIN: a signal; E_PROVIDER: errno has the reason; E_UNKNOWN: an event of a
 * CQ of another library, acknowledged.
 */
int rpma_channel_wait(struct rpma_channel *channel, struct rpma_cq **cq_ptr);

/* ------------------------------------------------------------------------ */
/* CQ as an own object                                                       */
/* ------------------------------------------------------------------------ */

/* channel NULL: an own channel, armed; otherwise the caller arms the CQ. */
int rpma_cq_new(struct ibv_context *ibv_ctx, int cqe,
		struct rpma_channel *channel, int comp_vector, void *context,
		struct rpma_cq **cq_ptr);
/*
 * Deletes a CQ of rpma_cq_new(). E_AGAIN, and the CQ stays: a queue pair uses
 * the CQ, or an event of the program is not acknowledged. E_INVAL: a
 * CQ of a connection or an SRQ, whose deletion acknowledges the events and
 * destroys the CQ.
 */
int rpma_cq_delete(struct rpma_cq **cq_ptr);
int rpma_cq_arm(struct rpma_cq *cq, bool solicited_only);
/*
 * As rpma_cq_wait() and rpma_conn_wait(), but the event is not acknowledged and
 * nothing armed: rpma_cq_ack(), for many at once, rpma_cq_arm(), then poll.
 */
int rpma_cq_wait_event(struct rpma_cq *cq);
int rpma_conn_wait_event(struct rpma_conn *conn, struct rpma_cq **cq,
			 bool *is_rcq);
/* Acknowledges n events without an acknowledgement so far. */
int rpma_cq_ack(struct rpma_cq *cq, unsigned n);
int rpma_cq_get_context(const struct rpma_cq *cq, void **context);
int rpma_cq_get_ibv_cq(const struct rpma_cq *cq, struct ibv_cq **ibv_cq);
/* For any ibv_cq; E_INVAL: a CQ of another library. */
int rpma_cq_from_ibv_cq(const struct ibv_cq *ibv_cq, struct rpma_cq **cq_ptr);
/*
 * Only the owner waits for and polls a claimed CQ, by verbs; other callers get
 * E_SHARED_CHANNEL. E_CLAIMED: claimed by another owner; E_AGAIN: a thread
 * waits for the CQ. A claimed CQ is not deleted, nor the object that the CQ was
 * made for (E_CLAIMED).
 */
int rpma_cq_claim(struct rpma_cq *cq, const void *owner);
int rpma_cq_release(struct rpma_cq *cq, const void *owner);

/* ------------------------------------------------------------------------ */
/* CM event channel that endpoints and connections share                     */
/* ------------------------------------------------------------------------ */

struct rpma_cm_channel;

int rpma_cm_channel_new(struct rpma_cm_channel **channel_ptr);
/* E_AGAIN, and the channel stays, while endpoints or connections use it. */
int rpma_cm_channel_delete(struct rpma_cm_channel **channel_ptr);
int rpma_cm_channel_get_fd(const struct rpma_cm_channel *channel, int *fd);

/* A copy of an event, for the reader to keep or queue. */
struct rpma_cm_event {
	int type;      /* enum rdma_cm_event_type */
	int status;    /* of the event: -errno or a reject reason */
	void *context; /* the object's; the listener's of a CONNECT_REQUEST */
	struct rdma_cm_id *id; /* the new id of a CONNECT_REQUEST */
	uint8_t private_data_len;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t reserved[21]; /* 0, else all calls but ack are E_INVAL */
	uint8_t private_data[256];
	void *raw; /* NULL once acknowledged */
};

/*
 * Reads an event. E_NO_EVENT: nothing on a non-blocking fd; E_AGAIN: a signal.
 * Acknowledge the event: a call that deletes the object of the event waits for
 * the acknowledgement.
 */
int rpma_cm_channel_get_event(struct rpma_cm_channel *channel,
			      struct rpma_cm_event *event);
int rpma_cm_event_ack(struct rpma_cm_event *event);
/*
 * Refuses a CONNECT_REQUEST without a request object, with private data for the
 * other side; pdata may be NULL. Takes the id, also on failure.
 */
int rpma_cm_event_reject(struct rpma_cm_event *event,
			 const struct rpma_conn_private_data *pdata);

/*
 * cm_channel NULL: as rpma_ep_listen(). Otherwise requests are events of the
 * channel, and rpma_ep_get_fd(), rpma_ep_next_conn_req() return
 * E_SHARED_CHANNEL. backlog 0: the provider's default.
 */
int rpma_ep_listen_ex(struct rpma_peer *peer, const char *addr,
		      const char *port, int backlog,
		      struct rpma_cm_channel *cm_channel, void *context,
		      struct rpma_ep **ep_ptr);
/* The port, in host order; the chosen port of port "0". */
int rpma_ep_get_port(const struct rpma_ep *ep, uint16_t *port);

/* ------------------------------------------------------------------------ */
/* Connection requests that do not block                                     */
/* ------------------------------------------------------------------------ */

/* cfg names a CM channel; context comes with the events there. */
int rpma_conn_req_new_async(struct rpma_peer *peer, const char *addr,
			    const char *port, const struct rpma_conn_cfg *cfg,
			    void *context, struct rpma_conn_req **req_ptr);
/*
 * Feeds a request with the events of the id. E_AGAIN: more events follow; 0:
 * the request may receive and connect; otherwise the request failed: delete.
 */
int rpma_conn_req_advance(struct rpma_conn_req *req,
			  const struct rpma_cm_event *event);
/*
 * Takes the id of a CONNECT_REQUEST; a failure refuses the peer. E_FORKED: the
 * id is untouched.
 */
int rpma_conn_req_new_from_event(struct rpma_peer *peer,
				 const struct rpma_cm_event *event,
				 const struct rpma_conn_cfg *cfg, void *context,
				 struct rpma_conn_req **req_ptr);
/* Deletes a request of the other side, with private data for the side. */
int rpma_conn_req_reject(struct rpma_conn_req **req_ptr,
			 const struct rpma_conn_private_data *pdata);
/* As rpma_conn_next_event(), for a connection on a CM channel. */
int rpma_conn_handle_event(struct rpma_conn *conn,
			   const struct rpma_cm_event *cm_event,
			   enum rpma_conn_event *event);
/*
 * Writes the status of the last event: 0, a negative errno or, for
 * RPMA_CONN_REJECTED, the reason of rdma_cm. E_AGAIN: no event so far.
 */
int rpma_conn_get_event_status(const struct rpma_conn *conn, int *status);

/* ------------------------------------------------------------------------ */
/* More configuration                                                        */
/* ------------------------------------------------------------------------ */

#define RPMA_MIN_RNR_TIMER_UNSET 255
#define RPMA_ACK_TIMEOUT_UNSET	 255
#define RPMA_TOS_UNSET		 (-1)

/* For sends, and for receives without an RCQ. NULL: a new CQ. */
int rpma_conn_cfg_set_cq(struct rpma_conn_cfg *cfg, struct rpma_cq *cq);
int rpma_conn_cfg_get_cq(const struct rpma_conn_cfg *cfg,
			 struct rpma_cq **cq_ptr);
/* For receives. NULL: as rcq_size says. */
int rpma_conn_cfg_set_rcq(struct rpma_conn_cfg *cfg, struct rpma_cq *rcq);
int rpma_conn_cfg_get_rcq(const struct rpma_conn_cfg *cfg,
			  struct rpma_cq **rcq_ptr);
/*
 * The connection's own CQs are made on the channel, unarmed, with the context
 * of the connection. Without an own CQ: E_INVAL when a request is made.
 */
int rpma_conn_cfg_set_channel(struct rpma_conn_cfg *cfg,
			      struct rpma_channel *channel);
int rpma_conn_cfg_get_channel(const struct rpma_conn_cfg *cfg,
			      struct rpma_channel **channel_ptr);
/* The connection's CM events arrive there. */
int rpma_conn_cfg_set_cm_channel(struct rpma_conn_cfg *cfg,
				 struct rpma_cm_channel *cm_channel);
int rpma_conn_cfg_get_cm_channel(const struct rpma_conn_cfg *cfg,
				 struct rpma_cm_channel **cm_channel_ptr);
/* Default 0. A vector that the device lacks: E_INVAL when a request is made. */
int rpma_conn_cfg_set_comp_vector(struct rpma_conn_cfg *cfg, int comp_vector);
int rpma_conn_cfg_get_comp_vector(const struct rpma_conn_cfg *cfg,
				  int *comp_vector);
/* Default 1. */
int rpma_conn_cfg_set_max_send_sge(struct rpma_conn_cfg *cfg, uint32_t n);
int rpma_conn_cfg_get_max_send_sge(const struct rpma_conn_cfg *cfg,
				   uint32_t *n);
int rpma_conn_cfg_set_max_recv_sge(struct rpma_conn_cfg *cfg, uint32_t n);
int rpma_conn_cfg_get_max_recv_sge(const struct rpma_conn_cfg *cfg,
				   uint32_t *n);
/* Default, and least: 8, which the emulated atomic write needs. */
int rpma_conn_cfg_set_max_inline_data(struct rpma_conn_cfg *cfg,
				      uint32_t bytes);
int rpma_conn_cfg_get_max_inline_data(const struct rpma_conn_cfg *cfg,
				      uint32_t *bytes);
/* Default 255: as many as both devices can. */
int rpma_conn_cfg_set_responder_resources(struct rpma_conn_cfg *cfg, uint8_t n);
int rpma_conn_cfg_get_responder_resources(const struct rpma_conn_cfg *cfg,
					  uint8_t *n);
int rpma_conn_cfg_set_initiator_depth(struct rpma_conn_cfg *cfg, uint8_t n);
int rpma_conn_cfg_get_initiator_depth(const struct rpma_conn_cfg *cfg,
				      uint8_t *n);
/* 0..7, default 7. */
int rpma_conn_cfg_set_retry_count(struct rpma_conn_cfg *cfg, uint8_t n);
int rpma_conn_cfg_get_retry_count(const struct rpma_conn_cfg *cfg, uint8_t *n);
/* 0..7, default 7: for ever. */
int rpma_conn_cfg_set_rnr_retry_count(struct rpma_conn_cfg *cfg, uint8_t n);
int rpma_conn_cfg_get_rnr_retry_count(const struct rpma_conn_cfg *cfg,
				      uint8_t *n);
/* The code of InfiniBand, 0..31 (0 is 655 ms), or unset, the default. */
int rpma_conn_cfg_set_min_rnr_timer(struct rpma_conn_cfg *cfg, uint8_t code);
int rpma_conn_cfg_get_min_rnr_timer(const struct rpma_conn_cfg *cfg,
				    uint8_t *code);
/* 4.096 us times 2 to the code, 0..31, or unset, the default. */
int rpma_conn_cfg_set_ack_timeout(struct rpma_conn_cfg *cfg, uint8_t code);
int rpma_conn_cfg_get_ack_timeout(const struct rpma_conn_cfg *cfg,
				  uint8_t *code);
/* 0..255, or unset, the default. */
int rpma_conn_cfg_set_tos(struct rpma_conn_cfg *cfg, int tos);
int rpma_conn_cfg_get_tos(const struct rpma_conn_cfg *cfg, int *tos);
/*
 * A request leaves from the NIC with the address. NULL, the default: by routes.
 * Not copied: the address stays until the request is made.
 */
int rpma_conn_cfg_set_src_addr(struct rpma_conn_cfg *cfg, const char *src_addr);
int rpma_conn_cfg_get_src_addr(const struct rpma_conn_cfg *cfg,
			       const char **src_addr);

/* The SRQ's receives complete here; not owned. NULL: as rcq_size says. */
int rpma_srq_cfg_set_rcq(struct rpma_srq_cfg *cfg, struct rpma_cq *rcq);
int rpma_srq_cfg_get_rcq(const struct rpma_srq_cfg *cfg,
			 struct rpma_cq **rcq_ptr);
/* The SRQ's own RCQ is made on the channel, unarmed. */
int rpma_srq_cfg_set_channel(struct rpma_srq_cfg *cfg,
			     struct rpma_channel *channel);
int rpma_srq_cfg_get_channel(const struct rpma_srq_cfg *cfg,
			     struct rpma_channel **channel_ptr);
/* Default 1. More than the device has: E_INVAL when an SRQ is made. */
int rpma_srq_cfg_set_max_sge(struct rpma_srq_cfg *cfg, uint32_t n);
int rpma_srq_cfg_get_max_sge(const struct rpma_srq_cfg *cfg, uint32_t *n);
/*
 * Once fewer than limit receives are left the device has an asynchronous event,
 * IBV_EVENT_SRQ_LIMIT_REACHED; then set the limit again. 0: no event. E_NOSUPP:
 * the device has no limits.
 */
int rpma_srq_set_limit(struct rpma_srq *srq, uint32_t limit);

/* ------------------------------------------------------------------------ */
/* Objects of verbs and rdma_cm below                                        */
/* ------------------------------------------------------------------------ */

int rpma_peer_get_ibv_context(const struct rpma_peer *peer,
			      struct ibv_context **ibv_ctx);
/* The domain, to register memory that rpma_mr_reg() cannot register. */
int rpma_peer_get_ibv_pd(const struct rpma_peer *peer, struct ibv_pd **ibv_pd);
/*
 * A region that the caller registered in the domain: with relaxed ordering or
 * on-demand paging, of a dmabuf or device memory. iova: the first address, as
 * registered. usage: for descriptors. The ibv_mr belongs to the caller and
 * outlives the region.
 */
int rpma_mr_from_ibv_mr(struct rpma_peer *peer, struct ibv_mr *ibv_mr,
			uint64_t iova, int usage,
			struct rpma_mr_local **mr_ptr);
/* The QP goes with rpma_conn_destroy_qp() (E_INVAL from then) or delete. */
int rpma_conn_get_qp(const struct rpma_conn *conn, struct ibv_qp **qp);
int rpma_conn_get_cm_id(const struct rpma_conn *conn, struct rdma_cm_id **id);
/* E_AGAIN: no data so far. */
int rpma_conn_req_get_qp(const struct rpma_conn_req *req, struct ibv_qp **qp);
int rpma_conn_req_get_cm_id(const struct rpma_conn_req *req,
			    struct rdma_cm_id **id);
int rpma_mr_get_lkey(const struct rpma_mr_local *mr, uint32_t *lkey);
int rpma_srq_get_ibv_srq(const struct rpma_srq *srq, struct ibv_srq **ibv_srq);

/* ------------------------------------------------------------------------ */
/* Claiming, and taking down in steps                                        */
/* ------------------------------------------------------------------------ */

/*
 * While claimed, operations of other callers return E_SHARED_CHANNEL and delete
 * returns E_CLAIMED. E_CLAIMED: claimed by another owner. The claim of a
 * request passes to the connection.
 */
int rpma_conn_claim(struct rpma_conn *conn, const void *owner);
int rpma_conn_release(struct rpma_conn *conn, const void *owner);
int rpma_conn_req_claim(struct rpma_conn_req *req, const void *owner);
int rpma_conn_req_release(struct rpma_conn_req *req, const void *owner);
/*
 * owner: the claimer, NULL if unclaimed; E_CLAIMED: claimed by another owner.
 * Each may be called again. Delete does the rest.
 */
int rpma_conn_qp_to_err(struct rpma_conn *conn, const void *owner);
int rpma_conn_destroy_qp(struct rpma_conn *conn, const void *owner);
int rpma_conn_req_qp_to_err(struct rpma_conn_req *req, const void *owner);
int rpma_conn_req_destroy_qp(struct rpma_conn_req *req, const void *owner);

/* ------------------------------------------------------------------------ */
/* Operations as work requests                                               */
/* ------------------------------------------------------------------------ */

/* A prepared object points into the object: not copied. */
struct rpma_send_wr {
	struct ibv_send_wr wr; /* first: wr.next chains rpma_send_wr objects */
	struct ibv_sge sge;
	uint64_t data;	      /* atomic write: the bytes */
	uint32_t native;      /* 0, or an operation beyond ibv_post_send() */
	uint32_t native_arg;  /* and the argument */
	uint64_t reserved[2]; /* 0, or posting answers E_INVAL */
};

struct rpma_recv_wr {
	struct ibv_recv_wr wr; /* first: wr.next chains rpma_recv_wr objects */
	struct ibv_sge sge;
	uint64_t reserved[2]; /* 0, or posting answers E_INVAL */
};

/* A piece of a message: len bytes of a region of this side. */
struct rpma_sge {
	const struct rpma_mr_local *mr;
	size_t offset;
	size_t len; /* below 4 GiB */
};

/*
 * A struct rpma_mr_local begins with a struct rpma_mr_local_head, for programs
 * that fill in the ibv_send_wr or ibv_recv_wr of an operation, and post the
 * work request by verbs: the address of a piece is addr + offset, the key
 * ibv_mr->lkey. A struct rpma_mr_remote begins with a struct
 * rpma_mr_remote_head. Immutable.
 */
struct rpma_mr_local_head {
	struct ibv_mr *ibv_mr;
	uint64_t addr;
};

struct rpma_mr_remote_head {
	uint64_t addr;
	uint64_t size;
	uint32_t rkey;
};

/* Arguments as of the plain calls; wr_id is any number. Nothing is posted. */
int rpma_wr_read(struct rpma_conn *conn, struct rpma_mr_local *dst,
		 size_t dst_offset, const struct rpma_mr_remote *src,
		 size_t src_offset, size_t len, int flags, uint64_t wr_id,
		 struct rpma_send_wr *wr);
int rpma_wr_write(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
		  size_t dst_offset, const struct rpma_mr_local *src,
		  size_t src_offset, size_t len, int flags, uint64_t wr_id,
		  struct rpma_send_wr *wr);
int rpma_wr_write_with_imm(struct rpma_conn *conn,
			   const struct rpma_mr_remote *dst, size_t dst_offset,
			   const struct rpma_mr_local *src, size_t src_offset,
			   size_t len, int flags, uint32_t imm, uint64_t wr_id,
			   struct rpma_send_wr *wr);
int rpma_wr_atomic_write(struct rpma_conn *conn,
			 const struct rpma_mr_remote *dst, size_t dst_offset,
			 const char src[8], int flags, uint64_t wr_id,
			 struct rpma_send_wr *wr);
int rpma_wr_flush(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
		  size_t dst_offset, size_t len, enum rpma_flush_type type,
		  int flags, uint64_t wr_id, struct rpma_send_wr *wr);
int rpma_wr_send(struct rpma_conn *conn, const struct rpma_mr_local *src,
		 size_t offset, size_t len, int flags, uint64_t wr_id,
		 struct rpma_send_wr *wr);
int rpma_wr_send_with_imm(struct rpma_conn *conn,
			  const struct rpma_mr_local *src, size_t offset,
			  size_t len, int flags, uint32_t imm, uint64_t wr_id,
			  struct rpma_send_wr *wr);
int rpma_wr_recv(struct rpma_mr_local *dst, size_t offset, size_t len,
		 uint64_t wr_id, struct rpma_recv_wr *wr);
/*
 * Change the 8 bytes at dst, a number: swap replaces a number equal to compare;
 * add is added. The former value arrives at old. E_NOSUPP: the device has no
 * atomics.
 */
int rpma_wr_atomic_cmp_swp(struct rpma_conn *conn, struct rpma_mr_local *old,
			   size_t old_offset, const struct rpma_mr_remote *dst,
			   size_t dst_offset, uint64_t compare, uint64_t swap,
			   int flags, uint64_t wr_id, struct rpma_send_wr *wr);
int rpma_wr_atomic_fetch_add(struct rpma_conn *conn, struct rpma_mr_local *old,
			     size_t old_offset,
			     const struct rpma_mr_remote *dst,
			     size_t dst_offset, uint64_t add, int flags,
			     uint64_t wr_id, struct rpma_send_wr *wr);
/*
 * Gives a prepared send, write, read or receive other bytes: count pieces, 1 to
 * max_send_sge, max_recv_sge or the SRQ's max_sge. sge has room for count and
 * stays as long as wr.
 */
int rpma_wr_set_sge_list(const struct rpma_sge *list, int count,
			 struct ibv_sge *sge, struct rpma_send_wr *wr);
int rpma_wr_recv_set_sge_list(const struct rpma_sge *list, int count,
			      struct ibv_sge *sge, struct rpma_recv_wr *wr);

/*
 * Posts a work request or a chain, one doorbell. owner: the claimer, or NULL.
 * E_AGAIN: the queue is full. On failure *bad_wr is the first that was not
 * posted; a chain with a wrong part (E_INVAL, logged) is not posted at all.
 */
int rpma_conn_post_send(struct rpma_conn *conn, const void *owner,
			struct rpma_send_wr *wr, struct rpma_send_wr **bad_wr);
int rpma_conn_post_recv(struct rpma_conn *conn, const void *owner,
			struct rpma_recv_wr *wr, struct rpma_recv_wr **bad_wr);
int rpma_conn_req_post_recv(struct rpma_conn_req *req, const void *owner,
			    struct rpma_recv_wr *wr,
			    struct rpma_recv_wr **bad_wr);
int rpma_srq_post_recv(struct rpma_srq *srq, struct rpma_recv_wr *wr,
		       struct rpma_recv_wr **bad_wr);

#ifdef __cplusplus
}
#endif

#endif /* LIBRPMA_H */
