// SPDX-License-Identifier: Apache-2.0
// The kernel's own modules for NFS over RDMA. nfs-rdma needs none of them; the kernel's NFS client
// and server on this host do, and a vendor's driver package may have taken or broken them.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "client/doctor/host_checks.h"

namespace nfsrdma::doctor {

namespace {

namespace fs = std::filesystem;

constexpr const char* kOurs = "nfs-rdma itself needs no such module";
constexpr int kMostFolders = 20000;  // of a tree of modules

/// Folders beside kernel/ where modules go that take precedence over it.
constexpr const char* kForeignFolders[] = {"updates", "extra", "weak-updates", "override"};

bool is_module(const std::string& file, std::string_view name) {
  if (!file.starts_with(name)) return false;
  const std::string_view ending = std::string_view(file).substr(name.size());
  return ending == ".ko" || ending == ".ko.xz" || ending == ".ko.zst" || ending == ".ko.gz";
}

/// Path of a module below a folder of /lib/modules/RELEASE; "" when it is not there.
std::string find_module(const HostView& host, std::string_view folder, std::string_view name) {
  const std::string base = "/lib/modules/" + host.kernel_release + "/" + std::string(folder);
  std::error_code error;
  int seen = 0;
  for (fs::recursive_directory_iterator it(host.path(base), error), end;
       !error && it != end && ++seen < kMostFolders; it.increment(error)) {
    if (is_module(it->path().filename().string(), name)) {
      return it->path().string().substr(host.root.size());
    }
  }
  return "";
}

std::string find_foreign(const HostView& host, std::string_view name) {
  for (const char* folder : kForeignFolders) {
    if (std::string path = find_module(host, folder, name); !path.empty()) return path;
  }
  return "";
}

bool loaded(const HostView& host, const std::string& module) {
  return host.exists("/sys/module/" + module);
}

bool built_in(const HostView& host, std::string_view module) {
  const std::string list = host.text("/lib/modules/" + host.kernel_release + "/modules.builtin");
  return list.find("/" + std::string(module) + ".ko") != std::string::npos;
}

/// Vendors' packages put a module of this name in the kernel's place that does nothing, where they
/// are installed without NFS: what gives NFS a transport needs sunrpc.
bool file_is_placeholder(const HostView& host, const std::string& path) {
  const std::string base = "/lib/modules/" + host.kernel_release + "/";
  if (path.empty() || built_in(host, "sunrpc")) return false;
  const std::string start = path.substr(base.size()) + ":";
  for (const std::string& line : lines_of(host.text(base + "modules.dep"))) {
    if (line.starts_with(start)) return line.find("/sunrpc.ko") == std::string::npos;
  }
  return false;  // depmod has not run
}

/// The same of the one that is loaded. What is built in has no initstate.
bool loaded_is_placeholder(const HostView& host) {
  const auto is_module = [&](const char* name) {
    return host.exists(std::string("/sys/module/") + name + "/initstate");
  };
  return is_module("rpcrdma") && (is_module("sunrpc") || !loaded(host, "sunrpc")) &&
         !host.exists("/sys/module/sunrpc/holders/rpcrdma");
}

/// What tells that a vendor's RDMA stack is installed; "" when nothing does.
std::string vendor_stack(const HostView& host) {
  if (loaded(host, "mlx_compat")) return "module mlx_compat is loaded (MLNX_OFED, DOCA)";
  if (std::string core = find_foreign(host, "ib_core"); !core.empty()) return core;
  for (const char* sign : {"/etc/infiniband/openib.conf", "/usr/bin/ofed_info"}) {
    if (host.exists(sign)) return sign;
  }
  return "";
}

/// Mounts of the kernel's client by RDMA.
std::vector<std::string> kernel_mounts(const HostView& host) {
  std::vector<std::string> mounts;
  for (const std::string& line : lines_of(host.text("/proc/self/mounts"))) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() > 3 && words[2].starts_with("nfs") &&
        ("," + words[3] + ",").find(",proto=rdma") != std::string::npos) {
      mounts.push_back(words[1]);
    }
  }
  return mounts;
}

bool kernel_has_rpcrdma(const HostView& host) {
  return built_in(host, "rpcrdma") || !find_module(host, "kernel/net/sunrpc", "rpcrdma").empty();
}

const Remedy kVendorsModule = {
    "use mount.nfs-rdma and nfs-rdmad, or install the vendor's module:",
    "mlnxofedinstall --with-nfsrdma --add-kernel-support    # MLNX_OFED",
    "apt install mlnx-nfsrdma-dkms                          # DOCA, Debian and Ubuntu",
    "dnf install kmod-mlnx-nfsrdma                          # DOCA, RHEL"};

void look_at_foreign(const std::string& foreign, bool placeholder, const std::string& vendor,
                     CheckResult* result) {
  constexpr const char* kFails =
      "'mount -o rdma' of the kernel and knfsd over RDMA fail on this host";
  if (placeholder) {
    result->warning(fmt::format("rpcrdma for this kernel is an empty one of a vendor's package{}: "
                                "{}; {}",
                                foreign.empty() ? "" : ", " + foreign, kFails, kOurs),
                    kVendorsModule);
  } else if (!foreign.empty()) {
    result->note(fmt::format("rpcrdma for this kernel comes from elsewhere: {}; the kernel's NFS "
                             "client and server use that; {}",
                             foreign, kOurs),
                 {"modinfo rpcrdma    # says whose it is"});
  } else if (!vendor.empty()) {
    result->warning(fmt::format("a vendor's RDMA stack is installed ({}) without an rpcrdma that "
                                "fits: {}; {}",
                                vendor, kFails, kOurs),
                    kVendorsModule);
  }
}

}  // namespace

CheckResult check_modules(const HostView& host) {
  CheckResult result;
  const std::string vendor = vendor_stack(host);
  const std::string foreign = find_foreign(host, "rpcrdma");
  const std::string taint = host.line("/sys/module/rpcrdma/taint");
  const bool placeholder = file_is_placeholder(host, foreign) || loaded_is_placeholder(host);
  look_at_foreign(foreign, placeholder, vendor, &result);
  if (loaded(host, "rpcrdma") && !placeholder) {
    const bool outside = taint.find('O') != std::string::npos;
    const std::string seen = fmt::format("rpcrdma is loaded{}",
                                         outside ? ", one from outside of the kernel's tree" : "");
    outside&& foreign.empty() ? result.note(seen + "; " + kOurs) : result.ok(seen);
  } else if (!host.exists("/lib/modules/" + host.kernel_release)) {
    result.skipped(fmt::format("there is no /lib/modules/{}, as in containers; {}",
                               host.kernel_release, kOurs));
  } else if (foreign.empty() && vendor.empty() && !placeholder) {
    if (kernel_has_rpcrdma(host)) {
      result.ok(std::string("the kernel's rpcrdma is there, and not loaded; ") + kOurs);
    } else {
      result.note(fmt::format("kernel {} has no rpcrdma: its own NFS client and server cannot use "
                              "RDMA on this host; {}",
                              host.kernel_release, kOurs),
                  {"apt install linux-image-amd64    # the cloud flavour of Debian lacks it",
                   "dnf install kernel-modules-extra # Fedora, RHEL"});
    }
  }
  if (const auto mounts = kernel_mounts(host); !mounts.empty()) {
    result.ok("the kernel's client has mounted by RDMA: " + joined(mounts));
  }
  return result;
}

}  // namespace nfsrdma::doctor
