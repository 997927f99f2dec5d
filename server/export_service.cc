// SPDX-License-Identifier: Apache-2.0
#include "server/export_service.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "rpcrdma/base/json_writer.h"
#include "rpcrdma/base/log.h"
#include "server/export_mounts.h"
#include "server/export_overlay.h"

namespace nfsrdma {

namespace {

void write_problems(JsonWriter& json, const char* key, const ConfigProblems& problems) {
  json.key(key);
  json.begin_array();
  for (const ConfigProblem& problem : problems)
    json.value(problem.text());
  json.end_array();
}

/// What reading everything again has found.
struct Reading {
  ExportService::Report report;
  Settings settings;
  std::vector<ExportEntry> entries;
};

void append(ConfigProblems& to, const ConfigProblems& from) {
  to.insert(to.end(), from.begin(), from.end());
}

Reading read_everything(const CommandLine& line) {
  Reading out;
  out.settings = make_settings(line);
  append(out.report.problems, out.settings.usage_problems);
  append(out.report.problems, out.settings.problems);
  append(out.report.notices, out.settings.notices);
  // Exports by a configuration that is wrong may be those of another file.
  if (!out.report.problems.empty()) return out;
  ParsedExports exports = load_exports(out.settings);
  append(out.report.problems, exports.problems);
  append(out.report.notices, exports.notices);
  out.report.ok = exports.ok();
  out.entries = std::move(exports.entries);
  return out;
}

void log_report(const ExportService::Report& report) {
  for (const ConfigProblem& problem : report.problems)
    log_error("{}", problem.text());
  for (const ConfigProblem& notice : report.notices)
    log_notice("{}", notice.text());
  for (const std::string& line : report.changes)
    log_notice("{}", line);
  if (!report.ok) {
    log_error("configuration and exports stay as they were");
  } else if (report.changes.empty()) {
    log_notice("configuration and exports were read again: nothing changed");
  } else {
    log_notice("configuration and exports were read again, changes: {}", report.changes.size());
  }
}

/// The first that was served and, though it is in the exports still, is not any more; or empty.
template <typename Served>
std::string not_served_any_more(const Served& served, const ExportsInForce& now) {
  for (const ExportEntry& entry : now.entries) {
    if (served.contains(entry.path) && !is_in_force(now, entry.path)) return entry.path;
  }
  return {};
}

std::string refused_without_mount(const std::string& path, const std::string& where) {
  return fmt::format("export {}: nothing is mounted at {}: clients that need that are refused",
                     path, where);
}

bool has_path(const std::vector<ExportEntry>& entries, const std::string& path) {
  return std::ranges::find(entries, path, &ExportEntry::path) != entries.end();
}

/// Those of `now` that nobody was told of yet.
ConfigProblems new_problems(const ConfigProblems& known, const ConfigProblems& now) {
  ConfigProblems out;
  for (const ConfigProblem& problem : now) {
    if (std::ranges::find(known, problem.message, &ConfigProblem::message) == known.end())
      out.push_back(problem);
  }
  return out;
}

}  // namespace

std::string report_document(const ExportService::Report& report) {
  JsonWriter json;
  json.begin_object();
  json.field("version", 1);
  json.field("done", report.ok);
  json.list("changes", report.changes);
  json.list("left_out", report.left_out);
  write_problems(json, "problems", report.problems);
  write_problems(json, "notices", report.notices);
  json.end_object();
  return json.take();
}

ExportService::ExportService(EventLoop& loop, ExportTable& table, CommandLine line,
                             Settings settings, Hooks hooks)
    : loop_(loop),
      table_(table),
      line_(std::move(line)),
      hooks_(std::move(hooks)),
      settings_(std::move(settings)),
      mounts_(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)) {
  // Without it what is mounted later is served after a reload, as it says.
  if (mounts_ && !loop_.add(mounts_.get(), EPOLLPRI, *this).ok()) mounts_.reset();
}

ExportService::~ExportService() {
  *alive_ = false;
  if (mounts_) loop_.remove(mounts_.get(), *this);
  stop(std::chrono::steady_clock::now());
  if (thread_.joinable()) thread_.join();
}

void ExportService::begin_end() {
  std::lock_guard lock(mutex_);
  ending_ = true;
  changed_.notify_all();
}

bool ExportService::stop(std::chrono::steady_clock::time_point deadline) {
  begin_end();
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return !running_; });
}

void ExportService::run_aside(Job job) {
  {
    std::lock_guard lock(mutex_);
    if (ending_) return;
    jobs_.push(std::move(job));
  }
  changed_.notify_all();
}

/// Where a process may have no more threads the start says so; with the first job, later, that
/// would be the end of a server that is in use.
bool ExportService::start_thread(Report* report) {
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& error) {
    report->ok = false;
    report->problems.push_back(
        {"", 0, 0, fmt::format("starting a thread for the exports: {}", error.what())});
  }
  return report->ok;
}

void ExportService::work() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
      if (ending_) return;
      job = std::move(jobs_.front());
      jobs_.pop();
      running_ = true;
    }
    loop_.post([alive = alive_, finish = job()] {
      if (*alive) finish();
    });
    {
      std::lock_guard lock(mutex_);
      running_ = false;
    }
    changed_.notify_all();
  }
}

ExportsInForce ExportService::open(std::vector<ExportEntry> entries, ExportTable::Keep keep) {
  ExportsInForce out;
  table_.reload(entries, &out.problems, keep);
  // Also lets go of the snapshot that this thread knew before.
  served_.clear();
  for (const auto& entry : table_.current().exports) {
    out.open.push_back(entry->path);
    served_[entry->path] = {entry->top->device, entry->top->mount_id, entry->top->root_inode,
                            entry->unmounted};
  }
  waiting_.clear();
  for (const ExportEntry& entry : entries) {
    if (std::ranges::find(out.open, entry.path) == out.open.end() && !open_export_place(entry).ok())
      waiting_.insert(entry.path);
  }
  entries_ = entries;
  problems_ = out.problems;
  out.entries = std::move(entries);
  return out;
}

void ExportService::show(const ExportsInForce& fresh) {
  shown_ = fresh;
  if (hooks_.on_exports) hooks_.on_exports(shown_.entries);
}

ExportService::Report ExportService::load() {
  ParsedExports parsed = load_exports(settings_);
  Report report{parsed.ok(), {}, {}, std::move(parsed.problems), std::move(parsed.notices)};
  if (!report.ok) return report;
  show(open(std::move(parsed.entries)));
  if (!start_thread(&report)) return report;
  report.problems = shown_.problems;
  for (const ExportEntry& entry : shown_.entries) {
    const auto served = served_.find(entry.path);
    if (served == served_.end()) continue;
    for (const std::string& where : served->second.unmounted)
      report.notices.push_back(
          {entry.file, entry.line, 0, refused_without_mount(entry.path, where)});
  }
  // A directory of the file may be mounted later and come with SIGHUP; one of the command line was
  // meant to be there.
  report.ok = std::ranges::none_of(report.problems, [](const ConfigProblem& problem) {
    return problem.file == kCommandLineExport;
  });
  return report;
}

void ExportService::reload(std::function<void(const Report&)> done) {
  {
    std::lock_guard lock(mutex_);
    reload_asked_.push_back(std::move(done));
    if (std::exchange(reload_queued_, true)) return;
  }
  run_aside([this] { return read_again(); });
}

ExportService::Finish ExportService::read_again() {
  std::vector<std::function<void(const Report&)>> asked;
  {
    // What is asked for from here on may be about newer files.
    std::lock_guard lock(mutex_);
    reload_queued_ = false;
    asked.swap(reload_asked_);
  }
  auto reading = std::make_shared<Reading>(read_everything(line_));
  auto opened = std::make_shared<ExportsInForce>();
  if (reading->report.ok) {
    reading->report.changes = export_changes(entries_, reading->entries);
    const std::vector<ExportEntry> before = entries_;
    const auto served = served_;
    *opened = open(std::move(reading->entries));
    tell_of_places(before, served, *opened, &reading->report);
    append(reading->report.problems, opened->problems);
  }
  return [this, reading, opened, asked] {
    Report& report = reading->report;
    if (report.ok) {
      ReloadPlan plan = plan_reload(settings_, reading->settings);
      report.changes.insert(report.changes.begin(), plan.lines.begin(), plan.lines.end());
      settings_ = plan.settings;
      show(*opened);
      if (hooks_.on_settings && !plan.apply.empty()) hooks_.on_settings(plan);
    }
    log_report(report);
    for (const auto& done : asked) {
      if (done) done(report);
    }
  };
}

void ExportService::on_fd_ready(std::uint32_t) {
  // What is being looked at now may have been mounted behind the look: then once more.
  look_again_ = std::exchange(looking_at_mounts_, true);
  if (look_again_) return;
  run_aside([this] { return look_at_mounts(); });
}

/// What the texts do not say: exports whose directories came, went or are others now.
void ExportService::tell_of_places(const std::vector<ExportEntry>& before,
                                   const std::map<std::string, ServedPlace>& served,
                                   const ExportsInForce& now, Report* report) {
  std::set<std::uint64_t> left;
  for (const ExportEntry& entry : now.entries) {
    const std::string& path = entry.path;
    const auto was = served.find(path);
    const auto is = served_.find(path);
    if (was != served.end() && is == served_.end()) {
      report->left_out.push_back(path);
      report->changes.push_back(fmt::format("export {}: left out: {}", path,
                                            why_not_in_force(now, path).substr(path.size() + 2)));
    } else if (was == served.end() && is != served_.end() && has_path(before, path)) {
      report->changes.push_back(fmt::format("export {}: is there now", path));
    } else if (was != served.end() && is != served_.end() && !was->second.is_at(is->second)) {
      left.insert(was->second.device);
      report->changes.push_back(
          was->second.mount_id != is->second.mount_id || was->second.device != is->second.device
              ? fmt::format("export {}: another file system is there now, and served", path)
              : fmt::format("export {}: another directory is there now, and served", path));
    }
    if (was == served.end() || is == served_.end()) continue;
    for (const std::string& where : is->second.unmounted) {
      if (!was->second.unmounted.contains(where))
        report->changes.push_back(refused_without_mount(path, where));
    }
    for (const std::string& where : was->second.unmounted) {
      if (!is->second.unmounted.contains(where)) {
        report->changes.push_back(fmt::format(
            "export {}: {} is mounted: clients that need that are served", path, where));
      }
    }
  }
  if (!left.empty() && hooks_.on_left) hooks_.on_left(left);
}

/// Something was mounted or unmounted: an export that was left out may be there now, one that
/// asks for a mount have lost it, or what is at its path have another file system over it. That is
/// what whoever mounted it means, and what reading everything again would find.
ExportService::Finish ExportService::look_at_mounts() {
  bool differs = false;
  for (const ExportEntry& entry : entries_) {
    Result<ExportPlace> place = open_export_place(entry);
    const auto served = served_.find(entry.path);
    if (!place.ok()) {
      differs = differs || (served != served_.end() && is_absent(place.error()));
    } else if (served != served_.end()) {
      differs = differs || place->unmounted != served->second.unmounted ||
                !is_same_mount(place->root.get(), served->second.device, served->second.mount_id);
    } else {
      differs = differs || waiting_.contains(entry.path);
    }
  }
  auto report = std::make_shared<Report>();
  auto opened = std::make_shared<ExportsInForce>();
  if (differs) {
    const std::vector<ExportEntry> before = entries_;
    const auto served = served_;
    *opened = open(before);
    tell_of_places(before, served, *opened, report.get());
  }
  return [this, differs, report, opened] {
    for (const std::string& line : report->changes)
      log_notice("{}", line);
    if (differs) show(*opened);
    looking_at_mounts_ = std::exchange(look_again_, false);
    if (looking_at_mounts_) run_aside([this] { return look_at_mounts(); });
  };
}

ExportService::Finish ExportService::change(const JsonValue& request,
                                            const ControlSocket::Done& done) {
  const bool add = request["action"].text() == "add";
  const std::string& client = request["client"].text();
  const std::string& path = request["path"].text();
  std::vector<ExportEntry> entries = entries_;
  Report report{true, {}, {}, {}, {}};
  std::string why;
  const bool good =
      add ? add_export(entries, client, path, request["options"].text(), &why, &report.notices)
          : remove_export(entries, client, path, &why);
  if (!good) return [done, why] { done(control_error(why)); };
  const std::vector<ExportEntry> before = entries_;
  const auto served = served_;
  const ConfigProblems known = problems_;
  report.changes = export_changes(before, entries);
  // The others stay as they are; whether their directories are there still is not the question.
  ExportsInForce opened = open(std::move(entries), ExportTable::Keep::kAll);
  if (add && !is_in_force(opened, path)) {
    why = why_not_in_force(opened, path);
  } else if (const std::string lost = not_served_any_more(served, opened); !lost.empty()) {
    why = "that would put another export out of force: " + why_not_in_force(opened, lost);
  }
  Report others;
  if (!why.empty()) {
    opened = open(before, ExportTable::Keep::kAll);
  } else {
    tell_of_places(before, served, opened, &others);
  }
  report.problems = new_problems(known, opened.problems);
  return [this, report, others, opened, why, done]() mutable {
    show(opened);
    if (!why.empty()) return done(control_error(why));
    for (const std::string& line : report.changes)
      log_notice("{} (until the exports are read again)", line);
    for (const std::string& line : others.changes)
      log_notice("{}", line);
    report.changes.insert(report.changes.end(), others.changes.begin(), others.changes.end());
    for (const ConfigProblem& problem : report.problems)
      log_warning("{}", problem.text());
    done(report_document(report));
  };
}

void ExportService::answer(const JsonValue& request, ControlSocket::Done done) {
  const std::string& action = request["action"].text();
  if (action.empty() || action == "list") return done(exports_document(shown_));
  if (action == "add" || action == "remove") {
    return run_aside([this, request, done = std::move(done)] { return change(request, done); });
  }
  if (action == "reread") {
    return reload(
        [done = std::move(done)](const Report& report) { done(report_document(report)); });
  }
  if (action == "explain") {
    if (request["client"].text().empty()) return done(control_error("explain needs a client"));
    return run_aside([this, client = request["client"].text(), path = request["path"].text(),
                      shown = shown_, done = std::move(done)]() -> Finish {
      return [done, document = explain_document(table_, shown, client, path)] { done(document); };
    });
  }
  done(control_error(fmt::format(
      "unknown action '{}', expected list, add, remove, reread or explain", action.substr(0, 64))));
}

}  // namespace nfsrdma
