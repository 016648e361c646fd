/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * The header of a program built for a librpma from before 1.0: every function
 * that the release declared, and the types and values they need. RPMA_OLD is
 * the release: 8 is the release candidate of 0.9, 9 to 14 are 0.9 to 0.14.
 */

#ifndef LIBRPMA_H
#define LIBRPMA_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

/* the candidate had const where 0.9 had none */
#if RPMA_OLD == 8
#define RC_CONST const
#else
#define RC_CONST
#endif

#define RPMA_E_UNKNOWN	     (-100000)
#define RPMA_E_NOSUPP	     (-100001)
#define RPMA_E_PROVIDER	     (-100002)
#define RPMA_E_NOMEM	     (-100003)
#define RPMA_E_INVAL	     (-100004)
#define RPMA_E_NO_COMPLETION (-100005)
#define RPMA_E_NO_EVENT	     (-100006)
#if RPMA_OLD >= 9
#define RPMA_E_AGAIN (-100007)
#endif

#define RPMA_MR_USAGE_READ_SRC		    (1 << 0)
#define RPMA_MR_USAGE_READ_DST		    (1 << 1)
#define RPMA_MR_USAGE_WRITE_SRC		    (1 << 2)
#define RPMA_MR_USAGE_WRITE_DST		    (1 << 3)
#define RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY (1 << 4)
#define RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT (1 << 5)
#define RPMA_MR_USAGE_SEND		    (1 << 6)
#define RPMA_MR_USAGE_RECV		    (1 << 7)

#define RPMA_F_COMPLETION_ON_ERROR (1 << 0)
#define RPMA_F_COMPLETION_ALWAYS   (1 << 1 | RPMA_F_COMPLETION_ON_ERROR)

struct rpma_peer;
struct rpma_peer_cfg;
struct rpma_mr_local;
struct rpma_mr_remote;
struct rpma_conn_cfg;
struct rpma_conn;
struct rpma_conn_req;
struct rpma_ep;
struct rpma_cq;

struct rpma_conn_private_data {
	void *ptr;
	uint8_t len;
};

enum rpma_util_ibv_context_type {
	RPMA_UTIL_IBV_CONTEXT_LOCAL,
	RPMA_UTIL_IBV_CONTEXT_REMOTE
};

enum rpma_conn_event {
	RPMA_CONN_UNDEFINED = -1,
	RPMA_CONN_ESTABLISHED,
	RPMA_CONN_CLOSED,
	RPMA_CONN_LOST
};

enum rpma_flush_type { RPMA_FLUSH_TYPE_PERSISTENT, RPMA_FLUSH_TYPE_VISIBILITY };

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
	RPMA_LOG_THRESHOLD,
	RPMA_LOG_THRESHOLD_AUX,
	RPMA_LOG_THRESHOLD_MAX
};

typedef void rpma_log_function(enum rpma_log_level level, const char *file_name,
			       const int line_no, const char *function_name,
			       const char *message_format, ...);

#if RPMA_OLD <= 11
enum rpma_op {
	RPMA_OP_READ,
	RPMA_OP_WRITE,
	RPMA_OP_FLUSH,
	RPMA_OP_SEND,
	RPMA_OP_RECV,
#if RPMA_OLD >= 10
	RPMA_OP_RECV_RDMA_WITH_IMM,
#endif
};

struct rpma_completion {
	void *op_context;
	enum rpma_op op;
	uint32_t byte_len;
	enum ibv_wc_status op_status;
#if RPMA_OLD >= 10
	unsigned flags;
	uint32_t imm;
#endif
};
#endif

const char *rpma_err_2str(int ret);

int rpma_utils_get_ibv_context(const char *addr,
			       enum rpma_util_ibv_context_type type,
			       struct ibv_context **ibv_ctx_ptr);
int rpma_utils_ibv_context_is_odp_capable(struct ibv_context *ibv_ctx,
					  int *is_odp_capable);
const char *rpma_utils_conn_event_2str(enum rpma_conn_event conn_event);

int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr);
int rpma_peer_cfg_delete(struct rpma_peer_cfg **pcfg_ptr);
int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg *pcfg,
					   bool supported);
int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg *pcfg,
					   bool *supported);
int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg *pcfg, void *desc);
int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg *pcfg,
				      size_t *desc_size);
#if RPMA_OLD == 8
int rpma_peer_cfg_from_descriptor(void *desc, size_t desc_size,
				  struct rpma_peer_cfg **pcfg_ptr);
#else
int rpma_peer_cfg_from_descriptor(const void *desc, size_t desc_size,
				  struct rpma_peer_cfg **pcfg_ptr);
#endif

int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr);
int rpma_peer_delete(struct rpma_peer **peer_ptr);

int rpma_mr_reg(RC_CONST struct rpma_peer *peer, void *ptr, size_t size,
		int usage, struct rpma_mr_local **mr_ptr);
int rpma_mr_dereg(struct rpma_mr_local **mr_ptr);
int rpma_mr_get_descriptor(const struct rpma_mr_local *mr, void *desc);
int rpma_mr_get_descriptor_size(const struct rpma_mr_local *mr,
				size_t *desc_size);
int rpma_mr_remote_from_descriptor(const void *desc, size_t desc_size,
				   struct rpma_mr_remote **mr_ptr);
int rpma_mr_remote_get_size(const struct rpma_mr_remote *mr, size_t *size);
int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote *mr,
				  int *flush_type);
int rpma_mr_remote_delete(struct rpma_mr_remote **mr_ptr);
#if RPMA_OLD >= 10
int rpma_mr_get_ptr(const struct rpma_mr_local *mr, void **ptr);
int rpma_mr_get_size(const struct rpma_mr_local *mr, size_t *size);
int rpma_mr_advise(struct rpma_mr_local *mr, size_t offset, size_t len,
		   int advice, uint32_t flags);
#endif

int rpma_conn_cfg_new(struct rpma_conn_cfg **cfg_ptr);
int rpma_conn_cfg_delete(struct rpma_conn_cfg **cfg_ptr);
int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg *cfg, int timeout_ms);
int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms);
int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg *cfg, uint32_t cq_size);
int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg *cfg,
			      uint32_t *cq_size);
int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg *cfg, uint32_t sq_size);
int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg *cfg,
			      uint32_t *sq_size);
int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg *cfg, uint32_t rq_size);
int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg *cfg,
			      uint32_t *rq_size);
#if RPMA_OLD >= 10
int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg *cfg, uint32_t rcq_size);
int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg *cfg,
			       uint32_t *rcq_size);
#endif

int rpma_conn_get_event_fd(const struct rpma_conn *conn, int *fd);
int rpma_conn_next_event(struct rpma_conn *conn, enum rpma_conn_event *event);
int rpma_conn_get_private_data(const struct rpma_conn *conn,
			       struct rpma_conn_private_data *pdata);
int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn,
				    const struct rpma_peer_cfg *pcfg);
int rpma_conn_disconnect(RC_CONST struct rpma_conn *conn);
int rpma_conn_delete(struct rpma_conn **conn_ptr);
#if RPMA_OLD >= 10
int rpma_conn_get_qp_num(const struct rpma_conn *conn, uint32_t *qp_num);
int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq_ptr);
int rpma_conn_get_rcq(const struct rpma_conn *conn, struct rpma_cq **rcq_ptr);
#endif

int rpma_conn_req_new(RC_CONST struct rpma_peer *peer, const char *addr,
		      const char *port, const struct rpma_conn_cfg *cfg,
		      struct rpma_conn_req **req_ptr);
int rpma_conn_req_delete(struct rpma_conn_req **req_ptr);
int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
			  const struct rpma_conn_private_data *pdata,
			  struct rpma_conn **conn_ptr);
int rpma_conn_req_recv(RC_CONST struct rpma_conn_req *req,
		       RC_CONST struct rpma_mr_local *dst, size_t offset,
		       size_t len, const void *op_context);
#if RPMA_OLD >= 10
int rpma_conn_req_get_private_data(const struct rpma_conn_req *req,
				   struct rpma_conn_private_data *pdata);
#endif

int rpma_ep_listen(RC_CONST struct rpma_peer *peer, const char *addr,
		   const char *port, struct rpma_ep **ep_ptr);
int rpma_ep_shutdown(struct rpma_ep **ep_ptr);
int rpma_ep_get_fd(const struct rpma_ep *ep, int *fd);
int rpma_ep_next_conn_req(RC_CONST struct rpma_ep *ep,
			  const struct rpma_conn_cfg *cfg,
			  struct rpma_conn_req **req_ptr);

int rpma_read(RC_CONST struct rpma_conn *conn,
	      RC_CONST struct rpma_mr_local *dst, size_t dst_offset,
	      const struct rpma_mr_remote *src, size_t src_offset, size_t len,
	      int flags, const void *op_context);
int rpma_write(RC_CONST struct rpma_conn *conn,
	       RC_CONST struct rpma_mr_remote *dst, size_t dst_offset,
	       const struct rpma_mr_local *src, size_t src_offset, size_t len,
	       int flags, const void *op_context);
int rpma_flush(RC_CONST struct rpma_conn *conn,
	       RC_CONST struct rpma_mr_remote *dst, size_t dst_offset,
	       size_t len, enum rpma_flush_type type, int flags,
	       const void *op_context);
int rpma_send(RC_CONST struct rpma_conn *conn, const struct rpma_mr_local *src,
	      size_t offset, size_t len, int flags, const void *op_context);
int rpma_recv(RC_CONST struct rpma_conn *conn,
	      RC_CONST struct rpma_mr_local *dst, size_t offset, size_t len,
	      const void *op_context);
#if RPMA_OLD <= 13
int rpma_write_atomic(RC_CONST struct rpma_conn *conn,
		      RC_CONST struct rpma_mr_remote *dst, size_t dst_offset,
		      const struct rpma_mr_local *src, size_t src_offset,
		      int flags, const void *op_context);
#endif
#if RPMA_OLD >= 10
int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst,
			size_t dst_offset, const struct rpma_mr_local *src,
			size_t src_offset, size_t len, int flags, uint32_t imm,
			const void *op_context);
int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src,
		       size_t offset, size_t len, int flags, uint32_t imm,
		       const void *op_context);
#endif
#if RPMA_OLD >= 13
int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst,
		      size_t dst_offset, const char src[8], int flags,
		      const void *op_context);
#endif

#if RPMA_OLD == 8
int rpma_conn_prepare_completions(const struct rpma_conn *conn);
int rpma_conn_next_completion(const struct rpma_conn *conn,
			      struct rpma_completion *cmpl);
#endif
#if RPMA_OLD == 9 || RPMA_OLD == 10
int rpma_conn_completion_wait(struct rpma_conn *conn);
int rpma_conn_completion_get(struct rpma_conn *conn,
			     struct rpma_completion *cmpl);
#endif
#if RPMA_OLD <= 10
int rpma_conn_get_completion_fd(const struct rpma_conn *conn, int *fd);
#endif
#if RPMA_OLD >= 10
int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd);
int rpma_cq_wait(struct rpma_cq *cq);
#endif
#if RPMA_OLD == 10 || RPMA_OLD == 11
int rpma_cq_get_completion(struct rpma_cq *cq, struct rpma_completion *cmpl);
#endif
#if RPMA_OLD >= 11
int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc,
		   int *num_entries_got);
#endif

int rpma_log_set_threshold(enum rpma_log_threshold threshold,
			   enum rpma_log_level level);
int rpma_log_get_threshold(enum rpma_log_threshold threshold,
			   enum rpma_log_level *level);
#if RPMA_OLD == 8
void rpma_log_set_function(rpma_log_function *log_function);
#else
int rpma_log_set_function(rpma_log_function *log_function);
#endif

#endif /* LIBRPMA_H */
