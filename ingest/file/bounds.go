package file

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/pilotd/pilotd/report"
)

// Bounds on a directory. What exceeds them is reported, and what was read before stays in force.
const (
	// maxFile is the largest file, in bytes.
	maxFile = 64 << 20
	// maxDocument is the largest document of a file, in bytes: reading it takes many times as much memory.
	maxDocument = 16 << 20
	// maxDocuments bounds the documents of a file, and the objects of a List.
	maxDocuments = 100_000
	// maxProblems bounds the problems of one file that are reported one by one.
	maxProblems = 100
	// maxEntries bounds the files and directories of the whole tree, counted by path: through links one directory can
	// have many paths.
	maxEntries = 200_000
	// maxDepth bounds how deep directories are nested.
	maxDepth = 64
)

// fault converts a recovered panic into the problem of the text that was being read. Only the recovering function may
// call it, because it reads the stack.
func fault(cause any) *problem {
	const most = 2000
	stack := strings.Join(strings.Fields(string(debug.Stack())), " ")
	return &problem{cause: report.Panicked, reason: fmt.Sprintf("a fault of pilotd: panic: %v: %s", cause,
		stack[:min(len(stack), most)])}
}
