# Installs the build into a folder of its own, and uses it as others do: the program finds its library,
# a project outside of the tree builds against libstratagem, Python imports the module.
#   cmake -DBUILD=<build tree> -DSOURCE=<repository> -DFOLDER=<scratch> -DPYTHON=<or ""> \
#     -DMPI=<module of ranks, or ""> -P install.cmake
function(must)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(code)
    message(FATAL_ERROR "${ARGN}: ${code}\n${out}${err}")
  endif()
  set(out "${out}" PARENT_SCOPE)
  set(err "${err}" PARENT_SCOPE)
endfunction()

function(contains text part)
  string(FIND "${text}" "${part}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "expected ${part} in\n${text}")
  endif()
endfunction()

file(REMOVE_RECURSE "${FOLDER}")
set(prefix "${FOLDER}/usr")
must("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")

# The installed program answers by its own library, not by the sources'.
file(COPY_FILE "${SOURCE}/scenarios/profiles/h100-sxm5.json"
  "${prefix}/share/stratagem/profiles/only-here.json")
must("${prefix}/bin/stratagem" list profiles)
contains("${out}" "only-here")
must("${prefix}/bin/stratagem" simulate "${prefix}/share/stratagem/examples/zero.json"
  --run data)
must("${prefix}/bin/stratagem" simulate "${prefix}/share/stratagem/examples/own_model.json"
  --columns iteration_time)

must("${CMAKE_COMMAND}" -S "${SOURCE}/examples/outside" -B "${FOLDER}/outside"
  "-DCMAKE_PREFIX_PATH=${prefix}" -DCMAKE_BUILD_TYPE=Release)
must("${CMAKE_COMMAND}" --build "${FOLDER}/outside")
must("${FOLDER}/outside/outside")
contains("${out}" "\"iteration_time_s\"")
contains("${out}" "run,group,status,gpus")
contains("${err}" "set tensor=three: expected a whole number from 1 to 1000000, found \"three\"")

if(PYTHON)
  must("${CMAKE_COMMAND}" -E env "PYTHONPATH=${prefix}/lib/python3/dist-packages" "${PYTHON}" -c
    "print(__import__('stratagem').names('profiles'))")
  contains("${out}" "only-here")
endif()

foreach(file IN ITEMS share/man/man1/stratagem.1 share/bash-completion/completions/stratagem
    share/zsh/vendor-completions/_stratagem share/fish/vendor_completions.d/stratagem.fish
    ${MPI})
  if(NOT EXISTS "${prefix}/${file}")
    message(FATAL_ERROR "not installed: ${file}")
  endif()
endforeach()
file(REMOVE_RECURSE "${FOLDER}")
