# The two ways to add code: stratagem_library for a folder, stratagem_test for its tests.

# One precompiled header of the standard library for all folders, compiled once.
add_library(stratagem_standard_headers OBJECT "${CMAKE_CURRENT_LIST_DIR}/precompiled.cpp")
target_precompile_headers(stratagem_standard_headers PRIVATE
  <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <numeric> <optional> <ostream>
  <set>
  <span> <string> <string_view> <tuple> <unordered_map> <utility> <variant> <vector>)

# Compiles the sources of a target sixteen at a time, which takes half as long in all, and longer
# after a small change.
function(stratagem_join target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${STRATAGEM_JOIN} UNITY_BUILD_BATCH_SIZE 16)
endfunction()

# Sets <result> to the sources that lie in the folder of the CMakeLists.txt that is read and below
# it, but for those whose paths begin with one of the others. A build looks whether there are new
# ones.
function(stratagem_sources result)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}"
    "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  foreach(beginning IN LISTS ARGN)
    list(FILTER sources EXCLUDE REGEX "^${beginning}")
  endforeach()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# stratagem_library(<folder> [USES <folders>...] [LIBRARIES <imported targets>...]
#                   [EXCEPT <paths>...])
#
# Adds the static library stratagem_<folder> of all sources of the folder but those whose paths
# begin as EXCEPT says; a folder without sources is headers only. USES are our own folders and are
# visible to whoever uses this one; LIBRARIES are of others and stay inside.
function(stratagem_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "USES;LIBRARIES;EXCEPT")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "stratagem_library(${folder}): what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  list(TRANSFORM arg_USES PREPEND stratagem_)
  stratagem_sources(sources ${arg_EXCEPT})
  if(sources)
    add_library(stratagem_${folder} STATIC ${sources})
    target_precompile_headers(stratagem_${folder} REUSE_FROM stratagem_standard_headers)
    stratagem_join(stratagem_${folder})
    # A test may link a table with another line in place of this one: it is an object of its own.
    set(tables ${sources})
    list(FILTER tables INCLUDE REGEX "(^|/)(all|presets|precision|operator_kinds)\\.cpp$")
    set_source_files_properties(${tables} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    target_link_libraries(stratagem_${folder} PUBLIC ${arg_USES} PRIVATE ${arg_LIBRARIES})
  else()
    add_library(stratagem_${folder} INTERFACE)
    target_link_libraries(stratagem_${folder} INTERFACE ${arg_USES} ${arg_LIBRARIES})
  endif()
endfunction()

# Tests spend their time in the libraries, so they are hardly optimised themselves; sanitized ones
# not at all, and without checks of their own arithmetic: that compiles in a third of the time.
function(stratagem_quick_to_compile target)
  if(STRATAGEM_SANITIZE)
    target_compile_options(${target} PRIVATE -O0 -fno-sanitize=undefined)
  else()
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O1>)
  endif()
endfunction()

# Adds a ctest entry "<folder>/<source>" for each source with tests, to which Catch gives the tag
# [#<name of the source>]. To start a sanitized program takes as long as most tests.
function(stratagem_test_sources folder properties)
  set(stems "")
  foreach(source IN LISTS ARGN)
    file(STRINGS "${source}" cases REGEX "TEST_CASE|SCENARIO")
    file(STRINGS "${source}" for_debug_builds REGEX "^#ifndef NDEBUG")
    if(cases AND NOT (for_debug_builds AND CMAKE_BUILD_TYPE MATCHES "Rel"))
      cmake_path(GET source STEM LAST_ONLY stem)
      if(stem IN_LIST stems)
        message(FATAL_ERROR "${folder}: two sources are named ${stem}.cpp, for which there is one tag")
      endif()
      list(APPEND stems ${stem})
      string(REPLACE "${CMAKE_CURRENT_BINARY_DIR}/" "" name "${source}")
      string(REGEX REPLACE "\\.cpp$" "" name "${name}")
      add_test(NAME "${folder}/${name}" COMMAND ${folder}_test -\# "[#${stem}]"
        WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
      set_tests_properties("${folder}/${name}" PROPERTIES ${properties})
    endif()
  endforeach()
endfunction()

# stratagem_test(<folder> [SOURCES <files>...] [USES <folders>...] [LIBRARIES <imported targets>...]
#                [EXCEPT <paths>...] [RUNS_EXECUTABLE] [SKIPPED_BY <regular expression>] [APART])
#
# Adds the program <folder>_test of SOURCES, or else of all sources of the folder but those whose
# paths begin as EXCEPT says, and one ctest entry per TEST_CASE, named "<folder>/<the test's name>"
# and labelled <folder>; where sources are joined, one per source, found when CMake runs. They run
# in the root of the repository. It links stratagem_<folder> where there is one. RUNS_EXECUTABLE
# builds `stratagem` before it and defines STRATAGEM_EXECUTABLE as its path. A test that prints what
# matches SKIPPED_BY counts as skipped. APART: its sources use the same names for different things,
# so they are never joined.
function(stratagem_test folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "RUNS_EXECUTABLE;APART" "SKIPPED_BY"
    "SOURCES;USES;LIBRARIES;EXCEPT")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "stratagem_test(${folder}): what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  set(target ${folder}_test)
  if(NOT arg_SOURCES)
    stratagem_sources(arg_SOURCES ${arg_EXCEPT})
  endif()
  add_executable(${target} ${arg_SOURCES})
  target_precompile_headers(${target} REUSE_FROM stratagem_test_headers)
  stratagem_quick_to_compile(${target})
  if(NOT arg_APART)
    stratagem_join(${target})
  endif()
  list(TRANSFORM arg_USES PREPEND stratagem_)
  target_link_libraries(${target} PRIVATE stratagem_catch ${arg_USES} ${arg_LIBRARIES})
  if(TARGET stratagem_${folder})
    target_link_libraries(${target} PRIVATE stratagem_${folder})
  endif()
  if(arg_RUNS_EXECUTABLE)
    add_dependencies(${target} stratagem)
    target_compile_definitions(${target}
      PRIVATE "STRATAGEM_EXECUTABLE=\"$<TARGET_FILE:stratagem>\"")
  endif()
  # A name that Catch does not find runs no test, which would count as passed.
  set(properties LABELS ${folder} FAIL_REGULAR_EXPRESSION "No tests ran")
  if(arg_SKIPPED_BY)
    list(APPEND properties SKIP_REGULAR_EXPRESSION "${arg_SKIPPED_BY}")
  endif()
  if(STRATAGEM_JOIN AND NOT arg_RUNS_EXECUTABLE AND NOT arg_SKIPPED_BY)
    stratagem_test_sources(${folder} "${properties}" ${arg_SOURCES})
  elseif(COMMAND catch_discover_tests)
    catch_discover_tests(${target} TEST_PREFIX "${folder}/" WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
      PROPERTIES ${properties})
  else()
    add_test(NAME ${folder} COMMAND ${target} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
    set_tests_properties(${folder} PROPERTIES ${properties})
  endif()
endfunction()
