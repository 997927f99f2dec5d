// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/terminal_text.h"

#include <gtest/gtest.h>

#include "rpcrdma/base/log.h"

namespace nfsrdma {
namespace {

TEST(TerminalText, WhatPeopleReadStays) {
  for (const char* text : {"", "plain name.txt",
                           "gr\xc3\xbc\xc3\x9f"
                           "e",
                           "\xe6\x97\xa5\xe6\x9c\xac", "\xf0\x9f\x90\xa7", "\xc2\xa0",
                           "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"}) {
    EXPECT_EQ(terminal_text(text), text);
  }
}

TEST(TerminalText, ControlCharactersDoNotReachATerminal) {
  EXPECT_EQ(terminal_text("a\x1b[31mb"), "a?[31mb");
  EXPECT_EQ(terminal_text("a\nb\tc\x7f"), "a?b?c?");
  EXPECT_EQ(terminal_text(std::string("a\0b", 3)), "a?b");
  // U+009B is CSI to a terminal, in two bytes and in one.
  EXPECT_EQ(terminal_text("a\xc2\x9b"
                          "31mb"),
            "a??31mb");
  EXPECT_EQ(terminal_text("a\x9b"
                          "31mb"),
            "a?31mb");
}

TEST(TerminalText, WhatIsNoUtf8IsMarkedByteByByte) {
  EXPECT_EQ(terminal_text("\xc3"), "?");                 // cut off
  EXPECT_EQ(terminal_text("\xe6\x97"), "??");            // cut off
  EXPECT_EQ(terminal_text("\xc0\xaf"), "??");            // overlong
  EXPECT_EQ(terminal_text("\xe0\x80\xaf"), "???");       // overlong
  EXPECT_EQ(terminal_text("\xf0\x80\x80\xaf"), "????");  // overlong
  EXPECT_EQ(terminal_text("\xed\xa0\x80"), "???");       // half of a UTF-16 pair
  EXPECT_EQ(terminal_text("\xf4\x90\x80\x80"), "????");  // beyond Unicode
  EXPECT_EQ(terminal_text("\xff"
                          "a\xc3\xbc"),
            "?a\xc3\xbc");
  EXPECT_EQ(terminal_text("\xe6\xc3\xbc"), "?\xc3\xbc");
}

TEST(TerminalText, ALineOfTheLogStaysOneLine) {
  static std::string seen;
  set_log_sink([](int, std::string_view line, std::span<const LogField>) { seen = line; });
  log_line(LogLevel::kError, "192.0.2.1 may not mount /a\n2026-11-25 error: forged\x1b[2J");
  set_log_sink(nullptr);
  EXPECT_EQ(seen, "192.0.2.1 may not mount /a?2026-11-25 error: forged?[2J");
}

}  // namespace
}  // namespace nfsrdma
