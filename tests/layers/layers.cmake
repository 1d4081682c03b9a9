# Reads every #include of the folders and fails for one that points up, for files or subfolders that
# include each other in a circle, for a library out of its place, and for a folder with too many
# sources. What lies in an inside/ is part of the sources that include it, so it is in no circle.
#   cmake -DROOT=<repository> -P layers.cmake
# CONTRIBUTING.md shows the first table. report/ stands on study/ and search/, since what it reports
# on are their results.
cmake_minimum_required(VERSION 3.25)

# folder: the folders just below it. Arrows are transitive.
set(below_base)
set(below_topology base)
set(below_model base)
set(below_cost topology model)
set(below_placement cost)
set(below_strategies placement)
set(below_program placement)
set(below_lowering strategies program)
set(below_sim program)
set(below_study sim lowering)
set(below_kernels base)
set(below_calibrate kernels cost)
set(below_execute kernels sim)
set(below_search study)
set(below_report search)
set(below_imports study)
set(below_api report imports)
set(below_commands calibrate execute report imports)
set(below_python api)
set(folders base topology model cost placement strategies program lowering sim study kernels
  calibrate execute search report imports api commands python)

# Headers in a folder's inside/ are for its own sources only; they may show a library.

# library: how its headers begin, then the folders that may include it from a source file.
set(libraries boost eigen blas mpi cuda nccl json zlib sqlite tbb cbc z3 cxxopts fmt pugixml toml
  yaml protobuf pybind)
set(headers_boost "boost/")
set(folders_boost topology model search)
set(headers_eigen "Eigen/|unsupported/Eigen/")
set(folders_eigen calibrate kernels)
set(headers_blas "cblas|lapacke")
set(folders_blas kernels)
set(headers_mpi "mpi\\.h")
set(folders_mpi kernels search)
set(headers_cuda
  "cuda|cublas|cudnn|cufft|curand|cusparse|cub/|thrust/|cooperative_groups|mma\\.h|nv|device_")
set(folders_cuda kernels)
set(headers_nccl "nccl")
set(folders_nccl kernels)
set(headers_json "nlohmann/")
set(folders_json base)
set(headers_zlib "zlib")
set(folders_zlib base)
set(headers_sqlite "sqlite3")
set(folders_sqlite search)
set(headers_tbb "tbb/|oneapi/")
set(folders_tbb study search)
set(headers_cbc "coin/|Cbc|Clp|Osi|Coin")
set(folders_cbc search)
set(headers_z3 "z3")
set(folders_z3 search)
set(headers_cxxopts "cxxopts")
set(folders_cxxopts commands)
set(headers_pugixml "pugixml")
set(folders_pugixml topology)
set(headers_toml "toml[+][+]")
set(folders_toml imports)
set(headers_yaml "yaml-cpp")
set(folders_yaml imports)
set(headers_protobuf "google/protobuf/|report/chakra/[a-z_]+\\.pb\\.h")
set(folders_protobuf report)
set(headers_pybind "pybind11/")
set(folders_pybind python)
set(headers_fmt "fmt/")
set(folders_fmt ${folders})

# The system's own headers; those of the language have neither a dot nor a slash in their names.
set(system_headers
  "^(sys/.+|unistd\\.h|fcntl\\.h|ifaddrs\\.h|net/.+|netinet/.+|signal\\.h|dlfcn\\.h|malloc\\.h|poll\\.h|pthread\\.h|sched\\.h|immintrin\\.h)$")

# Every folder may include itself and what its arrows reach; `folders` goes from low to high.
foreach(folder IN LISTS folders)
  set(may_${folder} ${folder})
  foreach(lower IN LISTS below_${folder})
    list(APPEND may_${folder} ${may_${lower}})
  endforeach()
  list(REMOVE_DUPLICATES may_${folder})
endforeach()

set(offences "")
set(includes_read 0)
set(siblings "")  # that include something beside them: includes_of_<subfolder or file>

# Notes what an include within a folder says of the subfolders and files that lie side by side where
# the two paths part: `file` lies in one, `header` in another. A file stands for its header, too;
# what is in inside/ is no subfolder.
function(note_siblings file header)
  string(REGEX REPLACE "[.][a-z]+$" "" file "${file}")
  string(REGEX REPLACE "[.][a-z]+$" "" header "${header}")
  set(parent "")
  while(TRUE)
    string(REGEX MATCH "^[^/]+/?" from "${file}")
    string(REGEX MATCH "^[^/]+/?" to "${header}")
    if(NOT from STREQUAL to OR NOT from MATCHES "/$")
      break()
    endif()
    string(APPEND parent "${from}")
    string(LENGTH "${from}" length)
    string(SUBSTRING "${file}" ${length} -1 file)
    string(SUBSTRING "${header}" ${length} -1 header)
  endwhile()
  if(from STREQUAL to OR "${from}${to}" MATCHES "inside/")
    return()
  endif()
  list(APPEND "includes_of_${parent}${from}" "${parent}${to}")
  list(REMOVE_DUPLICATES "includes_of_${parent}${from}")
  set("includes_of_${parent}${from}" "${includes_of_${parent}${from}}" PARENT_SCOPE)
  if(NOT "${parent}${from}" IN_LIST siblings)
    set(siblings "${siblings};${parent}${from}" PARENT_SCOPE)
  endif()
endfunction()

# Adds one offence: where (file:line), the include, why.
function(refuse file content directive why)
  string(FIND "${content}" "${directive}" at)
  string(SUBSTRING "${content}" 0 ${at} before)
  string(REGEX MATCHALL "\n" newlines "\n${before}")
  list(LENGTH newlines line)
  string(STRIP "${directive}" directive)
  string(APPEND offences "\n  ${file}:${line}: ${directive}: ${why}")
  set(offences "${offences}" PARENT_SCOPE)
endfunction()

foreach(folder IN LISTS folders)
  file(GLOB_RECURSE files RELATIVE "${ROOT}"
    "${ROOT}/${folder}/*.hpp" "${ROOT}/${folder}/*.h" "${ROOT}/${folder}/*.cpp"
    "${ROOT}/${folder}/*.cu" "${ROOT}/${folder}/*.cuh")
  foreach(file IN LISTS files)
    file(READ "${ROOT}/${file}" content)
    string(REGEX REPLACE "[];[]" " " content "\n${content}")  # what CMake's lists would trip over
    string(REGEX MATCHALL "\n[ \t]*#[ \t]*include[ \t]*[<\"][^>\"\n]+[>\"]" directives "${content}")
    string(SUBSTRING "${content}" 1 -1 content)
    foreach(directive IN LISTS directives)
      math(EXPR includes_read "${includes_read} + 1")
      string(REGEX MATCH "[<\"]([^>\"]+)[>\"]$" ignored "${directive}")
      set(header "${CMAKE_MATCH_1}")
      string(SUBSTRING "${directive}" 1 -1 directive)  # without its newline

      # One of our own folders?
      string(REGEX MATCH "^[^/]+" first "${header}")
      if("${first}" IN_LIST folders AND header MATCHES "/")
        if(NOT "${first}" IN_LIST may_${folder})
          string(REPLACE ";" ", " may "${may_${folder}}")
          refuse("${file}" "${content}" "${directive}" "${folder}/ may include only ${may}")
        elseif(header MATCHES "/inside/" AND
               NOT (first STREQUAL folder AND file MATCHES "/inside/|\\.(cpp|cu)$"))
          refuse("${file}" "${content}" "${directive}"
            "only sources of ${first}/ may see its inside")
        elseif(first STREQUAL folder)
          note_siblings("${file}" "${header}")
        endif()
        continue()
      endif()

      # What C++23 has as std::flat_map counts as the standard library's.
      if(header STREQUAL "boost/container/flat_map.hpp")
        continue()
      endif()
      # A library?
      set(library "")
      foreach(candidate IN LISTS libraries)
        if(header MATCHES "^(${headers_${candidate}})")
          set(library ${candidate})
          break()
        endif()
      endforeach()
      if(library)
        if(NOT "${folder}" IN_LIST folders_${library})
          string(REPLACE ";" ", " may "${folders_${library}}")
          if(NOT may)
            set(may "nobody")
          endif()
          refuse("${file}" "${content}" "${directive}" "${library} belongs to ${may}")
        elseif(file MATCHES "\\.(hpp|h)$" AND NOT file MATCHES "/inside/")
          refuse("${file}" "${content}" "${directive}" "a header must not expose a library")
        endif()
        continue()
      endif()

      # The language or the system; anything else is a library that the table above does not know.
      if(directive MATCHES "\"" OR (header MATCHES "[./]" AND NOT header
        MATCHES "${system_headers}"))
        refuse("${file}" "${content}" "${directive}"
          "neither folder/file nor a library of the table in tests/layers/layers.cmake")
      endif()
    endforeach()
  endforeach()
endforeach()

# What includes nothing that is left is in no circle. Taken away again and again, it leaves the
# circles and what leads to them.
set(left "${siblings}")
set(before "")
while(NOT left STREQUAL before)
  set(before "${left}")
  foreach(one IN LISTS before)
    set(onwards FALSE)
    foreach(next IN LISTS "includes_of_${one}")
      if("${next}" IN_LIST left)
        set(onwards TRUE)
        break()
      endif()
    endforeach()
    if(NOT onwards)
      list(REMOVE_ITEM left "${one}")
    endif()
  endforeach()
endwhile()

# From each of these along its includes, nearest first: one that comes back to where it began is the
# shortest circle.
set(in_circles "")
foreach(start IN LISTS left)
  if("${start}" IN_LIST in_circles)
    continue()
  endif()
  set(seen "")
  set(queue "${start}")
  set("way_to_${start}" "")
  while(queue AND NOT "${start}" IN_LIST seen)
    list(POP_FRONT queue here)
    foreach(next IN LISTS "includes_of_${here}")
      if(NOT "${next}" IN_LIST seen)
        list(APPEND seen "${next}")
        list(APPEND queue "${next}")
        set(way "${way_to_${here}}" "${here}")
        list(REMOVE_ITEM way "")
        set("way_to_${next}" "${way}")
      endif()
    endforeach()
  endwhile()
  if("${start}" IN_LIST seen)
    list(APPEND in_circles ${way_to_${start}})
    string(REPLACE ";" " -> " circle "${way_to_${start}}")
    string(APPEND offences "\n  ${circle} -> ${start}: a circle of includes")
  endif()
endforeach()

# A folder that nobody can take in at a glance wants subfolders.
set(globs "${folders}")
list(TRANSFORM globs PREPEND "${ROOT}/")
list(TRANSFORM globs APPEND "/*.cpp")
file(GLOB_RECURSE sources RELATIVE "${ROOT}" ${globs})
foreach(source IN LISTS sources)
  get_filename_component(folder "${source}" DIRECTORY)
  string(MAKE_C_IDENTIFIER "${folder}" key)
  math(EXPR sources_in_${key} "0${sources_in_${key}} + 1")
  if(sources_in_${key} EQUAL 26)
    string(APPEND offences "\n  ${folder}/ has more than 25 sources of its own")
  endif()
endforeach()

if(offences)
  message(FATAL_ERROR "Includes against the arrows of docs/internals/design.md:${offences}")
endif()
if(includes_read EQUAL 0)
  message(FATAL_ERROR "no #include found under ROOT=${ROOT}")
endif()
message(STATUS "${includes_read} includes, all along the arrows")
