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
        # Not those shared between our own files only, nor those of the program.
        list(FILTER headers EXCLUDE REGEX "(_internal|/elver_[a-z_]*)\\.h$")
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
# Whose code is inside statically linked programs, and its licences: ports/deps.sh wrote that for
# what it built; the other libraries count when a static archive of them was found.
find_file(ELV_THIRD_PARTY THIRD-PARTY.txt PATH_SUFFIXES share/elver)
mark_as_advanced(ELV_THIRD_PARTY)
set(third_party "Third-party code contained in statically linked Elver programs.\n")
if(ELV_THIRD_PARTY)
    file(READ ${ELV_THIRD_PARTY} third_party)
endif()
foreach(known "ZLIB_LIBRARY_RELEASE|zlib|Zlib" "SQLite3_LIBRARY|SQLite|public domain"
        "INIH_LIBRARY|inih|BSD-3-Clause")
    string(REPLACE "|" ";" known ${known})
    list(GET known 0 variable)
    if("${${variable}}" MATCHES "\\.a$")
        list(GET known 1 name)
        list(GET known 2 licence)
        string(APPEND third_party "\n${name}\n    Licence: ${licence}\n    File:    ${${variable}}\n")
    endif()
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/THIRD-PARTY.txt "${third_party}")
install(FILES ${PROJECT_BINARY_DIR}/THIRD-PARTY.txt DESTINATION ${elver_doc})
