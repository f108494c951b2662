# SPDX-License-Identifier: BSD-3-Clause
# cmake/cuda.cmake: whether the CUDA backend and kernels are built, and with what.
#
# Files in a folder cuda/, *_cuda.cpp and *.cu are built with CUDA only; absent.cpp in such a folder
# and *_absent.cpp stand in for them without it.
set(QUADRIGA_CUDA AUTO CACHE STRING
  "Build the CUDA backend and kernels: ON, OFF, or AUTO: where a compiler for CUDA 13 works")
set_property(CACHE QUADRIGA_CUDA PROPERTY STRINGS AUTO ON OFF)

# quadriga_find_cuda(): makes ON or OFF of AUTO. A compiler that doesn't work here counts as none.
function(quadriga_find_cuda)
  set(QUADRIGA_CUDA OFF PARENT_SCOPE)
  find_package(CUDAToolkit 13 QUIET)
  if(NOT TARGET CUDA::cublas OR NOT TARGET CUDA::cusolver OR NOT CUDAToolkit_NVCC_EXECUTABLE)
    message(STATUS "CUDA: no toolkit 13 with cuBLAS and cuSOLVER found; building without")
    return()
  endif()
  if(NOT DEFINED ENV{CUDACXX})
    set(ENV{CUDACXX} ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    message(STATUS "CUDA: ${CUDAToolkit_NVCC_EXECUTABLE} doesn't work here; building without")
    return()
  endif()
  message(STATUS "CUDA: building with ${CMAKE_CUDA_COMPILER}")
  set(QUADRIGA_CUDA ON PARENT_SCOPE)
endfunction()
if(QUADRIGA_CUDA STREQUAL "AUTO")
  quadriga_find_cuda()
endif()

# quadriga_choose_cuda(variable room): drops from a list of a room's sources what isn't for this
# build, and adds its .cu files.
function(quadriga_choose_cuda variable room)
  set(sources ${${variable}})
  if(QUADRIGA_CUDA)
    list(FILTER sources EXCLUDE REGEX "/(.*_)?absent\\.cpp$")
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.cu)
    list(APPEND sources ${kernels})
  else()
    list(FILTER sources EXCLUDE REGEX "/cuda/[^/]*\\.cpp$|_cuda\\.cpp$")
    file(GLOB_RECURSE absent CONFIGURE_DEPENDS
      ${CMAKE_CURRENT_SOURCE_DIR}/${room}/cuda/absent.cpp)
    list(APPEND sources ${absent})
  endif()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

if(NOT QUADRIGA_CUDA)
  return()
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100)
endif()
if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
enable_language(CUDA)
find_package(CUDAToolkit 13 REQUIRED)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 doesn't know that nvcc has it.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
# Unfused, elementwise kernels give the bits of the host's; constexpr functions serve both.
# 554: nvcc looks past the constraint of a conversion.
string(APPEND CMAKE_CUDA_FLAGS
  " --fmad=false --expt-relaxed-constexpr -diag-suppress=554 -Xcompiler=-Wall,-Wextra")
# cuBLAS and cuSOLVER are opened at run time (src/linalg/kernels/library_cuda.h).
set(QUADRIGA_CUDA_LIBRARIES CUDA::cudart_static)
