package file

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/pilotd/pilotd/report"
)

// What a directory may hold. What is beyond is reported, and what was read before stays in force.
const (
	// maxFile is the largest file, in bytes.
	maxFile = 64 << 20
	// maxDocument is the largest document of a file, in bytes: reading it takes many times as much memory.
	maxDocument = 16 << 20
	// maxDocuments is how many documents a file may have, and how many objects a List.
	maxDocuments = 100_000
	// maxProblems is how many problems of a file are told of one by one.
	maxProblems = 100
	// maxEntries is how many files and directories the whole tree may have, by path: links may lead to one directory in
	// many ways.
	maxEntries = 200_000
	// maxDepth is how deep directories may lie in each other.
	maxDepth = 64
)

// fault returns the problem of a text whose reading panicked. It is to be called by the function that recovered.
func fault(cause any) *problem {
	const most = 2000
	stack := strings.Join(strings.Fields(string(debug.Stack())), " ")
	return &problem{cause: report.Panicked, reason: fmt.Sprintf("a fault of pilotd: panic: %v: %s", cause,
		stack[:min(len(stack), most)])}
}
