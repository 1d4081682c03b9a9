# `cmake --install`, and packages by `cpack`: the program with its library of profiles, stacks, servers
# and plans; libstratagem with its header, for find_package(stratagem); the module of Python; what
# shells and man(1) read.
set(share "${CMAKE_INSTALL_DATADIR}/stratagem")
set(documents "${CMAKE_INSTALL_DATADIR}/doc/stratagem")

install(TARGETS stratagem RUNTIME)
if(TARGET stratagem_mpi)
  install(TARGETS stratagem_mpi LIBRARY DESTINATION lib)  # where the program looks (kernels/ranks)
endif()
install(DIRECTORY scenarios/profiles scenarios/stacks scenarios/nodes scenarios/plans scenarios/gallery
  scenarios/schema DESTINATION "${share}" FILES_MATCHING PATTERN "*.json")
file(GLOB examples "${CMAKE_SOURCE_DIR}/scenarios/*.json")
install(FILES ${examples} DESTINATION "${share}/examples")
install(DIRECTORY scenarios/models DESTINATION "${share}/examples" FILES_MATCHING PATTERN "*.json")
install(FILES README.md LICENSE DESTINATION "${documents}")

# What the program prints of itself; a program for another machine would be cross-compiled.
foreach(shell IN ITEMS bash zsh fish)
  list(APPEND printed "${CMAKE_BINARY_DIR}/completions/${shell}")
  add_custom_command(OUTPUT "${CMAKE_BINARY_DIR}/completions/${shell}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_BINARY_DIR}/completions"
    COMMAND stratagem completion ${shell} > "${CMAKE_BINARY_DIR}/completions/${shell}"
    DEPENDS stratagem)
endforeach()
add_custom_command(OUTPUT "${CMAKE_BINARY_DIR}/completions/stratagem.1"
  COMMAND stratagem man > "${CMAKE_BINARY_DIR}/completions/stratagem.1" DEPENDS stratagem ${printed})
add_custom_target(completions ALL DEPENDS "${CMAKE_BINARY_DIR}/completions/stratagem.1" ${printed})
# All that is installed.
add_custom_target(all_installed DEPENDS completions stratagem stratagem_shared)
if(TARGET stratagem_mpi)
  add_dependencies(all_installed stratagem_mpi)
endif()
if(TARGET stratagem_python)
  add_dependencies(all_installed stratagem_python)
endif()
set(completions "${CMAKE_BINARY_DIR}/completions")
install(FILES "${completions}/bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
  RENAME stratagem)
install(FILES "${completions}/zsh" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions"
  RENAME _stratagem)
install(FILES "${completions}/fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d"
  RENAME stratagem.fish)
install(FILES "${completions}/stratagem.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")

# The library.
include(CMakePackageConfigHelpers)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/stratagem")
install(TARGETS stratagem_shared EXPORT stratagem LIBRARY)
install(FILES api/stratagem.hpp DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/stratagem")
install(EXPORT stratagem FILE stratagem-config.cmake NAMESPACE stratagem:: DESTINATION "${package}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/stratagem-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/stratagem-config-version.cmake" DESTINATION "${package}")

if(TARGET stratagem_python)
  install(TARGETS stratagem_python LIBRARY DESTINATION lib/python3/dist-packages/stratagem)
  install(DIRECTORY python/stratagem DESTINATION lib/python3/dist-packages
    FILES_MATCHING PATTERN "*.py")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME stratagem)
set(CPACK_PACKAGE_CONTACT "the founders of Stratagem")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "predicts parallel training plans on GPU clusters")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS python3)
set(CPACK_STRIP_FILES ON)
include(CPack)
