//go:build !linux

package file

import (
	"io/fs"
	"os"
)

// leased tells nothing here: the system does not say who writes.
func leased(*os.File, func()) (writing, known bool) { return false, false }

// linked takes every file for one that may be written under another name: the system is not asked.
func linked(fs.FileInfo) bool { return true }
