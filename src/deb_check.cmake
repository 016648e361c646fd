# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# Read by cpack before it begins. Where a library goes depends on the prefix:
# Debian's own directory of the architecture belongs to /usr only.

if(CPACK_GENERATOR STREQUAL "DEB" AND NOT CPACK_RPMA_PREFIX STREQUAL "/usr")
	message(FATAL_ERROR "Packages are made in a tree that is configured "
		"with -DCMAKE_INSTALL_PREFIX=/usr, not ${CPACK_RPMA_PREFIX}")
endif()
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
