package main

import "syscall"

// ownGroup keeps Ctrl-C from the program, which is ended in order, and ends it with us.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
