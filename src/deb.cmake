# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# Packages for Debian: cpack -G DEB, in a tree configured for /usr. Four of
# them, of the components that the install commands name.
#
# Their names begin with rpma-, so that no package of an archive is taken for an
# older or a newer one of these. They have the file names of the distribution's
# librpma0 and librpma-dev, whatever the version of those: hence Conflicts and
# Replaces without one. Provides has one, so that what needs
# "librpma0 (>= 1.2)" has it.

set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/deb_compress.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# librpma_rt needs librpma: this one, not what is installed here
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/src
	${PROJECT_BINARY_DIR}/src/loopback)

set(version ${PROJECT_VERSION})

# package(COMPONENT NAME SUMMARY TEXT [FIELD VALUE]...): copyright and changes
# are what only a package has, so a plain installation leaves them out.
macro(package component name summary text)
	string(TOUPPER ${component} upper)
	set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
	set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION libs)
	set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}")
	set(fields ${ARGN})
	while(fields)
		list(POP_FRONT fields field value)
		set(CPACK_DEBIAN_${upper}_PACKAGE_${field} "${value}")
	endwhile()
	install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright
		DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name}
		COMPONENT ${component} EXCLUDE_FROM_ALL)
	install(FILES ${PROJECT_SOURCE_DIR}/doc/CHANGELOG.md RENAME changelog
		DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name}
		COMPONENT ${component} EXCLUDE_FROM_ALL)
endmacro()

package(librpma rpma-librpma0
	"remote memory access over RDMA (in place of librpma0)"
	"The library with the interface, binary interface and wire format of
 librpma 1.3. Programs built for Debian's librpma0 run on it unchanged."
	PROVIDES "librpma0 (= ${version})"
	CONFLICTS librpma0
	REPLACES librpma0)

package(runtime rpma-librpma-rt0
	"completion runtime for multi-threaded RDMA servers"
	"One completion channel per core, read by a poller thread; every work
 request says to which queue its completion goes, and gets exactly one."
	DEPENDS "rpma-librpma0 (= ${version})")

package(loopback rpma-loopback
	"RDMA device in user space, for tests and development"
	"Preloaded or linked ahead of libibverbs and librdmacm, a device within
 one process, and a simulator of faults. rpma-loopback starts programs on it.
 See rpma-loopback(1) and rpma_loopback(7).")

package(dev rpma-dev
	"remote memory access over RDMA (development files)"
	"Headers, manual pages and descriptions for pkg-config and CMake of
 librpma and librpma_rt."
	SECTION libdevel
	DEPENDS "rpma-librpma0 (= ${version}), rpma-librpma-rt0 (= ${version}), libibverbs-dev, librdmacm-dev"
	PROVIDES "librpma-dev (= ${version})"
	CONFLICTS librpma-dev
	REPLACES librpma-dev)
