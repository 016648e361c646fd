# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# What cpack makes: packages for Debian (cpack -G DEB, see deb.cmake), and an
# archive of the loopback device alone (cpack -G TGZ), which works wherever the
# archive is unpacked: see doc/CI.md.

set(CPACK_PACKAGE_VENDOR "the rpma authors")
set(CPACK_PACKAGE_CONTACT "the rpma authors")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
	OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
	WORLD_READ WORLD_EXECUTE)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/pack_check.cmake)
# pack_check.cmake reads these variables
set(CPACK_RPMA_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_RPMA_RUNTIME ${RPMA_RUNTIME})

set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_LOOPBACK_FILE_NAME
	rpma-loopback-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})

set(CPACK_COMPONENTS_ALL librpma loopback dev)
if(RPMA_RUNTIME)
	list(APPEND CPACK_COMPONENTS_ALL runtime)
	include(src/deb.cmake)
endif()
include(CPack)
