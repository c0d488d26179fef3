//go:build !linux

package main

import "syscall"

// ownGroup keeps Ctrl-C from the program, which is ended in order.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
