/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * post.h: work requests: fields, functions that prepare, functions that post.
 * Errors of posting are returned by the call; the outcome of an operation is
 * reported only by its completion.
 */

#ifndef RPMA_RT_POST_H
#define RPMA_RT_POST_H

#include <string.h>

#include <rpma_rt/pool.h>

RPMA_RT_BEGIN

/* The context of a work request is a number or pointer of 48 bits. */
#define RPMA_RT_CONTEXT_BITS 48

enum rpma_rt_op {
	RPMA_RT_OP_SEND = 1,
	RPMA_RT_OP_SEND_WITH_IMM = 2,
	RPMA_RT_OP_WRITE = 3,
	RPMA_RT_OP_WRITE_WITH_IMM = 4,
	RPMA_RT_OP_READ = 5,
	RPMA_RT_OP_FLUSH = 6,
	RPMA_RT_OP_ATOMIC_WRITE = 7,
	RPMA_RT_OP_COMPARE_SWAP = 8,
	RPMA_RT_OP_FETCH_ADD = 9
};

/* Flags of a work request, beside 0 or RPMA_F_COMPLETION_ALWAYS (equal) or
 * RPMA_F_COMPLETION_ON_ERROR. Flags of verbs are other numbers. */
#define RPMA_RT_F_FENCE RPMA_F_FENCE /* begins after former reads, atomics */
/* sends, writes with imm: wakes a peer that waits for solicited completions */
#define RPMA_RT_F_SOLICITED RPMA_F_SOLICITED
/* sends, writes: copies up to max_inline bytes; the buffer is free at once */
#define RPMA_RT_F_INLINE RPMA_F_INLINE
/* posted together with the next, or not at all; a link: ..sq_size / 2 + 1 */
#define RPMA_RT_F_LINKED (1 << 28)
/* with LINKED: the last of the link completes for all; context 0, route NULL */
#define RPMA_RT_F_PART (1 << 29)
#define RPMA_RT_F_KEEP (1 << 30) /* with a lease: the caller keeps the lease */

/* A work request of the send side, zeroed, or written by rpma_rt_prep_*(). */
struct rpma_rt_wr {
	uint8_t op;	      /* enum rpma_rt_op */
	uint8_t flush_type;   /* enum rpma_flush_type */
	uint16_t piece_count; /* 1..max_sge, or 0: local, local_offset, len */
	uint32_t flags;	      /* RPMA_RT_F_*, RPMA_F_COMPLETION_* */
	uint64_t context;     /* in the completion; below 2^48 */
	/* where the completion goes; NULL: the connection's queue */
	const struct rpma_rt_route *route;
	/* in place of route: written by the post; NULL: none */
	struct rpma_rt_future *future;
	/* in place of a completion: the send or write takes the lease, context
	 * is 0, route and future are NULL; NULL: none */
	const struct rpma_rt_lease *lease;
	union {
		/* bytes of this side, of an atomic the former value, or NULL */
		struct rpma_mr_local *local;
		const struct rpma_sge *pieces; /* below 4 GiB each */
	};
	uint64_t local_offset;
	uint64_t len; /* bytes; of a flush: of remote; of an atomic: 0 or 8 */
	const struct rpma_mr_remote *remote; /* the bytes of the far side */
	uint64_t remote_offset;		     /* a multiple of 8 for atomics */
	uint32_t imm;			     /* immediate data, in host order */
	uint32_t reserved32;
	union {
		char data[8];	      /* of an atomic write */
		uint64_t compare_add; /* expected, or added */
	};
	uint64_t swap; /* of a compare-and-swap: the new value */
};

/* A receive; the fields are as in struct rpma_rt_wr. A receive of an SRQ has
 * neither route nor future. */
struct rpma_rt_recv_wr {
	uint64_t context;
	const struct rpma_rt_route *route;
	struct rpma_rt_future *future;
	union {
		struct rpma_mr_local *dst;
		const struct rpma_sge *pieces;
	};
	uint64_t offset;
	uint64_t len;
	uint32_t piece_count;
	uint32_t reserved32;
};

/* -------------------------------------------------------------- posting --- */

/* Posts count (0..) work requests in order, or puts work requests in line;
 * buffers are the device's until the completion (the end of the call, inline).
 * Returns the number taken, the first ones; see rpma_rt_again_reason(). Errors:
 * AGAIN (none was taken; WRITABLE follows), CLOSED, INVAL and NOSUPP (none is
 * posted). Thread: any. */
int rpma_rt_post_send(struct rpma_rt_conn *conn, const struct rpma_rt_wr *wr,
		      int count) RPMA_RT_MUST_CHECK;

/* Posts count (0..) receives, from EVENT_REQUEST or EVENT_READY on.
 * Returns and errors: as rpma_rt_post_send(). Thread: any. */
int rpma_rt_post_recv(struct rpma_rt_conn *conn,
		      const struct rpma_rt_recv_wr *wr,
		      int count) RPMA_RT_MUST_CHECK;

/* Posts a row of count (0..) messages, one of each lease (mr, offset, len), to
 * the connection's own route. The caller keeps the leases; the slots are the
 * device's until the row, or later work, completes. flags: of the last message,
 * RPMA_F_COMPLETION_ALWAYS or RPMA_F_COMPLETION_ON_ERROR; a message in front
 * completes only if it fails. Returns and errors: as rpma_rt_post_send(); INVAL
 * also for a lease that is not held, or whose bytes leave the slot.
 * Thread: any, while no other thread uses the leases. */
int rpma_rt_post_leases(struct rpma_rt_conn *conn,
			const struct rpma_rt_lease *const *leases, int count,
			uint32_t flags, uint64_t context) RPMA_RT_MUST_CHECK;

enum rpma_rt_again {
	RPMA_RT_AGAIN_NONE = 0,	  /* the post took all, or failed otherwise */
	RPMA_RT_AGAIN_CREDIT = 1, /* the queue pair's queue and line are full */
	RPMA_RT_AGAIN_BACKLOG = 2, /* the destination's consumer is behind */
	RPMA_RT_AGAIN_NOT_YET = 3, /* before READY (receives), ESTABLISHED */
	RPMA_RT_AGAIN_FUTURES = 4  /* all of the side are held: drop some */
};

/* Returns why the thread's last post did not take all. Thread: any. */
enum rpma_rt_again rpma_rt_again_reason(void);

/* Returns the name of a reason, and what to wait for. Thread: any. */
const char *rpma_rt_again_2str(enum rpma_rt_again reason);

/* ------------------------------------------------------------ preparing --- */

/*
 * rpma_rt_prep_*() write every field of *wr and check nothing. The arguments
 * are the fields of struct rpma_rt_wr; route, future, pieces and lease are set
 * afterwards. Thread: any.
 */

/* Prepares an operation without memory. */
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

/* Prepares a message of len bytes of src. */
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

/* Prepares a message of the first len bytes of a lease, taken by the send; len
 * is at most the size of the slot. */
RPMA_RT_INLINE void rpma_rt_prep_send_lease(struct rpma_rt_wr *wr,
					    const struct rpma_rt_lease *lease,
					    size_t len, uint32_t flags)
{
	rpma_rt_prep_send(wr, lease->mr, lease->offset, len, flags, 0);
	wr->lease = lease;
}

/* Prepares a message with immediate data, in host order. */
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

/* Prepares a write of len bytes of src to dst. */
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

/* Prepares a write that takes a receive of the peer; imm in host order. */
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

/* Prepares a read of len bytes of src to dst. */
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

/* Prepares a flush of len bytes of dst: visible or persistent, by type. */
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

/* Prepares a write of 8 bytes at once; dst_offset is a multiple of 8. */
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

/* Prepares a compare-and-swap of 64 bits; the former value goes to old. */
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

/* Prepares a fetch-and-add of 64 bits; the former value goes to old. */
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

/* Prepares a receive into len bytes of dst. */
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

/* Names count pieces in place of local; borrowed until the post returns. */
RPMA_RT_INLINE void rpma_rt_wr_set_pieces(struct rpma_rt_wr *wr,
					  const struct rpma_sge *pieces,
					  uint16_t count)
{
	wr->local_offset = 0;
	wr->len = 0;
	wr->pieces = pieces;
	wr->piece_count = count;
}

/* Names count pieces in place of dst; borrowed until the post returns. */
RPMA_RT_INLINE void rpma_rt_recv_wr_set_pieces(struct rpma_rt_recv_wr *wr,
					       const struct rpma_sge *pieces,
					       uint32_t count)
{
	wr->offset = 0;
	wr->len = 0;
	wr->pieces = pieces;
	wr->piece_count = count;
}

/* ----------------------------------------------- preparing and posting --- */

/*
 * Each prepares and posts one work request, without a route. Arguments as in
 * rpma_rt_prep_*(). Returns 0. Errors: as rpma_rt_post_send() or
 * rpma_rt_post_recv(). Thread: any.
 */

/* Posts a message of len bytes of src. */
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

/* Posts a message of the first len bytes of a lease, which the send takes.
 * INVAL if the slot has fewer bytes. */
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

/* Posts a message with immediate data, in host order. */
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

/* Posts a write of len bytes of src to dst. */
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

/* Posts a write that takes a receive of the peer; imm in host order. */
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

/* Posts a read of len bytes of src to dst. */
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

/* Posts a flush of len bytes of dst: visible or persistent, by type. */
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

/* Posts a write of 8 bytes at once; dst_offset is a multiple of 8. */
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

/* Posts a compare-and-swap of 64 bits; the former value goes to old. */
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

/* Posts a fetch-and-add of 64 bits; the former value goes to old. */
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

/* Posts a receive into len bytes of dst. */
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

RPMA_RT_END

#endif /* RPMA_RT_POST_H */
