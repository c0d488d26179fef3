// Package file is the source that reads objects from a directory tree of YAML and JSON files, and the mesh configuration from one file.
//
//	fsnotify ──► Run ──► tree: which files ──► content: what is in each ──► merge: one object per key ──► one Apply per scan
//	             ▲  │                            (unchanged texts keep their objects)                     Reject, Accept per file
//	             └──┘ events that come while a scan runs merge into the next one
//
// The state is a function of the files: a scan looks at the whole tree and hands over what differs from the scan before, in one call, so that
// objects that are edited together become visible together. An event only says that it is time to look; a lost one costs nothing once
// another comes, and where watching is impossible the tree is looked at every second.
//
// What is never done: acting on a file that is being written. A file that a process has open for writing is left as it was and looked at
// again within milliseconds; so is one that vanished, because editors move a file away before they write its successor. Where the
// system does not tell who writes (see unfinished), a text that does not parse keeps what the file said before.
//
// A text that does not parse is reported with file and line, and the file's last good objects stay in force, whole. A single object that
// does not decode keeps its own last good version; its neighbours are applied. The first file in path order wins an object that
// two files define.
//
// One goroutine does it all: the caller of Run.
package file
