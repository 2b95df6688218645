# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: the programs, and the client library with the headers a device
# needs, as a CMake package (elver::client) and for pkg-config (elver-client).
include(CMakePackageConfigHelpers)

set(elver_include ${CMAKE_INSTALL_INCLUDEDIR}/elver)
set(elver_cmake ${CMAKE_INSTALL_LIBDIR}/cmake/elver)
set(elver_doc ${CMAKE_INSTALL_DATADIR}/elver)

foreach(program elver-server elver-client elver-sim elver-key)
    if(TARGET ${program})
        install(TARGETS ${program} RUNTIME)
    endif()
endforeach()

if(TARGET elv_client)
    # Headers include each other by relative path, so a program may have a common/err.h of its own.
    foreach(folder common kernels client)
        file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.h)
        # What implements the operations is not for users of them.
        list(FILTER headers EXCLUDE REGEX "/kernels/.*_(impl|internal|simd|ref)\\.h$")
        install(FILES ${headers} DESTINATION ${elver_include}/${folder})
    endforeach()
    install(FILES ${PROJECT_BINARY_DIR}/generated/elver/version.h DESTINATION ${elver_include})

    set_target_properties(elv_client PROPERTIES EXPORT_NAME client)
    install(TARGETS elv_flags elv_common elv_kernels elv_client EXPORT elver ARCHIVE)
    install(EXPORT elver NAMESPACE elver:: DESTINATION ${elver_cmake} FILE elver-targets.cmake)
    file(WRITE ${PROJECT_BINARY_DIR}/elver-config.cmake
        "include(\"\${CMAKE_CURRENT_LIST_DIR}/elver-targets.cmake\")\n")
    write_basic_package_version_file(${PROJECT_BINARY_DIR}/elver-config-version.cmake
        COMPATIBILITY SameMinorVersion)
    install(FILES ${PROJECT_BINARY_DIR}/elver-config.cmake
        ${PROJECT_BINARY_DIR}/elver-config-version.cmake DESTINATION ${elver_cmake})
    configure_file(client/elver-client.pc.in elver-client.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/elver-client.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

install(FILES LICENSE NOTICE DESTINATION ${elver_doc})
# Written by ports/deps.sh: whose code is inside a statically linked program, and its licences.
find_file(ELV_THIRD_PARTY THIRD-PARTY.txt PATH_SUFFIXES share/elver)
mark_as_advanced(ELV_THIRD_PARTY)
if(ELV_THIRD_PARTY)
    install(FILES ${ELV_THIRD_PARTY} DESTINATION ${elver_doc})
endif()
