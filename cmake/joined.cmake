# SPDX-License-Identifier: BSD-3-Clause
# cmake/joined.cmake: several test sources compiled as one, which takes half of the time.

# Sources that are compiled as one. More need more memory, and leave cores without work.
set(QUADRIGA_JOINED 8)

# quadriga_join_tests(target list beside): of a list of sources, replaces those that end in
# _test.cpp by files that hold several of them each, and lists the folders whose headers they include.
# Their unnamed namespaces get names, one a source, so that sources may use the same names for
# different things. Messages and symbols name the sources.
function(quadriga_join_tests target list beside)
  set(tests ${${list}})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(LENGTH tests count)
  if(count EQUAL 1)
    return()
  endif()
  set(joined ${${list}})
  list(FILTER joined EXCLUDE REGEX "_test\\.cpp$")
  set(number 0)
  set(text "")
  foreach(source IN LISTS tests)
    file(READ ${source} one)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    cmake_path(GET source STEM name)
    string(REPLACE "\nnamespace {\n" "\nnamespace in_${name}_${number} {\n" one "${one}")
    string(APPEND text "#line 1 \"${source}\"\n${one}")
    math(EXPR number "${number} + 1")
    math(EXPR left "${number} % ${QUADRIGA_JOINED}")
    if(left EQUAL 0 OR number EQUAL count)
      set(file ${CMAKE_CURRENT_BINARY_DIR}/joined/${target}_${number}_test.cpp)
      file(CONFIGURE OUTPUT ${file} CONTENT "@text@" @ONLY)
      if(QUADRIGA_SANITIZE MATCHES "undefined")
        # A third of their compilation. Address sanitizer stops at most of what they would find in a
        # test itself; the library keeps them.
        set_source_files_properties(${file} PROPERTIES
          COMPILE_OPTIONS -fno-sanitize=null,alignment,object-size,vptr)
      endif()
      list(APPEND joined ${file})
      set(text "")
    endif()
  endforeach()
  list(TRANSFORM tests REPLACE "/[^/]*$" "")
  list(REMOVE_DUPLICATES tests)
  set(${beside} ${tests} PARENT_SCOPE)
  set(${list} ${joined} PARENT_SCOPE)
endfunction()
