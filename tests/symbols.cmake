# SPDX-License-Identifier: Apache-2.0
# What the objects of the inner folders ask of the C library: moving bytes, comparing strings and
# mathematics. No input or output, no clock, no allocation. The programs are not in the libraries,
# so they are not looked at.
#
#     cmake -DNM=<nm> -DARCHIVES=<a;b> -P tests/symbols.cmake
cmake_minimum_required(VERSION 3.20)

set(allowed
    "elv_[a-z0-9_]*"
    "(__)?mem(cpy|move|set|cmp|chr)(_chk)?"
    "bcmp" # what clang makes of memcmp that only asks whether
    "str(n?len|n?cmp|r?chr|str|c?spn|pbrk)"
    # <math.h>, float and double
    "(a?(sin|cos|tan)h?|atan2|exp|exp2|expm1|log|log2|log10|log1p|pow|sqrt|cbrt|hypot)f?"
    "(fabs|fmod|floor|ceil|trunc|round|rint|nearbyint|l?lround|l?lrint|ldexp|scalbl?n)f?"
    "(frexp|ilogb|logb|copysign|nextafter|fma|fmax|fmin|modf|remainder|erfc?)f?"
    "__(isnan|isinf|finite|fpclassify|signbit)[fl]?"
    # what compilers put in: 64-bit arithmetic and half floats where the machine has none,
    # instruction set queries, stack guards, position independent code
    "__aeabi_[a-z0-9_]+"
    "__u?(div|mod|mul|ashl|ashr|lshr|cmp|neg|ffs|popcount|clz|ctz|bswap|parity)[a-z]*[0-9]"
    "__(fix|fixuns|float|floatun|extend|trunc|gnu)[a-z0-9_]+"
    "__cpu_(model|indicator_init|features2)"
    "__stack_chk_(fail|guard)"
    "_GLOBAL_OFFSET_TABLE_")

function(is_allowed symbol result)
    foreach(pattern ${allowed})
        if(symbol MATCHES "^(${pattern})$")
            set(${result} TRUE PARENT_SCOPE)
            return()
        endif()
    endforeach()
    set(${result} FALSE PARENT_SCOPE)
endfunction()

if(NOT ARCHIVES)
    message(FATAL_ERROR "no library to look at")
endif()
foreach(archive ${ARCHIVES})
    execute_process(COMMAND ${NM} -A -u ${archive} OUTPUT_VARIABLE lines RESULT_VARIABLE rc)
    if(NOT rc EQUAL 0)
        message(FATAL_ERROR "${NM} ${archive} failed")
    endif()
    string(REPLACE "\n" ";" lines "${lines}")
    foreach(line ${lines})
        # archive:object: U symbol[@VERSION]
        string(REGEX REPLACE "@.*" "" line "${line}")
        if(line MATCHES "([^:]+\\.o[bj]*): +[Uvw] +([^ ]+)$")
            set(object ${CMAKE_MATCH_1})
            set(symbol ${CMAKE_MATCH_2})
            is_allowed(${symbol} fine)
            if(NOT fine)
                message(SEND_ERROR "${object} references ${symbol}")
            endif()
        elseif(line MATCHES " U ")
            message(SEND_ERROR "cannot read: ${line}")
        endif()
    endforeach()
endforeach()
