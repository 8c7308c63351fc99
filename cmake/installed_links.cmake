# Runs during installation. Changes the links to hal/include in the installed documents into links to the installed
# headers. `documents` and `headers` are folders, absolute or relative to the prefix.

get_filename_component(documents "${documents}" ABSOLUTE BASE_DIR "${CMAKE_INSTALL_PREFIX}")
get_filename_component(headers "${headers}" ABSOLUTE BASE_DIR "${CMAKE_INSTALL_PREFIX}")
file(GLOB_RECURSE pages "$ENV{DESTDIR}${documents}/*.md")
foreach(page IN LISTS pages)
  get_filename_component(folder "${page}" DIRECTORY)
  file(RELATIVE_PATH to_headers "${folder}" "$ENV{DESTDIR}${headers}")
  file(READ "${page}" text)
  string(REGEX REPLACE "\\]\\((\\.\\./)*hal/include/" "](${to_headers}/" linked "${text}")
  if(NOT linked STREQUAL text)
    file(WRITE "${page}" "${linked}")
  endif()
endforeach()
