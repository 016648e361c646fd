# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rpma authors
#
# What pkg-config reads. For /usr with plain paths: pkg-config knows those for
# the compiler's own and leaves them out. For any other prefix relative to where
# the file lies, so that the prefix may be moved.

# rpma_install_pc(name): installs name.pc of name.pc.in
function(rpma_install_pc name)
	set(PC_PREFIX /usr)
	if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
		file(RELATIVE_PATH up
			/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
		set(PC_PREFIX "\${pcfiledir}/${up}")
	endif()
	configure_file(${name}.pc.in ${name}.pc @ONLY)
	install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc
		DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endfunction()
