#!/usr/bin/env python3
"""Tests how other projects use an installed gpuhal. Each use is a CTest test: install_test.py TEST --option value…

The first test installs the build tree into an empty prefix below --work. The other tests use this prefix as another
project would, with the compiler, CMake and pkg-config. When the tests run the programs, no GPUHAL_ variables are set
except those that the tests set.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Werror"]


SKIPPED = 77


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def run(*command, cwd=None, env=None):
    """Runs a command and returns its output. If the command fails, the error message contains all of the output."""
    result = subprocess.run([str(part) for part in command], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0:
        raise Failed(f"{shlex.join(map(str, command))} ended with {result.returncode}:\n{result.stdout}")
    return result.stdout


def expect(condition, sentence, output=""):
    if not condition:
        raise Failed(f"{sentence}\n{output}")


def clean_environment(**added):
    """Returns the caller's environment without the GPUHAL_ variables. The only GPUHAL_ variable in the result disables
    the registry."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GPUHAL_")}
    return {**kept, "GPUHAL_REGISTRY": "none", **added}


def fresh(path):
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def check_consumer(program, expected_files, mapped, env=None, plugins=("cpu", "opencl", "vulkan")):
    """Runs consumer.c. Checks that the plugins were loaded from the expected files, and that only files that match
    `mapped` are loaded."""
    output = run(program, env=env or clean_environment())
    for name in plugins:
        states = "ok" if name == "cpu" else "ok|no_driver|no_device"
        expect(re.search(rf"^plugin {name} ({states}) {re.escape(expected_files.format(name=name))}$", output, re.M),
               f"{program} did not get {name} from {expected_files.format(name=name)}", output)
    expect("device cpu:0 right\n" in output, f"{program} moved no bytes on cpu:0", output)
    for path in re.findall(r"^mapped (.*)$", output, re.M):
        expect(re.fullmatch(mapped, path), f"{program} has loaded {path}", output)
    return output


def a_build_tree_installs_into_an_empty_prefix(o):
    prefix = fresh(o.prefix.parent) / o.prefix.name
    run(o.cmake, "--install", o.build, "--prefix", prefix)
    headers = o.source / "hal/include/gpuhal"
    for header in headers.rglob("*.h"):
        name = header.relative_to(headers)
        expect((prefix / "include/gpuhal" / name).is_file(), f"{name} was not installed")
    for name in ("gpuhal.hpp",):
        expect((prefix / "include/gpuhal" / name).is_file(), f"{name} was not installed")
    for name in ("libgpuhal.so", "libgpuhal.a", "pkgconfig/gpuhal.pc", "cmake/gpuhal/gpuhal-config.cmake", "cmake/gpuhal/gpuhal-program.cmake", "gpuhal/gpuhal-helper",
                 *(f"gpuhal/{file}" for plugin in o.source.glob("plugins/*/*.gpuhal")
                   for file in (plugin.name, f"gpuhal-{plugin.stem}.so"))):
        expect((o.libdir / name).is_file(), f"{name} was not installed")
    for name in ("README.md", "LICENSE", "docs/vendor-guide.md", "examples/vendor-plugin/plugin.c"):
        expect((prefix / "share/doc/gpuhal" / name).is_file(), f"{name} was not installed")
    for name in ("gpuhal-probe", "gpuhal-check", "gpuhal-bench", "gpuhal-lease", "gpuhal-place", "gpuhal-plot", "gpuhal-snapshot"):
        run(prefix / "bin" / name, "--help")
    ledger = (prefix / "lib/tmpfiles.d/gpuhal.conf").read_text(encoding="utf-8")
    expect(re.search(r"^d /run/gpuhal 2770 root video -$", ledger, re.M), "systemd does not make the folder of the machine's ledger", ledger)
    listing = run(prefix / "bin/gpuhal-probe", "--explain", env=clean_environment())
    expect("cpu:0" in listing, "the installed gpuhal-probe does not list cpu:0", listing)


def every_program_has_a_manual_page_with_its_options_and_gpuhal_7_has_every_variable(o):
    manuals = o.prefix / "share/man"
    for name in ("gpuhal-probe", "gpuhal-check", "gpuhal-bench", "gpuhal-lease", "gpuhal-place", "gpuhal-plot", "gpuhal-snapshot"):
        page = (manuals / f"man1/{name}.1").read_text(encoding="utf-8").replace("\\-", "-")
        options = set(re.findall(r"^ .*?(--[a-z-]+)", run(o.prefix / "bin" / name, "--help"), re.M))
        expect(len(options) > 0 or name == "gpuhal-plot", f"{name} --help lists no option")
        for option in options:
            expect(option in page, f"{name}(1) has no {option}", page)
    page = (manuals / "man7/gpuhal.7").read_text(encoding="utf-8")
    variables = re.findall(r"^(GPUHAL_\w+)", run(o.prefix / "bin/gpuhal-probe", "--env", env=clean_environment()), re.M)
    expect(len(variables) > 10, "gpuhal-probe --env lists no variables", str(variables))
    for variable in variables:
        expect(f".B {variable}\n" in page, f"gpuhal(7) has no {variable}", page)
    for path in (o.libdir / "gpuhal", o.prefix / "share/doc/gpuhal/docs"):
        expect(f".I {path}\n" in page and path.is_dir(), f"gpuhal(7) does not name {path}", page)


def installed_documents_link_only_to_what_is_installed(o):
    pages = sorted((o.prefix / "share/doc/gpuhal").rglob("*.md"))
    links = [(page, link) for page in pages
             for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))]
    expect(len(pages) > 10 and len(links) > 50, f"{len(pages)} documents with {len(links)} links are installed")
    dangling = [f"{page.relative_to(o.prefix)}: {link}" for page, link in links if not (page.parent / link).exists()]
    expect(not dangling, "these links lead nowhere in the installation:", "\n".join(dangling))


def the_installed_examples_build_as_one_folder(o):
    build = fresh(o.work / "examples")
    run(o.cmake, "-S", o.prefix / "share/doc/gpuhal/examples", "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={o.prefix}",
        f"-DCMAKE_C_COMPILER={o.cc}")
    run(o.cmake, "--build", build)
    output = run(build / "examples/first_copy", env=clean_environment())
    expect("bytes there and back right" in output, "the installed example does not bring its bytes back", output)
    output = run(build / "examples/model_cache", env=clean_environment())
    expect("12 requests, 11 loads" in output, "the installed cache of models does not load each model and block once", output)
    output = run(build / "examples/workers", "cpu", env=clean_environment(RANK="1", LOCAL_RANK="1"))
    expect("worker 1: cpu:0, on the processors near it: 65536 of 65536 values right" in output, "the installed example's worker computes nothing", output)
    listing = run(o.prefix / "bin/gpuhal-probe", "--all", env=clean_environment(GPUHAL_PLUGIN_PATH=str(build / "examples/vendor-plugin")))
    expect("example:0" in listing, "gpuhal-probe does not list the device of the example of a plugin", listing)


def a_cmake_project_uses_the_package(o):
    build = fresh(o.work / "consumer-cmake")
    run(o.cmake, "-S", o.source / "tests/install/consumer-cmake", "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={o.prefix}",
        f"-DCMAKE_C_COMPILER={o.cc}")
    run(o.cmake, "--build", build)
    check_consumer(build / "with-gpuhal", f"{o.libdir}/gpuhal/gpuhal-{{name}}.so", f"{o.libdir}/.*")
    # A statically linked program cannot find the plugins by the location of the shared gpuhal library.
    output = check_consumer(build / "with-gpuhal-static", f"{o.libdir}/gpuhal/gpuhal-{{name}}.so", f"{o.libdir}/gpuhal/gpuhal-.*",
                            clean_environment(GPUHAL_PLUGIN_PATH=f"{o.libdir}/gpuhal"))
    expect("libgpuhal.so" not in output, "the static program has loaded libgpuhal.so", output)


def flags_of_pkg_config(libdir):
    env = clean_environment(PKG_CONFIG_PATH=str(libdir / "pkgconfig"))
    return shlex.split(run("pkg-config", "--cflags", "--libs", "gpuhal", env=env)) + [f"-Wl,-rpath,{libdir}"]


def a_compiler_and_pkg_config_are_enough(o):
    program = fresh(o.work / "consumer-pkg-config") / "consumer"
    run(o.cc, *WARNINGS, o.source / "tests/install/consumer.c", *flags_of_pkg_config(o.libdir), "-o", program)
    check_consumer(program, f"{o.libdir}/gpuhal/gpuhal-{{name}}.so", f"{o.libdir}/.*")


def the_example_in_the_readme_compiles_and_runs(o):
    blocks = re.findall(r"```c\n(.*?)```", (o.source / "README.md").read_text(encoding="utf-8"), re.S)
    expect(len(blocks) == 1, f"README.md has {len(blocks)} C examples, this test knows what to do with one")
    folder = fresh(o.work / "readme")
    (folder / "example.c").write_text(blocks[0], encoding="utf-8")
    run(o.cc, *WARNINGS, folder / "example.c", *flags_of_pkg_config(o.libdir), "-o", folder / "example")
    output = run(folder / "example", env=clean_environment())
    expect("hello, device" in output, "the example does not bring its bytes back", output)


def a_vendor_builds_a_plugin_with_three_headers_and_a_compiler(o):
    folder = fresh(o.work / "vendor")
    (folder / "include/gpuhal").mkdir(parents=True)
    for header in ("types.h", "code.h", "plugin.h"):
        shutil.copy(o.prefix / "include/gpuhal" / header, folder / "include/gpuhal")
    for name in ("plugin.c", "example.h", "example.gpuhal"):
        shutil.copy(o.source / "examples/vendor-plugin" / name, folder)
    run(o.cc, *WARNINGS, "-shared", "-fPIC", "-Iinclude", "plugin.c", "-o", "gpuhal-example.so", cwd=folder)
    run(o.prefix / "bin/gpuhal-check", folder / "gpuhal-example.so", env=clean_environment())
    listing = run(o.prefix / "bin/gpuhal-probe", "--all", "--verify", env=clean_environment(GPUHAL_PLUGIN_PATH=str(folder)))
    expect("example:0" in listing, "gpuhal-probe does not list the vendor's device", listing)
    run(o.cc, *WARNINGS, "-I", folder, o.source / "tests/install/vendor_user.c", *flags_of_pkg_config(o.libdir), "-o", folder / "user")
    environment = clean_environment(GPUHAL_PLUGIN_PATH=str(folder), GPUHAL_OPTIONS="example.memory_mib=8;example.colour=red", GPUHAL_LOG="trace")
    output = run(folder / "user", env=environment)
    expect("8388608 bytes, of which 4096 are in use" in output, "the option or the extension of the example does not work", output)
    expect("warning: example: there is no option example.colour" in output, "an option that the example does not have is not warned of", output)
    expect("trace: example:0 allocate(kind 0, 4096 bytes" in output, "there is no trace of the example's slots", output)


def one_binary_serves_two_versions_of_the_abi(o):
    folder = fresh(o.work / "versions")
    plugin_h = (o.prefix / "include/gpuhal/plugin.h").read_text(encoding="utf-8")
    own = int(re.search(r"#define GPUHAL_ABI_MINOR (\d+)u", plugin_h).group(1))
    for minor in (4, 5):
        headers = folder / f"headers-0.{minor}" / "gpuhal"
        headers.mkdir(parents=True)
        for name in ("types.h", "code.h"):
            shutil.copy(o.prefix / "include/gpuhal" / name, headers)
        (headers / "plugin.h").write_text(plugin_h.replace(f"GPUHAL_ABI_MINOR {own}u", f"GPUHAL_ABI_MINOR {minor}u"), encoding="utf-8")
        run(o.cc, *WARNINGS, "-c", "-fPIC", "-fvisibility=hidden", "-I", headers.parent, "-DGPUHAL_PLUGIN_API=",
            f"-DGPUHAL_PLUGIN_QUERY=example_query_0_{minor}", o.source / "examples/vendor-plugin/plugin.c", "-o", folder / f"plugin-0.{minor}.o")
    run(o.cc, *WARNINGS, "-shared", "-fPIC", "-fvisibility=hidden", "-I", folder / "headers-0.5", o.source / "examples/vendor-plugin/versions.c",
        "plugin-0.4.o", "plugin-0.5.o", "-o", "gpuhal-example.so", cwd=folder)
    manifest = (o.source / "examples/vendor-plugin/example.gpuhal").read_text(encoding="utf-8")
    (folder / "example.gpuhal").write_text(re.sub(r"^abi = .*$", "abi = 0.4 0.5", manifest, flags=re.M), encoding="utf-8")
    run(o.prefix / "bin/gpuhal-check", folder / "gpuhal-example.so", env=clean_environment())
    listing = run(o.prefix / "bin/gpuhal-probe", "--all", "--verify", env=clean_environment(GPUHAL_PLUGIN_PATH=str(folder)))
    expect("example:0" in listing, "gpuhal-probe does not list the device of the plugin for two versions", listing)


def a_package_can_ask_where_plugins_and_manifests_go(o):
    env = clean_environment(PKG_CONFIG_PATH=str(o.libdir / "pkgconfig"))
    plugins = run("pkg-config", "--variable=plugindir", "gpuhal", env=env).strip()
    expect((Path(plugins) / "cpu.gpuhal").is_file(), "plugindir is not where the plugins lie", plugins)
    manifests = run("pkg-config", "--variable=vendordir", "gpuhal", env=env).strip()
    expect(manifests == "/usr/share/gpuhal/plugins.d", "vendordir is another directory than is searched", manifests)


def a_cpp17_program_uses_the_handles_of_gpuhal_hpp(o):
    if not o.cxx:
        raise Skipped("no C++ compiler here")
    program = fresh(o.work / "consumer-cpp") / "consumer"
    run(o.cxx, "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wold-style-cast", "-Werror",
        o.source / "tests/install/consumer.cpp", *flags_of_pkg_config(o.libdir), "-o", program)
    output = run(program, env=clean_environment())
    expect("device cpu:0 right\n" in output, "the C++ program moved no bytes on cpu:0", output)


def pythons_cffi_takes_the_installed_declarations_as_they_are(o):
    if subprocess.run([sys.executable, "-c", "import cffi"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise Skipped("no cffi for this Python (Debian: python3-cffi)")
    output = run(sys.executable, "-B", o.source / "tests/install/consumer.py", o.prefix / "share/gpuhal/gpuhal.cdef",
                 o.libdir / "libgpuhal.so", env=clean_environment())
    expect("device cpu:0 right\n" in output, "the Python program moved no bytes on cpu:0", output)


def files_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or path.is_file()}


def make_packages(o, work):
    """Returns the build tree's Debian packages by name, and the name of the library's package."""
    for program in ("dpkg-deb", "dpkg-shlibdeps", "file"):
        if not shutil.which(program):
            raise Skipped(f"no {program} here")
    run(Path(o.cmake).with_name("cpack"), "--config", o.build / "CPackConfig.cmake", "-B", work, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=none",
        cwd=work)
    packages = {path.name.partition("_")[0]: path for path in work.glob("*.deb")}
    library = next((name for name in packages if re.fullmatch(r"libgpuhal[\d.]+", name)), None)
    plugins = {f"gpuhal-plugin-{path.stem}" for path in o.source.glob("plugins/*/*.gpuhal")}
    expect(set(packages) == plugins | {library, "libgpuhal-dev", "gpuhal-tools"}, f"the packages are {sorted(packages)}")
    return packages, library


def check_dependencies(packages, library):
    for name, package in packages.items():
        depends = run("dpkg-deb", "--field", package, "Depends").strip()
        version = run("dpkg-deb", "--field", package, "Version").strip()
        expect((f"{library} (= {version})" in depends) == (name != library), f"{name} depends on {depends}")
        expect(("libc6 (" in depends) == (name != "libgpuhal-dev"), f"{name} depends on {depends}")
        expect(("libjansson4 (" in depends) == (name == "gpuhal-tools"), f"{name} depends on {depends}")


def every_installed_file_is_in_one_debian_package_and_they_work_together(o):
    work = fresh(o.work / "packages")
    packages, library = make_packages(o, work)
    check_dependencies(packages, library)
    owner = {}
    for name, package in packages.items():
        for folder in (fresh(work / name), work):
            run("dpkg-deb", "-x", package, folder / "root")
        for file in files_below(work / name / "root"):
            expect(file not in owner, f"{file} is in {owner.get(file)} and in {name}")
            owner[file] = name
    prefix = next((work / "root").rglob("bin/gpuhal-probe")).parent.parent
    both = files_below(prefix) ^ files_below(o.prefix)
    expect(not both, "these are either in the packages or in the installation, not in both:", "\n".join(sorted(both)))
    for end, name in (("/LICENSE", library), ("/gpuhal-helper", library), ("/libgpuhal.so", "libgpuhal-dev"),
                      ("/gpuhal.h", "libgpuhal-dev"), ("bin/gpuhal-check", "gpuhal-tools"), ("/cpu.gpuhal", "gpuhal-plugin-cpu")):
        found = [package for file, package in owner.items() if file.endswith(end)]
        expect(found == [name], f"a file {end} is in {found}, not in {name}")

    listing = run(prefix / "bin/gpuhal-probe", env=clean_environment())
    expect("cpu:0" in listing, "gpuhal-probe of the packages does not list cpu:0", listing)
    libdir = prefix / o.libdir.relative_to(o.prefix)
    run(o.cc, *WARNINGS, o.source / "tests/install/consumer.c", *flags_of_pkg_config(libdir), "-o", work / "consumer")
    check_consumer(work / "consumer", f"{libdir}/gpuhal/gpuhal-{{name}}.so", f"{libdir}/.*")


# To hide installed headers and libraries, the search is limited to a folder that does not exist.
BARE = ("-DCMAKE_FIND_ROOT_PATH=/nonexistent", "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY", "-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY")
WHOLE = ("-DCMAKE_FIND_ROOT_PATH=", "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=BOTH", "-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=BOTH")


def parent(o, build, definitions, *targets):
    """Configures the parent project and builds these targets."""
    run(o.cmake, "-S", o.source / "tests/install/parent", "-B", build, "-G", "Ninja", f"-DGPUHAL_SOURCE={o.source}",
        f"-DCMAKE_C_COMPILER={o.cc}", f"-DCMAKE_CXX_COMPILER={o.cxx}", *definitions)
    run(o.cmake, "--build", build, "--target", *targets)


def check_parent(build):
    plugins = f"{build}/gpuhal/lib/gpuhal"
    check_consumer(build / "dynamic", f"{plugins}/gpuhal-{{name}}.so", f"{build}/gpuhal/lib/.*", plugins=["cpu"])
    check_consumer(build / "static", f"{plugins}/gpuhal-{{name}}.so", f"{plugins}/gpuhal-.*", clean_environment(GPUHAL_PLUGIN_PATH=plugins),
                   ["cpu"])
    output = run(build / "cpp", env=clean_environment())
    expect("device cpu:0 right\n" in output, "the C++ program moved no bytes on cpu:0", output)


def a_parent_project_uses_the_sources_in_every_form_and_with_a_compiler_alone(o):
    """All forms share one build directory, so that the library is built once. Later only the parts that depend on
    GPUHAL_BUILTIN are rebuilt."""
    if not o.cxx:
        raise Skipped("no C++ compiler here")
    build, alone, prefix = fresh(o.work / "parent"), fresh(o.work / "alone"), fresh(o.work / "parent-installed")
    parent(o, build, [*BARE, "-DFORM=fetched"], "dynamic", "static", "cpp")
    check_parent(build)
    parent(o, build, ["-DFORM=subdirectory", "-DGPUHAL_TOOLS=ON"], "dynamic", "static", "cpp", "gpuhal/all")
    check_parent(build)
    plugins = sorted(path.name for path in (build / "gpuhal/lib/gpuhal").glob("*.gpuhal"))
    expect(plugins == ["cpu.gpuhal", "cuda.gpuhal", "rocm.gpuhal"], f"a compiler alone builds the plugins {plugins}")
    programs = os.listdir(build / "gpuhal/bin")
    expect(programs == ["gpuhal-check"], f"a compiler alone builds the programs {programs}")
    run(build / "gpuhal/bin/gpuhal-check", "--json", build / "gpuhal/lib/gpuhal/gpuhal-cpu.so", env=clean_environment())
    run(o.cmake, "--install", build, "--prefix", prefix)
    installed = sorted(path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if path.is_file())
    expect(installed == ["bin/dynamic"], f"the parent's installation has more than the parent's program: {installed}")
    parent(o, build, [*WHOLE, "-DGPUHAL_TOOLS=OFF", "-DGPUHAL_BUILTIN=cpu;opencl;vulkan"], "static")
    shutil.copy(build / "static", alone / "static")
    shutil.rmtree(build)
    check_consumer(alone / "static", "built in", "nothing")


COMPILERS = ("GPUHAL_GLSLANG", "GPUHAL_CLANG", "GPUHAL_NVCC", "GPUHAL_HIPCC")
HOST_FORMS = {"saxpy opencl-c": "2f2a2079", "saxpy host-library": "7f454c46", "linked opencl-c": "2f2a2079"}


def refused(*command):
    """Runs a command that must fail. Returns its output."""
    try:
        output = run(*command)
    except Failed as failure:
        return str(failure)
    raise Failed(f"{shlex.join(map(str, command))} did not fail:\n{output}")


def program_sources(o, name):
    """Creates a folder with tests/install/programs and the kernel of docs/programs.md."""
    folder = fresh(o.work / f"{name}-source")
    shutil.copytree(o.source / "tests/install/programs", folder, dirs_exist_ok=True)
    page = (o.source / "docs/programs.md").read_text(encoding="utf-8")
    for file, text in re.findall(r"^`(saxpy\.\w+)`[^\n]*\n\n```\w+\n(.*?)```", page, re.S | re.M):
        (folder / file).write_text(text, encoding="utf-8")
    return folder


def program_forms(o, folder, build, *definitions):
    """Builds the programs of a folder. Returns CMake's lines about programs, and the first bytes of the code in each
    format."""
    said = run(o.cmake, "-S", folder, "-B", build, "-G", "Ninja", f"-DCMAKE_C_COMPILER={o.cc}", *definitions)
    run(o.cmake, "--build", build, "--target", "programs")
    output = run(build / "programs")
    expect("linked host-function saxpy: 21 42 63, no more\n" in output, "the function that is linked in is not right", output)
    lines = [line.split() for line in output.splitlines() if "host-function" not in line]
    expect(all(int(line[2]) > 100 for line in lines), "a form has next to no bytes", output)
    left_out = re.findall(r"^-- gpuhal: program saxpy: (.*) left out: (.*) was not found$", said, re.M)
    return left_out, {f"{line[0]} {line[1]}": line[3] for line in lines}


def check_forms(left_out, forms):
    """Checks for each format that its code exists, or that a line names the missing compiler."""
    rows = {"saxpy spirv": "03022307", "saxpy fatbin": "50ed55ba", "saxpy ptx": "2f2f0a2f", "saxpy hip-fatbin": None}
    lacking = {"glslangValidator": ["saxpy spirv"], "nvcc": ["saxpy fatbin", "saxpy ptx"], "hipcc": ["saxpy hip-fatbin"], "clang": []}
    for _, compiler in left_out:
        for row in lacking[compiler]:
            del rows[row]
    expect(set(forms) == set(rows) | set(HOST_FORMS), f"the forms are {forms}, left out: {left_out}")
    for row, first in {**rows, **HOST_FORMS}.items():
        expect(first in (None, forms[row]), f"{row} begins with {forms[row]}, not {first}")


def a_project_builds_one_program_for_all_devices_and_again_when_a_source_changes(o):
    folder, build = program_sources(o, "programs"), fresh(o.work / "programs")
    package = f"-DCMAKE_PREFIX_PATH={o.prefix}"
    left_out, forms = program_forms(o, folder, build, package)
    check_forms(left_out, forms)
    for suffix, compiler in (("cl", "clang"), ("comp", "glslangValidator"), ("cu", "nvcc"), ("c", None)):
        if any(compiler == missing for _, missing in left_out):
            continue
        source = folder / f"saxpy.{suffix}"
        text = source.read_text(encoding="utf-8")
        source.write_text(text + "\nfloat mistake = nonsense;\n", encoding="utf-8")
        said = refused(o.cmake, "--build", build, "--target", "programs")
        expect("nonsense" in said and source.name in said, f"the build does not say what is wrong with {source.name}", said)
        source.write_text(text, encoding="utf-8")
    run(o.cmake, "--build", build, "--target", "programs")
    (folder / "saxpy.cl").write_text("kernel void changed(global int *x) { *x = 1; }" + " " * 100, encoding="utf-8")
    run(o.cmake, "--build", build, "--target", "programs")
    output = run(build / "programs")
    expect("saxpy opencl-c 146 6b65726e\n" in output and "linked opencl-c 146 6b65726e\n" in output, "a source that changed was not taken", output)


def a_program_without_any_compiler_of_kernels_has_its_forms_for_processors_and_opencl(o):
    left_out, forms = program_forms(o, program_sources(o, "programs-alone"), fresh(o.work / "programs-alone"),
                                    f"-DCMAKE_PREFIX_PATH={o.prefix}", *(f"-D{compiler}=OFF" for compiler in COMPILERS))
    expect(sorted(compiler for _, compiler in left_out) == ["clang", "glslangValidator", "hipcc", "nvcc"], f"left out: {left_out}")
    expect(forms == HOST_FORMS, f"the forms are {forms}")


def a_project_with_gpuhal_inside_builds_a_program_too(o):
    build = fresh(o.work / "programs-parent")
    check_forms(*program_forms(o, program_sources(o, "programs-parent"), build, "-DFORM=subdirectory", f"-DGPUHAL_SOURCE={o.source}"))
    shutil.rmtree(build)


WRONG_PROGRAMS = (
    ("wrong SOURCES", "SOURCES is missing or empty"),
    ("wrong", "SOURCES is missing or empty"),
    ("wrong SOURCES a.cl b.cl", "b.cl is a second .cl file"),
    ("wrong SOURCES a.txt", "is not a .comp"),
    ("wrong SOURCES a.cl nowhere.c", "there is no file"),
    ("wrong HOST a SOURCES a.cl", "unknown arguments: HOST a."),
    ("wrong SOURCES a.c HOST_FUNCTION a", "unknown arguments: HOST_FUNCTION."),
    ("wrong SOURCES a.cl HOST_FUNCTIONS a", "HOST_FUNCTIONS names a, and no .c file"),
    ("wrong SOURCES a.c HOST_FUNCTIONS a-b", "a-b is not the name of a function"),
    ("wrong SOURCES a.c HOST_FUNCTIONS", "nothing stands behind HOST_FUNCTIONS"),
    ("9wrong SOURCES a.cl", "9wrong: the name of a program"),
    ("taken SOURCES a.cl", "a target of this name already"),
    ("wrong SOURCES a.comp CUDA_ARCHITECTURES DEPENDS", "no compiler for any of its sources"),
)


def wrong_programs_are_refused_when_the_project_is_configured(o):
    for arguments, words in WRONG_PROGRAMS:
        folder = fresh(o.work / "programs-wrong")
        for name in ("a.cl", "b.cl", "a.c", "a.comp", "a.txt"):
            (folder / name).touch()
        (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.20)\nproject(wrong LANGUAGES C)\nfind_package(gpuhal REQUIRED)\n"
                                               f"add_custom_target(taken)\ngpuhal_add_program({arguments})\n", encoding="utf-8")
        said = " ".join(refused(o.cmake, "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_C_COMPILER={o.cc}",
                                "-DGPUHAL_GLSLANG=OFF", f"-DCMAKE_PREFIX_PATH={o.prefix}").split())
        expect(words in said, f"gpuhal_add_program({arguments}) does not say \"{words}\"", said)


def tests_without_the_programs_run_none_of_them(o):
    build = fresh(o.work / "without-programs")
    run(o.cmake, "-S", o.source, "-B", build, "-G", "Ninja", f"-DCMAKE_C_COMPILER={o.cc}", f"-DPython3_EXECUTABLE={sys.executable}",
        "-DGPUHAL_TOOLS=OFF")
    listed = "".join(path.read_text(encoding="utf-8") for path in build.rglob("CTestTestfile.cmake"))
    expect(listed.count("add_test(") > 1000, "most tests have gone with the programs", listed[:1000])
    expect(f"{build}/bin/" not in listed, "some test runs a program that is not built", listed)
    shutil.rmtree(build)


TESTS = (a_build_tree_installs_into_an_empty_prefix,
         every_program_has_a_manual_page_with_its_options_and_gpuhal_7_has_every_variable, installed_documents_link_only_to_what_is_installed,
         the_installed_examples_build_as_one_folder, a_cmake_project_uses_the_package, a_compiler_and_pkg_config_are_enough,
         the_example_in_the_readme_compiles_and_runs, a_vendor_builds_a_plugin_with_three_headers_and_a_compiler,
         one_binary_serves_two_versions_of_the_abi, a_package_can_ask_where_plugins_and_manifests_go,
         a_cpp17_program_uses_the_handles_of_gpuhal_hpp, pythons_cffi_takes_the_installed_declarations_as_they_are,
         every_installed_file_is_in_one_debian_package_and_they_work_together,
         a_project_builds_one_program_for_all_devices_and_again_when_a_source_changes,
         a_program_without_any_compiler_of_kernels_has_its_forms_for_processors_and_opencl, a_project_with_gpuhal_inside_builds_a_program_too,
         wrong_programs_are_refused_when_the_project_is_configured,
         a_parent_project_uses_the_sources_in_every_form_and_with_a_compiler_alone, tests_without_the_programs_run_none_of_them)


def main():
    tests = {test.__name__: test for test in TESTS}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("test", choices=tests)
    for name in ("source", "build", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--cxx", required=True, help="empty: there is none")
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--libdir", required=True, help="CMAKE_INSTALL_LIBDIR")
    options = parser.parse_args()
    options.prefix = options.work / "installed/prefix"
    options.libdir = options.prefix / options.libdir
    try:
        tests[options.test](options)
    except Failed as failure:
        print(failure)
        return 1
    except Skipped as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
