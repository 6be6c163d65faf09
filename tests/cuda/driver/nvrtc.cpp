// NVRTC: compiles what it is given by g++, with the shim of the tests, into a library that stands for a cubin.
#include "device.h"
#include "program.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

using namespace device;

namespace {

// As nvrtc.h numbers them.
enum Code { DONE = 0, BAD_INPUT = 3, BAD_PROGRAM = 4, BAD_OPTION = 5, NOT_COMPILED = 6, INTERNAL = 11 };

struct Source {
    std::string text, log, cubin;
};

Table<Source> &programs = *new Table<Source>;

std::string read_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string in_quotes(const std::string &text) { return "'" + text + "'"; }

// The kernels of a text, as `launch.h` wants them.
std::string kernels_of(const std::string &text) {
    static const std::regex kernel("^KERNEL\\([^)]*\\)\\s+(\\w+)\\(", std::regex::multiline);
    std::string list = "KERNELS_OF_PROGRAM(each)=";
    for (std::sregex_iterator found(text.begin(), text.end(), kernel), end; found != end; ++found) {
        list += "each(" + found->str(1) + ") ";
    }
    return list;
}

int compile(Source &source, const std::string &architecture, const std::string &macros) {
    std::string compiler = setting("CXX"), sources = setting("STAND_IN_SOURCES");
    std::string place = std::filesystem::temp_directory_path() / "stand-in-XXXXXX";
    if (sources.empty() || !mkdtemp(place.data())) return INTERNAL;
    std::string library = place + "/kernels.so", log = place + "/log";
    std::ofstream(place + "/kernels.cu") << source.text;
    // What is aligned to 16 bytes by its type must be; else the instruction is illegal.
    std::string command = in_quotes(compiler.empty() ? "g++" : compiler) +
        " -std=c++17 -O2 -U_FORTIFY_SOURCE -Wno-unknown-pragmas -fPIC -shared -fvisibility=hidden"
        " -fsanitize=alignment -fsanitize-undefined-trap-on-error" + macros +
        " -D" + in_quotes(kernels_of(source.text)) + " -I " + in_quotes(place) + " -o " + in_quotes(library) + " " +
        in_quotes(sources + "/kernels.cpp") + " 2>" + in_quotes(log);
    bool compiled = system(command.c_str()) == 0;
    source.log = read_file(log);
    std::string bytes = read_file(library);
    std::filesystem::remove_all(place);
    if (!compiled) return NOT_COMPILED;
    Cubin head = {CUBIN_MAGIC, {}, bytes.size()};
    strncpy(head.architecture, architecture.c_str(), sizeof head.architecture - 1);
    source.cubin = std::string((const char *)&head, sizeof head) + bytes;
    return DONE;
}

}  // namespace

extern "C" {

int nvrtcVersion(int *major, int *minor) {
    CALL(NOTHING);
    *major = 13, *minor = 0;
    return DONE;
}

int nvrtcCreateProgram(void **program, const char *text, const char *, int headers, const char *const *, const char *const *) {
    CALL(NOTHING);
    if (headers != 0) return BAD_INPUT;
    *program = programs.add(std::make_shared<Source>(Source{text, "", ""}));
    gpu.held["programs"]++;
    return DONE;
}

int nvrtcDestroyProgram(void **program) {
    CALL(NOTHING);
    if (!programs.remove(*program)) return BAD_PROGRAM;
    *program = nullptr;
    gpu.held["programs"]--;
    return DONE;
}

int nvrtcCompileProgram(void *program, int count_of_options, const char *const *options) {
    static const std::set<std::string> known = {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"};
    device::Call call(__func__, device::NOTHING);
    std::shared_ptr<Source> source = programs.find(program);
    if (!source) return BAD_PROGRAM;
    std::string architecture, macros;
    for (int i = 0; i < count_of_options; i++) {
        std::string option = options[i], head = "--gpu-architecture=";
        if (option.compare(0, head.size(), head) == 0) {
            architecture = option.substr(head.size());
        } else if (option.compare(0, 2, "-D") == 0) {
            macros += " " + in_quotes(option);
        } else if (option != "--std=c++17") {
            return BAD_OPTION;
        }
    }
    if (!known.count(architecture)) return BAD_OPTION;
    if (call.code) {
        source->log = "drift.cu(1): warning: of no matter\n\nprelude.cu(7): error: as it was wanted\n";
        return call.code;
    }
    count("compilations");
    return compile(*source, architecture, macros);
}

int nvrtcGetProgramLogSize(void *program, size_t *bytes) {
    CALL(NOTHING);
    std::shared_ptr<Source> source = programs.find(program);
    if (!source) return BAD_PROGRAM;
    *bytes = source->log.size() + 1;
    return DONE;
}

int nvrtcGetProgramLog(void *program, char *log) {
    CALL(NOTHING);
    std::shared_ptr<Source> source = programs.find(program);
    if (!source) return BAD_PROGRAM;
    strcpy(log, source->log.c_str());
    return DONE;
}

int nvrtcGetCUBINSize(void *program, size_t *bytes) {
    CALL(NOTHING);
    std::shared_ptr<Source> source = programs.find(program);
    if (!source || source->cubin.empty()) return BAD_PROGRAM;
    *bytes = source->cubin.size();
    return DONE;
}

int nvrtcGetCUBIN(void *program, char *cubin) {
    CALL(NOTHING);
    std::shared_ptr<Source> source = programs.find(program);
    if (!source || source->cubin.empty()) return BAD_PROGRAM;
    memcpy(cubin, source->cubin.data(), source->cubin.size());
    return DONE;
}

}  // extern "C"
