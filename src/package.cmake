# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# The CMake package "rpma" of what both libraries install into the export set
# rpmaTargets: find_package(rpma) gives rpma::rpma and rpma::rpma_rt.

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
