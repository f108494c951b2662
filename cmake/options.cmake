# SPDX-License-Identifier: BSD-3-Clause
# cmake/options.cmake: the warnings and sanitizers that all of our own targets are compiled with.

# quadriga_options(target): applied to our targets only, so that other projects' sources stay quiet.
function(quadriga_options target)
  set(for_cxx COMPILE_LANGUAGE:CXX)
  set(shadow -Wshadow)
  if(CMAKE_UNITY_BUILD OR QUADRIGA_SANITIZE)
    # What shadows another file's name is none of a reader's concern.
    set(shadow -Wshadow=local)
  endif()
  target_compile_options(${target} PRIVATE
    "$<$<${for_cxx}>:-Wall;-Wextra;-Wpedantic;${shadow};-Wconversion;-Wno-sign-conversion>")
  if(QUADRIGA_WERROR)
    target_compile_options(${target} PRIVATE $<$<${for_cxx}>:-Werror>)
  endif()
endfunction()

option(QUADRIGA_WERROR "Treat warnings as errors" OFF)
if(QUADRIGA_SANITIZE)
  # Every object of a program must agree, so these are for all targets.
  add_compile_options(-fsanitize=${QUADRIGA_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  # g++ 12 takes precompiled strings for too short; the sanitizers look at what happens.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds>)
  add_link_options(-fsanitize=${QUADRIGA_SANITIZE})
  if(QUADRIGA_SANITIZE MATCHES "address")
    # At its place when linked: each case is a process, and would relocate a million words first.
    add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
endif()

# quadriga_precompile(target first headers...): compiles headers once for all targets that name the
# same `first` one. Only with sanitizers, with which compilers take a third less for it: elsewhere
# each source shows that it includes what it uses.
function(quadriga_precompile target first)
  if(NOT QUADRIGA_SANITIZE)
    return()
  endif()
  if(target STREQUAL first)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${first})
  endif()
endfunction()

set(QUADRIGA_COMMON_HEADERS <algorithm> <array> <atomic> <chrono> <condition_variable> <deque>
  <functional> <map> <memory> <mutex> <optional> <set> <span> <string> <thread> <unordered_map>
  <utility> <variant> <vector> <fmt/format.h>)
