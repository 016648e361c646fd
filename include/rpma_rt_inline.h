/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * Inlines of rpma_rt.h, which includes this at its end: what a completion
 * holds, without casts; work requests, prepared and posted one by one. For
 * languages that cannot inline, librpma_rt_inline has them as functions.
 */

#ifndef RPMA_RT_INLINE_H
#define RPMA_RT_INLINE_H

#ifndef RPMA_RT_H
#error "include rpma_rt.h, which includes this"
#endif

#include <arpa/inet.h>

#include <string.h>

/* how each is declared: librpma_rt_inline makes functions of them */
#ifndef RPMA_RT_INLINE
#define RPMA_RT_INLINE static inline
#endif

#ifdef __cplusplus
extern "C" {
#ifdef __clang__ /* gcc accepts the casts and NULL of C in extern "C" */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast"
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant"
#endif
#endif

/* ---------------------------------------------------------- completions --- */
/* Each reads the completion only. Thread: any. */

/* An operation that succeeded. */
RPMA_RT_INLINE bool
rpma_rt_completion_is_ok(const struct rpma_rt_completion *cmpl)
{
	return cmpl->kind == RPMA_RT_COMPLETION &&
	       cmpl->status == IBV_WC_SUCCESS;
}

/* A message, or a write with immediate data, that was received. */
RPMA_RT_INLINE bool
rpma_rt_completion_is_received(const struct rpma_rt_completion *cmpl)
{
	return rpma_rt_completion_is_ok(cmpl) &&
	       (cmpl->opcode & IBV_WC_RECV) != 0;
}

/* enum rpma_rt_event; 0 of what is no event. */
RPMA_RT_INLINE unsigned
rpma_rt_completion_event(const struct rpma_rt_completion *cmpl)
{
	return cmpl->kind == RPMA_RT_EVENT ? cmpl->opcode : 0u;
}

/* The connection of an event or WRITABLE; NULL of an item whose context is the
 * program's, a shared receive queue or a listener. */
RPMA_RT_INLINE struct rpma_rt_conn *
rpma_rt_completion_conn(const struct rpma_rt_completion *cmpl)
{
	bool is_conn = (cmpl->kind == RPMA_RT_EVENT &&
			cmpl->opcode <= RPMA_RT_EVENT_ROUTE_CLOSED) ||
		       (cmpl->kind == RPMA_RT_WRITABLE &&
			cmpl->opcode != RPMA_RT_WRITABLE_SRQ);

	return is_conn ? (struct rpma_rt_conn *)(uintptr_t)cmpl->context : NULL;
}

/* The shared receive queue of SRQ_LIMIT, SRQ_FAILED, SRQ_CLOSED (to compare
 * only) or its WRITABLE; NULL of others. */
RPMA_RT_INLINE struct rpma_rt_srq *
rpma_rt_completion_srq(const struct rpma_rt_completion *cmpl)
{
	bool is_srq = (cmpl->kind == RPMA_RT_EVENT &&
		       (cmpl->opcode == RPMA_RT_EVENT_SRQ_LIMIT ||
			cmpl->opcode == RPMA_RT_EVENT_SRQ_FAILED ||
			cmpl->opcode == RPMA_RT_EVENT_SRQ_CLOSED)) ||
		      (cmpl->kind == RPMA_RT_WRITABLE &&
		       cmpl->opcode == RPMA_RT_WRITABLE_SRQ);

	return is_srq ? (struct rpma_rt_srq *)(uintptr_t)cmpl->context : NULL;
}

/* The listener of LISTENER_CLOSED, to compare only; NULL of others. */
RPMA_RT_INLINE struct rpma_rt_listener *
rpma_rt_completion_listener(const struct rpma_rt_completion *cmpl)
{
	bool is_listener = cmpl->kind == RPMA_RT_EVENT &&
			   cmpl->opcode == RPMA_RT_EVENT_LISTENER_CLOSED;

	return is_listener ? (struct rpma_rt_listener *)(uintptr_t)cmpl->context
			   : NULL;
}

/* The context as a pointer: of a completion or message, as posted or pushed. */
RPMA_RT_INLINE void *
rpma_rt_completion_ptr(const struct rpma_rt_completion *cmpl)
{
	return (void *)(uintptr_t)cmpl->context;
}

/* Has it immediate data? Then *imm is that, in host order. */
RPMA_RT_INLINE bool
rpma_rt_completion_imm(const struct rpma_rt_completion *cmpl, uint32_t *imm)
{
	if (!rpma_rt_completion_is_ok(cmpl) ||
	    !(cmpl->flags & RPMA_RT_C_WITH_IMM))
		return false;
	*imm = ntohl(cmpl->imm);
	return true;
}

/* Returns the kind of cause that CLOSED, or LISTENER_CLOSED, has beside the
 * reason: *value is 0, the positive errno of what failed, or a reject reason of
 * the CM. */
RPMA_RT_INLINE enum rpma_rt_detail
rpma_rt_completion_detail(const struct rpma_rt_completion *cmpl, int *value)
{
	unsigned event = rpma_rt_completion_event(cmpl);
	int32_t imm = (int32_t)cmpl->imm;

	*value = 0;
	if ((event != RPMA_RT_EVENT_CLOSED &&
	     event != RPMA_RT_EVENT_LISTENER_CLOSED) ||
	    imm == 0)
		return RPMA_RT_DETAIL_NONE;
	*value = imm < 0 ? -imm : imm;
	return imm < 0 ? RPMA_RT_DETAIL_ERRNO : RPMA_RT_DETAIL_REJECT;
}

/* -------------------------------------------------------- work requests --- */
/*
 * rpma_rt_prep_*() fills the whole of *wr with one operation and posts nothing;
 * what is not among the arguments (route, pieces) is set afterwards. The
 * arguments are the fields of struct rpma_rt_wr. Thread: any.
 */

RPMA_RT_INLINE void rpma_rt_prep(struct rpma_rt_wr *wr, enum rpma_rt_op op,
				 uint32_t flags, uint64_t context)
{
	/* each by itself: compilers clear a struct of this size with a string
	 * instruction, which takes longer than the rest of a post */
	wr->op = (uint8_t)op;
	wr->flush_type = 0;
	wr->piece_count = 0;
	wr->flags = flags;
	wr->context = context;
	wr->route = NULL;
	wr->future = NULL;
	wr->lease = NULL;
	wr->local = NULL;
	wr->local_offset = 0;
	wr->len = 0;
	wr->remote = NULL;
	wr->remote_offset = 0;
	wr->imm = 0;
	wr->reserved32 = 0;
	wr->compare_add = 0;
	wr->swap = 0;
}

RPMA_RT_INLINE void rpma_rt_prep_send(struct rpma_rt_wr *wr,
				      const struct rpma_mr_local *src,
				      size_t offset, size_t len, uint32_t flags,
				      uint64_t context)
{
	rpma_rt_prep(wr, RPMA_RT_OP_SEND, flags, context);
	wr->local = (struct rpma_mr_local *)(uintptr_t)src;
	wr->local_offset = offset;
	wr->len = len;
}

/* The first len bytes of a lease, which the send takes. */
RPMA_RT_INLINE void rpma_rt_prep_send_lease(struct rpma_rt_wr *wr,
					    const struct rpma_rt_lease *lease,
					    size_t len, uint32_t flags)
{
	rpma_rt_prep_send(wr, lease->mr, lease->offset, len, flags, 0);
	wr->lease = lease;
}

/* imm: in host order */
RPMA_RT_INLINE void rpma_rt_prep_send_with_imm(struct rpma_rt_wr *wr,
					       const struct rpma_mr_local *src,
					       size_t offset, size_t len,
					       uint32_t imm, uint32_t flags,
					       uint64_t context)
{
	rpma_rt_prep_send(wr, src, offset, len, flags, context);
	wr->op = RPMA_RT_OP_SEND_WITH_IMM;
	wr->imm = imm;
}

RPMA_RT_INLINE void rpma_rt_prep_write(struct rpma_rt_wr *wr,
				       const struct rpma_mr_remote *dst,
				       size_t dst_offset,
				       const struct rpma_mr_local *src,
				       size_t src_offset, size_t len,
				       uint32_t flags, uint64_t context)
{
	rpma_rt_prep_send(wr, src, src_offset, len, flags, context);
	wr->op = RPMA_RT_OP_WRITE;
	wr->remote = dst;
	wr->remote_offset = dst_offset;
}

RPMA_RT_INLINE void rpma_rt_prep_write_with_imm(
	struct rpma_rt_wr *wr, const struct rpma_mr_remote *dst,
	size_t dst_offset, const struct rpma_mr_local *src, size_t src_offset,
	size_t len, uint32_t imm, uint32_t flags, uint64_t context)
{
	rpma_rt_prep_write(wr, dst, dst_offset, src, src_offset, len, flags,
			   context);
	wr->op = RPMA_RT_OP_WRITE_WITH_IMM;
	wr->imm = imm;
}

RPMA_RT_INLINE void rpma_rt_prep_read(struct rpma_rt_wr *wr,
				      struct rpma_mr_local *dst,
				      size_t dst_offset,
				      const struct rpma_mr_remote *src,
				      size_t src_offset, size_t len,
				      uint32_t flags, uint64_t context)
{
	rpma_rt_prep_write(wr, src, src_offset, dst, dst_offset, len, flags,
			   context);
	wr->op = RPMA_RT_OP_READ;
}

RPMA_RT_INLINE void rpma_rt_prep_flush(struct rpma_rt_wr *wr,
				       const struct rpma_mr_remote *dst,
				       size_t dst_offset, size_t len,
				       enum rpma_flush_type type,
				       uint32_t flags, uint64_t context)
{
	rpma_rt_prep(wr, RPMA_RT_OP_FLUSH, flags, context);
	wr->remote = dst;
	wr->remote_offset = dst_offset;
	wr->len = len;
	wr->flush_type = (uint8_t)type;
}

RPMA_RT_INLINE void rpma_rt_prep_atomic_write(struct rpma_rt_wr *wr,
					      const struct rpma_mr_remote *dst,
					      size_t dst_offset,
					      const char src[8], uint32_t flags,
					      uint64_t context)
{
	rpma_rt_prep(wr, RPMA_RT_OP_ATOMIC_WRITE, flags, context);
	wr->remote = dst;
	wr->remote_offset = dst_offset;
	memcpy(wr->data, src, sizeof(wr->data));
}

/* old: 8 bytes of this side, for what was there before */
RPMA_RT_INLINE void
rpma_rt_prep_compare_swap(struct rpma_rt_wr *wr, struct rpma_mr_local *old,
			  size_t old_offset, const struct rpma_mr_remote *dst,
			  size_t dst_offset, uint64_t compare, uint64_t swap,
			  uint32_t flags, uint64_t context)
{
	rpma_rt_prep_read(wr, old, old_offset, dst, dst_offset,
			  sizeof(uint64_t), flags, context);
	wr->op = RPMA_RT_OP_COMPARE_SWAP;
	wr->compare_add = compare;
	wr->swap = swap;
}

RPMA_RT_INLINE void rpma_rt_prep_fetch_add(struct rpma_rt_wr *wr,
					   struct rpma_mr_local *old,
					   size_t old_offset,
					   const struct rpma_mr_remote *dst,
					   size_t dst_offset, uint64_t add,
					   uint32_t flags, uint64_t context)
{
	rpma_rt_prep_read(wr, old, old_offset, dst, dst_offset,
			  sizeof(uint64_t), flags, context);
	wr->op = RPMA_RT_OP_FETCH_ADD;
	wr->compare_add = add;
}

RPMA_RT_INLINE void rpma_rt_prep_recv(struct rpma_rt_recv_wr *wr,
				      struct rpma_mr_local *dst, size_t offset,
				      size_t len, uint64_t context)
{
	wr->context = context;
	wr->route = NULL;
	wr->future = NULL;
	wr->dst = dst;
	wr->offset = offset;
	wr->len = len;
	wr->piece_count = 0;
	wr->reserved32 = 0;
}

/* Pieces in place of the one that was prepared; borrowed until it is posted. */
RPMA_RT_INLINE void rpma_rt_wr_set_pieces(struct rpma_rt_wr *wr,
					  const struct rpma_sge *pieces,
					  uint16_t count)
{
	wr->local_offset = 0;
	wr->len = 0;
	wr->pieces = pieces;
	wr->piece_count = count;
}

RPMA_RT_INLINE void rpma_rt_recv_wr_set_pieces(struct rpma_rt_recv_wr *wr,
					       const struct rpma_sge *pieces,
					       uint32_t count)
{
	wr->offset = 0;
	wr->len = 0;
	wr->pieces = pieces;
	wr->piece_count = count;
}

/* ------------------------------------------------------------ one each --- */
/*
 * Prepared and posted, to the connection's queue: 0 or an error of
 * rpma_rt_post_send(), rpma_rt_post_recv(), rpma_rt_srq_post_recv().
 */

RPMA_RT_MUST_CHECK RPMA_RT_INLINE int
rpma_rt_send(struct rpma_rt_conn *conn, const struct rpma_mr_local *src,
	     size_t offset, size_t len, uint32_t flags, uint64_t context)
{
	struct rpma_rt_wr wr;
	int ret;

	rpma_rt_prep_send(&wr, src, offset, len, flags, context);
	ret = rpma_rt_post_send(conn, &wr, 1);
	return ret < 0 ? ret : 0;
}

/* The first len bytes of a lease, which the send takes. */
RPMA_RT_MUST_CHECK RPMA_RT_INLINE int
rpma_rt_send_lease(struct rpma_rt_conn *conn, const struct rpma_rt_lease *lease,
		   size_t len, uint32_t flags)
{
	struct rpma_rt_wr wr;
	int ret;

	rpma_rt_prep_send_lease(&wr, lease, len, flags);
	ret = rpma_rt_post_send(conn, &wr, 1);
	return ret < 0 ? ret : 0;
}

RPMA_RT_MUST_CHECK RPMA_RT_INLINE int
rpma_rt_send_with_imm(struct rpma_rt_conn *conn,
		      const struct rpma_mr_local *src, size_t offset,
		      size_t len, uint32_t imm, uint32_t flags,
		      uint64_t context)
{
	struct rpma_rt_wr wr;
	int ret;

	rpma_rt_prep_send_with_imm(&wr, src, offset, len, imm, flags, context);
	ret = rpma_rt_post_send(conn, &wr, 1);
	return ret < 0 ? ret : 0;
}

RPMA_RT_MUST_CHECK RPMA_RT_INLINE int
rpma_rt_write(struct rpma_rt_conn *conn, const struct rpma_mr_remote *dst,
	      size_t dst_offset, const struct rpma_mr_local *src,
	      size_t src_offset, size_t len, uint32_t flags, uint64_t context)
{
	struct rpma_rt_wr wr;
	int ret;

	rpma_rt_prep_write(&wr, dst, dst_offset, src, src_offset, len, flags,
			   context);
	ret = rpma_rt_post_send(conn, &wr, 1);
	return ret < 0 ? ret : 0;
}

RPMA_RT_MUST_CHECK RPMA_RT_INLINE int rpma_rt_write_with_imm(
	struct rpma_rt_conn *conn, const struct rpma_mr_remote *dst,
	size_t dst_offset, const struct rpma_mr_local *src, size_t src_offset,
	size_t len, uint32_t imm, uint32_t flags, uint64_t context)
{
	struct rpma_rt_wr wr;
	int ret;

	rpma_rt_prep_write_with_imm(&wr, dst, dst_offset, src, src_offset, len,
				    imm, flags, context);
	ret = rpma_rt_post_send(conn, &wr, 1);
	return ret < 0 ? ret : 0;
}

RPMA_RT_MUST_CHECK RPMA_RT_INLINE int
rpma_rt_read(struct rpma_rt_conn *conn, struct rpma_mr_local *dst,
	     size_t dst_offset, const struct rpma_mr_remote *src,
	     size_t src_offset, size_t len, uint32_t flags, uint64_t context)
{
	struct rpma_rt_wr wr;
	int ret;

	rpma_rt_prep_read(&wr, dst, dst_offset, src, src_offset, len, flags,
			  context);
	ret = rpma_rt_post_send(conn, &wr, 1);
	return ret < 0 ? ret : 0;
}

RPMA_RT_MUST_CHECK RPMA_RT_INLINE int
rpma_rt_flush(struct rpma_rt_conn *conn, const struct rpma_mr_remote *dst,
	      size_t dst_offset, size_t len, enum rpma_flush_type type,
	      uint32_t flags, uint64_t context)
{
	struct rpma_rt_wr wr;
	int ret;

	rpma_rt_prep_flush(&wr, dst, dst_offset, len, type, flags, context);
	ret = rpma_rt_post_send(conn, &wr, 1);
	return ret < 0 ? ret : 0;
}

RPMA_RT_MUST_CHECK RPMA_RT_INLINE int
rpma_rt_atomic_write(struct rpma_rt_conn *conn,
		     const struct rpma_mr_remote *dst, size_t dst_offset,
		     const char src[8], uint32_t flags, uint64_t context)
{
	struct rpma_rt_wr wr;
	int ret;

	rpma_rt_prep_atomic_write(&wr, dst, dst_offset, src, flags, context);
	ret = rpma_rt_post_send(conn, &wr, 1);
	return ret < 0 ? ret : 0;
}

RPMA_RT_MUST_CHECK RPMA_RT_INLINE int
rpma_rt_compare_swap(struct rpma_rt_conn *conn, struct rpma_mr_local *old,
		     size_t old_offset, const struct rpma_mr_remote *dst,
		     size_t dst_offset, uint64_t compare, uint64_t swap,
		     uint32_t flags, uint64_t context)
{
	struct rpma_rt_wr wr;
	int ret;

	rpma_rt_prep_compare_swap(&wr, old, old_offset, dst, dst_offset,
				  compare, swap, flags, context);
	ret = rpma_rt_post_send(conn, &wr, 1);
	return ret < 0 ? ret : 0;
}

RPMA_RT_MUST_CHECK RPMA_RT_INLINE int
rpma_rt_fetch_add(struct rpma_rt_conn *conn, struct rpma_mr_local *old,
		  size_t old_offset, const struct rpma_mr_remote *dst,
		  size_t dst_offset, uint64_t add, uint32_t flags,
		  uint64_t context)
{
	struct rpma_rt_wr wr;
	int ret;

	rpma_rt_prep_fetch_add(&wr, old, old_offset, dst, dst_offset, add,
			       flags, context);
	ret = rpma_rt_post_send(conn, &wr, 1);
	return ret < 0 ? ret : 0;
}

RPMA_RT_MUST_CHECK RPMA_RT_INLINE int rpma_rt_recv(struct rpma_rt_conn *conn,
						   struct rpma_mr_local *dst,
						   size_t offset, size_t len,
						   uint64_t context)
{
	struct rpma_rt_recv_wr wr;
	int ret;

	rpma_rt_prep_recv(&wr, dst, offset, len, context);
	ret = rpma_rt_post_recv(conn, &wr, 1);
	return ret < 0 ? ret : 0;
}

RPMA_RT_MUST_CHECK RPMA_RT_INLINE int
rpma_rt_srq_recv(struct rpma_rt_srq *srq, struct rpma_mr_local *dst,
		 size_t offset, size_t len, uint64_t context)
{
	struct rpma_rt_recv_wr wr;
	int ret;

	rpma_rt_prep_recv(&wr, dst, offset, len, context);
	ret = rpma_rt_srq_post_recv(srq, &wr, 1);
	return ret < 0 ? ret : 0;
}

#ifdef __cplusplus
#ifdef __clang__
#pragma clang diagnostic pop
#endif
}
#endif

#endif /* RPMA_RT_INLINE_H */
