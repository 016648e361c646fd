# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# The CMake package "rpma" of what both libraries install into the export set
# rpmaTargets: find_package(rpma) gives rpma::rpma and rpma::rpma_rt. And the
# manual pages.

include(CMakePackageConfigHelpers)

set(RPMA_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/rpma)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/rpma-config.cmake.in
	${CMAKE_CURRENT_BINARY_DIR}/rpma-config.cmake
	INSTALL_DESTINATION ${RPMA_PACKAGE_DIR}
	NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
	${CMAKE_CURRENT_BINARY_DIR}/rpma-config-version.cmake
	COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/rpma-config.cmake
	${CMAKE_CURRENT_BINARY_DIR}/rpma-config-version.cmake
	DESTINATION ${RPMA_PACKAGE_DIR} COMPONENT dev)
install(EXPORT rpmaTargets NAMESPACE rpma:: FILE rpma-targets.cmake
	DESTINATION ${RPMA_PACKAGE_DIR} COMPONENT dev)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/doc/man3 ${PROJECT_SOURCE_DIR}/doc/man7
	DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT dev OPTIONAL
	FILES_MATCHING PATTERN "*.[37]"
	PATTERN "rpma_loopback*" EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/doc/man7/rpma_loopback.7
	DESTINATION ${CMAKE_INSTALL_MANDIR}/man7 COMPONENT loopback)
