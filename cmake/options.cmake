# SPDX-License-Identifier: BSD-3-Clause
# cmake/options.cmake: the warnings and sanitizers that all of our own targets are compiled with.

# quadriga_options(target): applied to our targets only, so that other projects' sources stay quiet.
function(quadriga_options target)
  set(for_cxx COMPILE_LANGUAGE:CXX)
  target_compile_options(${target} PRIVATE
    "$<$<${for_cxx}>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion>")
  if(QUADRIGA_WERROR)
    target_compile_options(${target} PRIVATE $<$<${for_cxx}>:-Werror>)
  endif()
endfunction()

option(QUADRIGA_WERROR "Treat warnings as errors" OFF)
if(QUADRIGA_SANITIZE)
  # Every object of a program must agree, so these are for all targets.
  add_compile_options(-fsanitize=${QUADRIGA_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${QUADRIGA_SANITIZE})
endif()
