# Writes a C++ source with the texts of files, so that a program needs none of them when it runs.
#   cmake -DOUTPUT=<file> -DHEADER=<include> -DNAMESPACE=<namespace>
#         "-DTEXTS=<name>=<file>|<file>||<name>=<file>" -P Embed.cmake
# Each text is a std::string_view of that name: its files, one behind the other.
string(REPLACE "||" ";" texts "${TEXTS}")
set(source "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n")
foreach(text IN LISTS texts)
  string(REGEX MATCH "^([a-z_]+)=(.*)$" ignored "${text}")
  set(name "${CMAKE_MATCH_1}")
  string(REPLACE "|" ";" files "${CMAKE_MATCH_2}")
  string(APPEND source "const std::string_view ${name} =")
  foreach(file IN LISTS files)
    file(READ "${file}" content)
    string(FIND "${content}" ")embedded\"" end)
    if(NOT end EQUAL -1)
      message(FATAL_ERROR "${file} has the end of a raw string in it")
    endif()
    string(APPEND source "\n    R\"embedded(${content})embedded\"")
  endforeach()
  string(APPEND source ";\n")
endforeach()
string(APPEND source "}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${source}")
