# SPDX-License-Identifier: Apache-2.0
# The layout rules, as a test: who may include whom, what the inner folders may not call, and that
# every source says under which licence it is.
#
#     cmake -DROOT=<source tree> -P tests/layers.cmake
cmake_minimum_required(VERSION 3.20)

set(common_may common)
set(kernels_may common kernels)
set(client_may common kernels client)
set(server_may common kernels server)
set(ports_may common ports)
# The simulator puts both roles together, in this folder alone.
set(lab ports/sim/lab)
set(lab_may common kernels client server ports)

# The composition roots: production mains, the only files of their folders that wire ports in.
set(roots client/elver_client.c server/elver_server.c server/elver_key.c ports/sim/elver_sim.c)
set(client/elver_client.c_may ${client_may} ports)
set(server/elver_server.c_may ${server_may} ports)
set(server/elver_key.c_may ${server_may} ports)
set(ports/sim/elver_sim.c_may ${ports_may} kernels client server)
# Parts of a program: what it may, they may; only the program includes them.
set(parts server/elver_server_folder server/elver_server_options)
foreach(part ${parts})
    list(APPEND roots ${part}.c ${part}.h)
    set(${part}.c_may ${server_may} ports)
    set(${part}.h_may ${server_may} ports)
endforeach()
file(GLOB parts RELATIVE ${ROOT} ${ROOT}/client/elver_client_*.c ${ROOT}/client/elver_client_*.h)
foreach(part ${parts})
    list(APPEND roots ${part})
    set(${part}_may ${client_may} ports)
endforeach()
file(GLOB parts RELATIVE ${ROOT} ${ROOT}/ports/sim/elver_sim_*.c ${ROOT}/ports/sim/elver_sim_*.h)
foreach(part ${parts})
    list(APPEND roots ${part})
    set(${part}_may ${ports_may} kernels client server)
endforeach()

# Standard headers that reach the outside world; inner folders have no business there.
set(world "assert|dirent|dlfcn|errno|fcntl|locale|pthread|signal|stdio|stdlib|threads|time|unistd|wchar")
set(calls "[^a-zA-Z0-9_.>](malloc|calloc|realloc|free|[a-z]*printf|time|rand|exit|abort|assert) ?\\(")

# The path an include names, from the root: names without a folder, and ../ names, are relative.
function(resolve file name result)
    get_filename_component(here ${file} DIRECTORY)
    if(name MATCHES "^(common|kernels|client|server|ports|tests|examples|elver)/")
        set(${result} ${name} PARENT_SCOPE)
    else()
        get_filename_component(there ${ROOT}/${here}/${name} ABSOLUTE)
        file(RELATIVE_PATH there ${ROOT} ${there})
        set(${result} ${there} PARENT_SCOPE)
    endif()
endfunction()

function(check_include file name may is_root)
    resolve(${file} ${name} path)
    string(REGEX REPLACE "/.*" "" target ${path})
    if(target STREQUAL "elver") # the generated version header
        return()
    endif()
    if(NOT target IN_LIST may)
        message(SEND_ERROR "${file} may not include ${path}")
    elseif(target STREQUAL "ports" AND NOT is_root)
        string(REGEX MATCH "^ports/[a-z0-9_]+" theirs ${path})
        string(REGEX MATCH "^ports/[a-z0-9_]+" ours ${file})
        if(NOT theirs STREQUAL ours)
            message(SEND_ERROR "${file}: a port may not include another: ${path}")
        endif()
    endif()
    if(path IN_LIST roots AND NOT is_root)
        message(SEND_ERROR "${file}: nothing includes a program: ${path}")
    endif()
endfunction()

# Lines of a comment may mention malloc; a line that starts like one is left alone.
function(check_inner file)
    file(STRINGS ${ROOT}/${file} lines REGEX "${calls}")
    list(FILTER lines EXCLUDE REGEX "^ *(/\\*|\\*|//)")
    if(lines)
        message(SEND_ERROR "${file}: no allocation, printing, clock or exit outside ports and programs: ${lines}")
    endif()
    file(STRINGS ${ROOT}/${file} lines REGEX "^#include <(sys/.*|(${world})\\.h)>")
    if(lines)
        message(SEND_ERROR "${file}: a header of the outside world: ${lines}")
    endif()
endfunction()

set(n_checked 0)
foreach(layer common kernels client server ports)
    file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${layer}/*.h ${ROOT}/${layer}/*.c
        ${ROOT}/${layer}/*.cu)
    foreach(file ${files})
        set(may ${${layer}_may})
        set(is_root FALSE)
        if(file IN_LIST roots)
            set(may ${${file}_may})
            set(is_root TRUE)
        elseif(file MATCHES "^${lab}/")
            set(may ${lab_may})
        endif()
        file(STRINGS ${ROOT}/${file} includes REGEX "^ *# *include \"")
        foreach(line ${includes})
            string(REGEX REPLACE "^ *# *include \"([^\"]*)\".*" "\\1" name ${line})
            check_include(${file} ${name} "${may}" ${is_root})
            # Installed headers, all but x_internal.h and the program's, must not depend on the
            # include path of whoever uses them.
            if(file MATCHES "^(common|kernels|client)/.*\\.h$" AND NOT is_root AND
                NOT file MATCHES "_internal\\.h$" AND name MATCHES "^(common|kernels|client|server|ports)/")
                message(SEND_ERROR "${file}: installed, so it includes by relative path, not ${name}")
            endif()
        endforeach()
        if(NOT layer STREQUAL "ports" AND NOT is_root)
            check_inner(${file})
        endif()
        math(EXPR n_checked "${n_checked} + 1")
    endforeach()
endforeach()
if(n_checked EQUAL 0)
    message(SEND_ERROR "no source found under ${ROOT}")
endif()

file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/common/* ${ROOT}/kernels/* ${ROOT}/client/*
    ${ROOT}/server/* ${ROOT}/ports/* ${ROOT}/tests/* ${ROOT}/examples/*)
list(FILTER files INCLUDE REGEX "\\.(c|h|cu|cpp|cmake|sh|py|in)$|CMakeLists\\.txt$")
list(FILTER files EXCLUDE REGEX "\\.pc\\.in$")
foreach(file CMakeLists.txt ${files})
    # The first line, or the second after #!.
    file(STRINGS ${ROOT}/${file} head LIMIT_COUNT 2)
    if(NOT head MATCHES "SPDX-License-Identifier: Apache-2\\.0")
        message(SEND_ERROR "${file}: no SPDX-License-Identifier: Apache-2.0 on its first line")
    endif()
endforeach()
