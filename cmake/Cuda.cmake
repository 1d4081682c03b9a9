# CUDA where there is nvcc: its architectures, its warnings. Sets STRATAGEM_HAS_CUDA.
set(STRATAGEM_HAS_CUDA OFF)
if(NOT STRATAGEM_CUDA)
  return()
endif()

find_program(STRATAGEM_NVCC nvcc HINTS "$ENV{CUDA_HOME}/bin" /usr/local/cuda/bin)
mark_as_advanced(STRATAGEM_NVCC)
if(NOT STRATAGEM_NVCC)
  if(NOT STRATAGEM_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "STRATAGEM_CUDA=${STRATAGEM_CUDA}, and no nvcc was found")
  endif()
  message(STATUS "CUDA: no nvcc, kernels for processors only")
  return()
endif()

# Machine code for what the toolkit still knows of these, and PTX of the newest, from which drivers
# make machine code for GPUs that came later.
execute_process(COMMAND "${STRATAGEM_NVCC}" --list-gpu-arch
  OUTPUT_VARIABLE known COMMAND_ERROR_IS_FATAL ANY)
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(chosen "")
  foreach(architecture IN ITEMS 70 75 80 90)
    if(known MATCHES "compute_${architecture}(\n|$)")
      list(APPEND chosen ${architecture}-real)
      set(newest ${architecture})
    endif()
  endforeach()
  set(CMAKE_CUDA_ARCHITECTURES ${chosen} ${newest}-virtual)
endif()

set(CMAKE_CUDA_COMPILER "${STRATAGEM_NVCC}")
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
if(STRATAGEM_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${STRATAGEM_CCACHE}")
endif()
enable_language(CUDA)
# CMake 3.25.1 does not know what nvcc 12 and later call C++20.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
find_package(CUDAToolkit REQUIRED)

# Not -Wpedantic: what nvcc hands to the host's compiler is not pedantic. Constant expressions may
# be called on a GPU too: philox.hpp is. -lineinfo: compute-sanitizer tells lines.
string(JOIN "," host_warnings -Wall -Wextra -Wshadow -Werror -Wno-missing-field-initializers
  -ffp-contract=off ${false_alarms})
set(cuda_options --Werror=all-warnings --expt-relaxed-constexpr -lineinfo
  -Xcompiler=${host_warnings})
add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${cuda_options}>")

# Programs look for cublasLt where the toolkit is now, when they need it
# (kernels/inside/cublas_lt.cuh).
list(APPEND CMAKE_BUILD_RPATH "${CUDAToolkit_LIBRARY_DIR}")

find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY nccl HINTS "${CUDAToolkit_LIBRARY_DIR}")
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY AND NOT TARGET NCCL::NCCL)
  add_library(NCCL::NCCL UNKNOWN IMPORTED)
  set_target_properties(NCCL::NCCL PROPERTIES
    IMPORTED_LOCATION "${NCCL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR}")
endif()

set(STRATAGEM_HAS_CUDA ON)
message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}, "
  "NCCL ${NCCL_LIBRARY}")
