# The libraries of others; all come from Debian 12 or Ubuntu 24.04 packages (scripts/setup installs
# them).
find_package(Boost 1.74 REQUIRED)  # headers only: Boost::headers
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(cxxopts 3.1 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(pugixml 1.13 REQUIRED)
find_package(SQLite3 3.34 REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
find_package(Protobuf 3.21 REQUIRED)
find_package(ZLIB 1.2 REQUIRED)

# Headers only; Debian's CMake file links the library that it also builds.
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
mark_as_advanced(TOMLPLUSPLUS_INCLUDE_DIR)
add_library(tomlplusplus::headers INTERFACE IMPORTED)
set_target_properties(tomlplusplus::headers PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "${TOMLPLUSPLUS_INCLUDE_DIR}")
find_package(benchmark QUIET)

# Optional: an allocator that takes a quarter off the time of searches, and a tenth off that of large
# runs.
find_package(mimalloc 2.0 QUIET)

# valijson is headers only, and its CMake target changes its name between versions.
find_path(VALIJSON_INCLUDE_DIR valijson/validator.hpp REQUIRED)
mark_as_advanced(VALIJSON_INCLUDE_DIR)
add_library(valijson::valijson INTERFACE IMPORTED)
set_target_properties(valijson::valijson PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "${VALIJSON_INCLUDE_DIR}"
  INTERFACE_COMPILE_DEFINITIONS VALIJSON_USE_EXCEPTIONS=1)

# The serial one: ranks have a core each.
find_path(OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-serial openblas REQUIRED)
find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-serial REQUIRED)
mark_as_advanced(OPENBLAS_INCLUDE_DIR OPENBLAS_LIBRARY)
add_library(OpenBLAS::OpenBLAS UNKNOWN IMPORTED)
set_target_properties(OpenBLAS::OpenBLAS PROPERTIES
  IMPORTED_LOCATION "${OPENBLAS_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${OPENBLAS_INCLUDE_DIR}")

# Debian's package has no CMake files.
find_path(Z3_INCLUDE_DIR z3++.h REQUIRED)
find_library(Z3_LIBRARY z3 REQUIRED)
mark_as_advanced(Z3_INCLUDE_DIR Z3_LIBRARY)
add_library(Z3::Z3 UNKNOWN IMPORTED)
set_target_properties(Z3::Z3 PROPERTIES
  IMPORTED_LOCATION "${Z3_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Z3_INCLUDE_DIR}")

# Optional; loaded at run time where a launcher has started ranks (kernels/ranks/world.hpp).
if(NOT STRATAGEM_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX TRUE)
  if(STRATAGEM_MPI STREQUAL "ON")
    find_package(MPI REQUIRED COMPONENTS CXX)
  else()
    find_package(MPI QUIET COMPONENTS CXX)
  endif()
  if(NOT MPI_CXX_FOUND)
    message(STATUS "MPI not found: one rank only")
  endif()
endif()

# Optional: the module of Python (python/), for the distribution's own, whose packages the tests use.
if(NOT STRATAGEM_SANITIZE)
  set(Python3_ROOT_DIR /usr CACHE PATH "Where the Python is for which the module is built")
  find_package(Python3 3.9 QUIET COMPONENTS Interpreter Development.Module)
  find_package(pybind11 2.10 QUIET)
  if(NOT pybind11_FOUND OR NOT Python3_FOUND)
    message(STATUS "pybind11 or Python's headers not found: no module of Python")
  endif()
endif()

if(BUILD_TESTING)
  # Debian 12 has version 2, Ubuntu 24.04 version 3; tests/catch.hpp covers both.
  find_package(Catch2 REQUIRED)
  list(APPEND CMAKE_MODULE_PATH "${Catch2_DIR}")
  include(Catch OPTIONAL)
  find_package(rapidcheck REQUIRED)
endif()
