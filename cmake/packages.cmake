# Creates Debian packages, one for each component of the installation. Run `cpack` in the build folder; the preset
# "package" builds for /usr. The packages have the build's prefix, because the prefix is compiled into the library: a
# privileged process loads plugins only from this prefix.

get_target_property(soversion gpuhal SOVERSION)
set(library libgpuhal${soversion})
get_property(plugins GLOBAL PROPERTY GPUHAL_PLUGINS)

# gpuhal_package(COMPONENT PACKAGE DESCRIPTION): adds a package. Every package except the library's depends on exactly
# the same version of the library, because the programs are linked to it, and before ABI 1.0 a plugin is compatible with
# only one version.
macro(gpuhal_package component package description)
  string(TOUPPER ${component} word)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_DEBIAN_${word}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${word}_DESCRIPTION "${description}")
  if(NOT "${component}" STREQUAL runtime)
    set(CPACK_DEBIAN_${word}_PACKAGE_DEPENDS "${library} (= ${PROJECT_VERSION})")
  endif()
endmacro()

set(CPACK_COMPONENTS_ALL "")
gpuhal_package(runtime ${library} "GPU hardware abstraction layer: shared library")
gpuhal_package(dev libgpuhal-dev "GPU hardware abstraction layer: headers, static library, documents")
if(GPUHAL_TOOLS)
  gpuhal_package(tools gpuhal-tools "GPU hardware abstraction layer: list devices, check plugins, measure")
endif()
foreach(name IN LISTS plugins)
  gpuhal_package(plugin-${name} gpuhal-plugin-${name} "GPU hardware abstraction layer: plugin ${name}")
endforeach()
# Only one version of the library can be installed, because the folder of the helper program and the plugins has no
# version in its name.
foreach(relation IN ITEMS PROVIDES CONFLICTS REPLACES)
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_${relation} gpuhal-helper)
endforeach()
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
# Packaging tools cannot detect which libraries a plugin opens at run time.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS gpuhal-plugin-cpu)
set(CPACK_DEBIAN_PLUGIN-OPENCL_PACKAGE_RECOMMENDS "ocl-icd-libopencl1 | libopencl1")
set(CPACK_DEBIAN_PLUGIN-VULKAN_PACKAGE_RECOMMENDS libvulkan1)
set(CPACK_DEBIAN_PLUGIN-CUDA_PACKAGE_SUGGESTS "libcuda1, libnvidia-ml1")
set(CPACK_DEBIAN_PLUGIN-ROCM_PACKAGE_SUGGESTS libamdhip64-5)

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
# CPack can also create this file, but it warns about every plugin. Plugins have no soname, because nothing links to
# them.
file(WRITE ${PROJECT_BINARY_DIR}/packages/shlibs "libgpuhal ${soversion} ${library} (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/packages/shlibs)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # otherwise every package description would begin with it
set(CPACK_PACKAGE_CONTACT "the maintainers of libgpuhal")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
