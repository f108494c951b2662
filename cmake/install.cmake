# SPDX-License-Identifier: BSD-3-Clause
# cmake/install.cmake: installs archive, headers and the files that find_package(quadriga) reads.
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/quadriga)
install(TARGETS quadriga EXPORT quadriga
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(DIRECTORY include/quadriga DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(EXPORT quadriga NAMESPACE quadriga:: FILE quadriga-targets.cmake
  DESTINATION ${config_dir} COMPONENT development)

configure_package_config_file(cmake/quadriga-config.cmake.in quadriga-config.cmake
  INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(quadriga-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/quadriga-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/quadriga-config-version.cmake
  DESTINATION ${config_dir} COMPONENT development)

# For compilers without CMake; the archive's place is found from the file's own.
file(RELATIVE_PATH QUADRIGA_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(QUADRIGA_PC_LIBS)
if(QUADRIGA_CUDA)
  set(QUADRIGA_PC_LIBS " ${CUDA_cudart_static_LIBRARY} -lrt")
endif()
configure_file(cmake/quadriga.pc.in quadriga.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/quadriga.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
