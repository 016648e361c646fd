# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# Read by cpack before it begins. Packages for Debian are refused in a tree whose
# prefix is not /usr, because the directory of a library depends on the prefix:
# Debian's own directory of the architecture belongs to /usr only. An archive has
# a directory of its own name in place of the prefix.

if(CPACK_GENERATOR STREQUAL "DEB" AND NOT CPACK_RPMA_RUNTIME)
	message(FATAL_ERROR "Packages are made of all parts: configure without "
		"-DRPMA_RUNTIME=OFF")
elseif(CPACK_GENERATOR STREQUAL "DEB" AND
		NOT CPACK_RPMA_PREFIX STREQUAL "/usr")
	message(FATAL_ERROR "Packages are made in a tree that is configured "
		"with -DCMAKE_INSTALL_PREFIX=/usr, not ${CPACK_RPMA_PREFIX}")
endif()
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
if(CPACK_GENERATOR STREQUAL "TGZ")
	set(CPACK_COMPONENTS_ALL loopback)
	set(CPACK_PACKAGING_INSTALL_PREFIX /)
	set(CPACK_PACKAGE_FILE_NAME ${CPACK_ARCHIVE_LOOPBACK_FILE_NAME})
	set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
