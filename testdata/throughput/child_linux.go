package main

import (
	"os/exec"
	"syscall"
)

// diesWithUs lets the kernel end a child whose parent is gone, however that went.
func diesWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
