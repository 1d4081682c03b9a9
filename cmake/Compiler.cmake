# How everything is compiled and linked: the language, the warnings, the sanitizers, ccache and lld.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# -ffp-contract=off: the same answer whether or not the machine has fused multiply-add.
add_compile_options(
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Werror;-ffp-contract=off>")
# All folders are also in libstratagem, which shows what api/ marks. Not CMake's own setting, with
# which programs could not share the precompiled headers of libraries.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fPIC;-fvisibility=hidden>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fPIC>")
# Members have default initialisers; a designated initialiser names only those that differ.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>")
include_directories("${CMAKE_SOURCE_DIR}")

option(STRATAGEM_JOIN
  "Compile several sources as one: for builds from nothing, such as that of scripts/check" OFF)
# To this warning, sources that are joined look like headers. And joined sources are large: GCC
# takes a tenth less time for them if it collects its garbage less often.
if(STRATAGEM_JOIN)
  add_compile_options(
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage;--param=ggc-min-heapsize=1000000>")
endif()

# GCC 12 and 13 see overlaps and overruns in inlined std::string that are not there (GCC bugs
# 105651, 105329, 107852), a vector freed with an offset, and a dangling reference behind every
# function that takes and returns a view. The sanitizers look for the real ones.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(false_alarms -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds
                   -Wno-free-nonheap-object)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    list(APPEND false_alarms -Wno-dangling-reference)
  endif()
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${false_alarms}>")
endif()

if(STRATAGEM_SANITIZE)
  # -Og compiles in two thirds of the time of -O1; without either the tests take minutes. -g1: lines
  # for backtraces; variables would take a fifth of the compiler's time.
  # null: a null dereferenced stops the program by itself. vptr, object-size: nothing here casts
  # objects, and AddressSanitizer sees what lies outside of them. alignment: of execute/ alone,
  # whose values lie in arenas. They are a third of the time.
  add_compile_options(-Og -g1 -fsanitize=address,undefined
    -fno-sanitize=null,alignment,vptr,object-size
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=address,undefined)
  # The instrumentation hides from GCC that values were set.
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>")
endif()

find_program(STRATAGEM_CCACHE ccache)
mark_as_advanced(STRATAGEM_CCACHE)
if(STRATAGEM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache takes precompiled headers only when told that __TIME__ and -D differences in them do not
  # matter.
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>")
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
    "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
    "${STRATAGEM_CCACHE}")
endif()

find_program(STRATAGEM_LLD ld.lld)
mark_as_advanced(STRATAGEM_LLD)
if(STRATAGEM_LLD)
  add_link_options(-fuse-ld=lld)
endif()
