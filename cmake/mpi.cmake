# SPDX-License-Identifier: BSD-3-Clause
# cmake/mpi.cmake: what an MPI's compiler wrapper says that it compiles and links with.

# quadriga_mpi_words(wrapper compile link): sets two lists of the caller; empty if the wrapper fails.
function(quadriga_mpi_words wrapper compile link)
  set(${compile} "" PARENT_SCOPE)
  set(${link} "" PARENT_SCOPE)
  execute_process(COMMAND ${wrapper} -show OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    return()
  endif()
  separate_arguments(words UNIX_COMMAND "${said}")
  set(of_compiler ${words})
  list(FILTER of_compiler INCLUDE REGEX "^-(I|D)")
  list(TRANSFORM of_compiler REPLACE "^-I(.*)$" "-isystem\\1")
  list(FILTER words INCLUDE REGEX "^(-L|-l|-Wl,-rpath,)")
  set(${compile} ${of_compiler} PARENT_SCOPE)
  set(${link} ${words} PARENT_SCOPE)
endfunction()
