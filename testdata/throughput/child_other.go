//go:build !linux

package main

import "os/exec"

func diesWithUs(*exec.Cmd) {}
