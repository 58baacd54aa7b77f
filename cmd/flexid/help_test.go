package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestHelpTopics: every page is there by its name, is offered, and begins with a title; what is no page is an error that says
// which there are.
func TestHelpTopics(t *testing.T) {
	if len(topicNames()) < 7 {
		t.Fatalf("only %v", topicNames())
	}
	_, root, _ := call(nil, "help")
	for _, name := range topicNames() {
		code, out, _ := call(nil, "help", name)
		title, _, _ := strings.Cut(out, "\n")
		if code != exitOK || !strings.HasPrefix(title, "# ") || len(out) < 500 {
			t.Errorf("%s: exit %d, %d bytes, title %q", name, code, len(out), title)
		}
		if !strings.Contains(root, "  "+name+" ") {
			t.Errorf("help does not offer %s:\n%s", name, root)
		}
		for i, line := range strings.Split(out, "\n") {
			if len([]rune(line)) > 140 && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "./") {
				t.Errorf("%s:%d is too long for a terminal", name, i+1)
			}
		}
	}
	for _, code := range []int{exitOK, exitFailed, exitUsage, exitNothing, exitTryAgain, exitConfig} {
		if !strings.Contains(root, fmt.Sprintf(" %d ", code)) {
			t.Errorf("help does not say what exit %d means:\n%s", code, root)
		}
	}
	if code, out, _ := call(nil, "help", "docs", "show"); code != exitOK || !strings.Contains(out, "docs show EVIDENCE") {
		t.Errorf("help of a command: exit %d %s", code, out)
	}
	for _, args := range [][]string{{"help", "nonsense"}, {"help", "files", "flexi"}, {"help", "../help"}} {
		if code, _, talk := call(nil, args...); code != exitUsage || !strings.Contains(talk, "webhooks") {
			t.Errorf("%v: exit %d %s", args, code, talk)
		}
	}
}
