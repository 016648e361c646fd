/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rpma authors */

/*
 * tree.h -- a directory with the files of the loopback device, in the places
 * that a kernel's device would have them below "/".
 */

#ifndef FILES_TREE_H
#define FILES_TREE_H

/*
 * Returns the directory, without a slash at the end; makes the directory at
 * the first call. NULL: there is no loopback device, or no room for files.
 */
const char *tree_root(void);

#endif /* FILES_TREE_H */
