# Writes gpuhal.cdef, a file that the cdef() of Python's cffi accepts unchanged. It contains the declarations of
# gpuhal.h and of the headers of the parts that were built.
#
# cmake -DCC=compiler -DPARTS=node;schedule;store -DINCLUDE=directory -DOUTPUT=file -P cdef.cmake
#
# The compiler's preprocessor removes comments, conditions and attributes. In its output, the declarations of the
# system's headers precede gpuhal's first declaration. The preprocessor also removes macros, so numeric macros are added
# in the form that cffi accepts.

list(TRANSFORM PARTS REPLACE "(.+)" "-include;gpuhal/\\1.h" OUTPUT_VARIABLE more)
execute_process(COMMAND ${CC} -E -P -I${INCLUDE} -D__attribute__\(x\)= -include gpuhal/gpuhal.h ${more} -x c /dev/null
                OUTPUT_VARIABLE text RESULT_VARIABLE result ERROR_VARIABLE errors)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${CC} cannot preprocess gpuhal.h: ${errors}")
endif()
string(FIND "${text}" "typedef int32_t gpuhal_status;" begin)
if(begin EQUAL -1)
  message(FATAL_ERROR "the first declaration of gpuhal/types.h is not \"typedef int32_t gpuhal_status;\" any more")
endif()
string(SUBSTRING "${text}" ${begin} -1 text)

set(numbers "")
file(GLOB_RECURSE headers ${INCLUDE}/gpuhal/*.h)
list(FILTER headers EXCLUDE REGEX "/(plugin|direct)\\.h$")
foreach(header IN LISTS headers)
  file(STRINGS ${header} lines REGEX "^#define GPUHAL_[A-Z0-9_]+ +(0x)?[0-9a-f]+u?$")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "u$" "" line "${line}")
    string(APPEND numbers "${line}\n")
  endforeach()
endforeach()
file(WRITE ${OUTPUT}.new "${text}${numbers}")
file(RENAME ${OUTPUT}.new ${OUTPUT})
