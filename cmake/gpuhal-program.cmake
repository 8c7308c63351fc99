# gpuhal_add_program(): compiles kernels to every format for which a compiler is installed, as one array for
# gpuhal_program_create().
#
#   gpuhal_add_program(NAME SOURCES saxpy.comp saxpy.cl saxpy.cu saxpy.c
#                      [HOST_FUNCTIONS saxpy …] [CUDA_ARCHITECTURES 80 90 …] [HIP_ARCHITECTURES gfx942 …] [DEPENDS file …])
#   target_link_libraries(engine PRIVATE NAME)      # and in C: #include "NAME.h"
#
# creates a static library NAME with `const gpuhal_code NAME_codes[]` and `const uint32_t NAME_code_count`, which NAME.h
# declares. A program has at most one source of each kind, except C, which may have several:
#
#   .comp  SPIR-V for Vulkan 1.1, by glslangValidator. The kernel is named after the file, because in GLSL it is main
#   .cl    the source text, which the driver compiles. If clang is installed, it compiles the text too, so that the build
#          reports errors
#   .cu    a fatbin and PTX, by nvcc
#   .hip   a bundle of code objects, by hipcc, which compiles the .cu if there is no .hip
#   .c     a shared library for CPUs inside the array; or, with HOST_FUNCTIONS, which lists the kernels, a part of the
#          program itself
#
# If the compiler of a format is missing, CMake omits the format and prints a line. DEPENDS lists the files that the
# sources include. Files included by .cu and .hip sources need not be listed, because nvcc and hipcc report them.
# GPUHAL_GLSLANG, GPUHAL_CLANG, GPUHAL_NVCC and GPUHAL_HIPCC select other compilers; OFF disables a compiler.

# ---- as a script: cmake -DNAME=… -DFUNCTIONS=…,… -DOUTPUT=… -P gpuhal-program.cmake -- format file format file …

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  set(arrays "")
  set(codes "")
  set(number 0)
  set(at 0)
  while(NOT CMAKE_ARGV${at} STREQUAL "--")
    math(EXPR at "${at} + 1")
  endwhile()
  math(EXPR at "${at} + 1")
  while(at LESS CMAKE_ARGC)
    set(format ${CMAKE_ARGV${at}})
    math(EXPR at "${at} + 1")
    file(READ "${CMAKE_ARGV${at}}" bytes HEX)
    math(EXPR at "${at} + 1")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    # Compilers may limit the length of a line.
    string(REPEAT "0x..," 20 line)
    string(REGEX REPLACE "(${line})" "\\1\n    " bytes "${bytes}")
    # Appends a zero, so that no array is empty and text is terminated. The size does not include the zero.
    string(APPEND arrays "static const _Alignas(16) unsigned char code_${number}[] = {\n    ${bytes}0};\n\n")
    string(APPEND codes "    {.size = sizeof(gpuhal_code), .format = \"${format}\", .code = code_${number}, .bytes = sizeof code_${number} - 1},\n")
    math(EXPR number "${number} + 1")
  endwhile()
  if(FUNCTIONS)
    string(REPLACE "," ";" FUNCTIONS "${FUNCTIONS}")
    set(entries "")
    foreach(function IN LISTS FUNCTIONS)
      string(APPEND arrays "extern gpuhal_host_kernel_fn ${function};\n")
      string(APPEND entries "    {\"${function}\", ${function}},\n")
    endforeach()
    string(APPEND arrays "static const gpuhal_host_function functions[] = {\n${entries}    {0}};\n\n")
    string(APPEND codes "    {.size = sizeof(gpuhal_code), .format = \"host-function\", .code = functions, .bytes = sizeof functions},\n")
  endif()
  file(WRITE ${OUTPUT} "/* Made by gpuhal_add_program(). */\n#include \"${NAME}.h\"\n\n${arrays}const gpuhal_code ${NAME}_codes[] = {\n${codes}};\n"
                       "const uint32_t ${NAME}_code_count = sizeof ${NAME}_codes / sizeof *${NAME}_codes;\n")
  return()
endif()

# ---- the function, and the formats that it supports

include_guard(GLOBAL)
set(GPUHAL_PROGRAM_SCRIPT ${CMAKE_CURRENT_LIST_FILE} CACHE INTERNAL "")

# Searches for a compiler. If it is missing, names the parts that are omitted.
function(_gpuhal_program_compiler variable program form)
  find_program(${variable} NAMES ${ARGN} HINTS ENV CUDA_PATH ENV ROCM_PATH PATHS /usr/local/cuda /opt/cuda /opt/rocm PATH_SUFFIXES bin
               NO_CMAKE_FIND_ROOT_PATH)
  if(NOT ${variable})
    list(GET ARGN 0 name)
    message(STATUS "gpuhal: program ${program}: ${form} left out: ${name} was not found")
  endif()
endfunction()

# Adds a format to the caller's lists. COMMAND creates the file of the format.
macro(_gpuhal_program_form format output)
  add_custom_command(OUTPUT ${output} ${ARGN} VERBATIM)
  list(APPEND forms ${format} ${output})
  list(APPEND outputs ${output})
endmacro()

function(gpuhal_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;HOST_FUNCTIONS;CUDA_ARCHITECTURES;HIP_ARCHITECTURES;DEPENDS")
  if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "gpuhal_add_program: ${name}: the name of a program is a name in C: letters, digits and _, and no digit first")
  endif()
  if(TARGET ${name})
    message(FATAL_ERROR "gpuhal_add_program: ${name}: there is a target of this name already: give the program another one")
  endif()
  set(unknown ${arg_SOURCES} ${arg_CUDA_ARCHITECTURES} ${arg_HIP_ARCHITECTURES})
  list(FILTER unknown INCLUDE REGEX "^[A-Z]+_[A-Z_]+$") # an unknown keyword is among the values of the previous keyword
  list(PREPEND unknown ${arg_UNPARSED_ARGUMENTS})
  list(REMOVE_DUPLICATES unknown)
  if(unknown)
    list(JOIN unknown " " unknown)
    message(FATAL_ERROR "gpuhal_add_program: ${name}: unknown arguments: ${unknown}. After the name come SOURCES, HOST_FUNCTIONS, "
                        "CUDA_ARCHITECTURES, HIP_ARCHITECTURES or DEPENDS, each with its values")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "gpuhal_add_program: ${name}: SOURCES is missing or empty: list at least one .comp, .cl, .cu, .hip or .c file")
  endif()
  if("HOST_FUNCTIONS" IN_LIST arg_KEYWORDS_MISSING_VALUES) # all other lists may be empty
    message(FATAL_ERROR "gpuhal_add_program: ${name}: nothing stands behind HOST_FUNCTIONS: name the kernels, or leave it out")
  endif()
  foreach(kind IN ITEMS comp cl cu hip c)
    set(${kind} "")
  endforeach()
  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(source ${source} ABSOLUTE)
    get_filename_component(kind ${source} LAST_EXT)
    string(SUBSTRING "${kind}." 1 -1 kind)
    string(REPLACE "." "" kind "${kind}")
    if(NOT kind MATCHES "^(comp|cl|cu|hip|c)$")
      message(FATAL_ERROR "gpuhal_add_program: ${name}: ${source} is not a .comp, .cl, .cu, .hip or .c file")
    endif()
    get_source_file_property(generated ${source} GENERATED)
    if(NOT generated AND NOT EXISTS ${source})
      message(FATAL_ERROR "gpuhal_add_program: ${name}: there is no file ${source}")
    endif()
    list(APPEND ${kind} ${source})
    list(LENGTH ${kind} count)
    if(count GREATER 1 AND NOT kind STREQUAL "c")
      message(FATAL_ERROR "gpuhal_add_program: ${name}: ${source} is a second .${kind} file: a program has one, so make it a program of its own")
    endif()
  endforeach()
  if(arg_HOST_FUNCTIONS AND NOT c)
    list(JOIN arg_HOST_FUNCTIONS " " functions)
    message(FATAL_ERROR "gpuhal_add_program: ${name}: HOST_FUNCTIONS names ${functions}, and no .c file among the SOURCES has them")
  endif()
  foreach(function IN LISTS arg_HOST_FUNCTIONS)
    if(NOT function MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
      message(FATAL_ERROR "gpuhal_add_program: ${name}: HOST_FUNCTIONS: ${function} is not the name of a function in C")
    endif()
  endforeach()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name}.program)
  file(MAKE_DIRECTORY ${folder})
  set(forms "")
  set(outputs "")

  if(cu)
    _gpuhal_program_compiler(GPUHAL_NVCC ${name} "fatbin and PTX are" nvcc)
    if(GPUHAL_NVCC)
      set(machines "")
      set(virtual "")
      foreach(architecture IN LISTS arg_CUDA_ARCHITECTURES)
        list(APPEND machines -gencode arch=compute_${architecture},code=sm_${architecture})
        if(NOT virtual)
          set(virtual -arch=compute_${architecture})
        endif()
      endforeach()
      _gpuhal_program_form(fatbin ${folder}/${name}.fatbin COMMAND ${GPUHAL_NVCC} -fatbin ${machines} -MD -MF ${folder}/fatbin.d
                           -MT ${folder}/${name}.fatbin -o ${folder}/${name}.fatbin ${cu} DEPENDS ${cu} ${arg_DEPENDS} DEPFILE ${folder}/fatbin.d)
      _gpuhal_program_form(ptx ${folder}/${name}.ptx COMMAND ${GPUHAL_NVCC} -ptx ${virtual} -MD -MF ${folder}/ptx.d
                           -MT ${folder}/${name}.ptx -o ${folder}/${name}.ptx ${cu} DEPENDS ${cu} ${arg_DEPENDS} DEPFILE ${folder}/ptx.d)
    endif()
  endif()
  if(NOT hip)
    set(hip ${cu})
  endif()
  if(hip)
    _gpuhal_program_compiler(GPUHAL_HIPCC ${name} "code for HIP is" hipcc)
    if(GPUHAL_HIPCC)
      list(TRANSFORM arg_HIP_ARCHITECTURES PREPEND --offload-arch= OUTPUT_VARIABLE machines)
      _gpuhal_program_form(hip-fatbin ${folder}/${name}.hipfb COMMAND ${GPUHAL_HIPCC} --genco -x hip ${machines} -MD -MF ${folder}/hip.d
                           -MT ${folder}/${name}.hipfb -o ${folder}/${name}.hipfb ${hip} DEPENDS ${hip} ${arg_DEPENDS} DEPFILE ${folder}/hip.d)
    endif()
  endif()
  if(comp)
    _gpuhal_program_compiler(GPUHAL_GLSLANG ${name} "SPIR-V is" glslangValidator glslang)
    if(GPUHAL_GLSLANG)
      get_filename_component(kernel ${comp} NAME_WE)
      _gpuhal_program_form(spirv ${folder}/${name}.spv COMMAND ${GPUHAL_GLSLANG} --target-env vulkan1.1 -S comp --source-entrypoint main
                           -e ${kernel} -o ${folder}/${name}.spv ${comp} DEPENDS ${comp} ${arg_DEPENDS})
    endif()
  endif()
  if(cl)
    _gpuhal_program_compiler(GPUHAL_CLANG ${name} "the check of OpenCL C is" clang clang-20 clang-19 clang-18 clang-17 clang-16 clang-15 clang-14)
    set(check "")
    if(GPUHAL_CLANG)
      set(check COMMAND ${GPUHAL_CLANG} -x cl -cl-std=CL1.2 -fsyntax-only ${cl})
    endif()
    _gpuhal_program_form(opencl-c ${folder}/${name}.cl ${check} COMMAND ${CMAKE_COMMAND} -E copy ${cl} ${folder}/${name}.cl
                         DEPENDS ${cl} ${arg_DEPENDS})
  endif()

  add_library(${name} STATIC ${folder}/${name}.c)
  if(c AND NOT arg_HOST_FUNCTIONS)
    add_library(${name}-host MODULE ${c})
    set_target_properties(${name}-host PROPERTIES C_VISIBILITY_PRESET default PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${folder})
    target_include_directories(${name}-host PRIVATE $<TARGET_PROPERTY:gpuhal::gpuhal,INTERFACE_INCLUDE_DIRECTORIES>)
    list(APPEND forms host-library $<TARGET_FILE:${name}-host>)
    list(APPEND outputs ${name}-host $<TARGET_FILE:${name}-host>)
  elseif(c)
    target_sources(${name} PRIVATE ${c})
  endif()
  list(JOIN arg_HOST_FUNCTIONS "," functions)
  add_custom_command(OUTPUT ${folder}/${name}.c
                     COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DFUNCTIONS=${functions} -DOUTPUT=${folder}/${name}.c
                             -P ${GPUHAL_PROGRAM_SCRIPT} -- ${forms}
                     DEPENDS ${outputs} ${GPUHAL_PROGRAM_SCRIPT} COMMENT "Generating the forms of program ${name}" VERBATIM)
  if(NOT forms AND NOT arg_HOST_FUNCTIONS)
    message(FATAL_ERROR "gpuhal_add_program: ${name}: no compiler for any of its sources was found (see above): install one, or add a .cl or .c "
                        "source, which need none but the project's")
  endif()
  string(CONCAT header "/* Made by gpuhal_add_program(). */\n#ifndef ${name}_program_h\n#define ${name}_program_h\n\n#include <gpuhal/code.h>\n\n"
                       "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n/* The forms of the program, for gpuhal_program_desc. */\n"
                       "extern const gpuhal_code ${name}_codes[];\nextern const uint32_t ${name}_code_count;\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n")
  file(GENERATE OUTPUT ${folder}/include/${name}.h CONTENT "${header}")
  target_include_directories(${name} PUBLIC ${folder}/include $<TARGET_PROPERTY:gpuhal::gpuhal,INTERFACE_INCLUDE_DIRECTORIES>)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON C_STANDARD 11)
endfunction()
