// Package file is the source that reads objects from a directory tree of YAML and JSON files, and the mesh
// configuration from one file.
//
//	fsnotify ──► follow ─┬─ inspect: the files where something happened ─┬─► content: what is in each file
//	             ▲  │    └─ scan: the whole tree ────────────────────────┘   │ (unchanged texts keep their objects)
//	             └──┘                                                        ▼
//	 events that come meanwhile                                            definitions: one object per key
//	 merge into the next one                                                 │
//	                                                                         └──► one Apply; Reject, Accept per file
//
// The state is a function of the files, however it was come by: a change of a file costs what the file costs, whatever
// else there is. Where an event does not tell which files it is about (a directory comes, moves or goes, events are
// lost, there are links, by which a file has several names), the whole tree is scanned, and what differs from before is
// handed over. Files that changed together become visible together, in one call. Where watching is impossible the tree
// is scanned every second.
//
// What is never done: acting on a file that is being written. A file that a process has open for writing is left as it
// was and inspected again within milliseconds; so is one that vanished, because editors move a file away before they
// write its successor. Where the system does not tell who writes (the file is another user's, or on a file server), a
// file that was changed in place is read when it has been left alone for 100 ms, or for a second if it looks like half
// of a file: objects that it had are missing, it does not parse, or its last line has no end. A file that was renamed
// to its place is read at once. See settling.
//
// What costs too much is refused and reported, and what was read before stays in force: files, documents and trees
// beyond the bounds in bounds.go, pipes and devices, links in circles. A text whose reading panics is a problem of its
// file alone.
//
// A text that does not parse is reported with file and line, and the file's last good objects stay in force, whole. A
// single object that does not decode keeps its own last good version; its neighbours are applied. The first file in
// path order wins an object that two files define.
//
// One goroutine does it all: the caller of Run.
package file
