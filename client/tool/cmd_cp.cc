// SPDX-License-Identifier: Apache-2.0
// nfs-rdma cp.
#include <sys/stat.h>

#include <cstdio>

#include "client/tool/arguments.h"
#include "client/tool/commands.h"
#include "client/tool/copy.h"
#include "client/tool/format.h"

namespace nfsrdma::tool {

int run_cp(const Words& words) {
  Arguments arguments("cp", "[-r] [-p] [-v] SOURCE... TARGET",
                      "Copies files and trees between servers and local directories.\n"
                      "SOURCE and TARGET are URLs or paths.");
  arguments.add()("recursive,r", "directories with everything in them")(
      "preserve,p", "keep modes and times, and owners where permitted")(
      "verbose,v", "say at the end what was copied")("no-progress", "no progress bar");
  if (auto code = arguments.parse(words, 2, 1000)) return *code;
  auto driver = LoopDriver::create();
  if (!driver.ok()) {
    complain("cp", driver.error().message());
    return kExitFailure;
  }
  std::shared_ptr<LoopDriver> shared = std::move(*driver);
  CopyOptions options;
  options.recursive = arguments.has("recursive");
  options.preserve = arguments.has("preserve");
  options.umask = ::umask(0);
  ::umask(options.umask);

  std::string error;
  Place target;
  const std::vector<std::string>& operands = arguments.operands();
  if (!open_place(operands.back(), shared, &target, &error)) {
    complain("cp", error);
    return kExitFailure;
  }
  if (operands.size() > 2) {
    auto status = shared->run(target.side->status(target.path, true));
    if (!status.ok() || !S_ISDIR(status->st_mode)) {
      complain("cp", target.shown + ": several sources need a directory as target");
      return kExitFailure;
    }
  }
  bool all_well = true;
  std::set<std::string> links;
  for (std::size_t i = 0; i + 1 < operands.size(); ++i) {
    Place source;
    if (!open_place(operands[i], shared, &source, &error)) {
      complain("cp", error);
      all_well = false;
      continue;
    }
    Progress progress(!arguments.has("no-progress"));
    Copier copier(options, progress, links);
    all_well = shared->run(copier.copy(source, target)) && all_well;
    progress.clear();
    if (arguments.has("verbose")) {
      std::printf("%s: %llu files, %s\n", source.shown.c_str(),
                  static_cast<unsigned long long>(copier.files()),
                  bytes_text(static_cast<double>(copier.bytes())).c_str());
    }
  }
  return all_well ? kExitOk : kExitFailure;
}

}  // namespace nfsrdma::tool
