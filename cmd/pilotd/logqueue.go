package main

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// maxQueuedLog is how many bytes of lines may wait to be written.
	maxQueuedLog = 1 << 20
	// maxLine is the longest line that is written.
	maxLine = 64 << 10
	// flushTime is how long the end of the process waits for what is not written.
	flushTime = time.Second / 4
)

// logQueue is an io.Writer that never blocks: what is written waits, in order, for a goroutine that writes it to where
// it goes. When too much waits, because that does not take it, lines are dropped and counted, and a line says how many
// as soon as there is room again. Each Write is one line.
//
// Whoever logs may be a worker that thousands of proxies wait for, and what is logged may be what a client says.
type logQueue struct {
	// Immutable after newLogQueue.
	to      io.Writer
	dropped func(n int) []byte // the line that tells of dropped lines
	wake    chan struct{}
	done    chan struct{} // closed when everything is written after close

	mu sync.Mutex
	// Guarded by mu.
	lines  [][]byte
	size   int // of lines
	lost   int // lines dropped since the last that was written
	total  int // lines dropped
	closed bool
}

// newLogQueue starts the goroutine that writes to w. It ends after close.
func newLogQueue(w io.Writer, dropped func(n int) []byte) *logQueue {
	q := &logQueue{to: w, dropped: dropped, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// Write queues a copy of line, or drops it. It never fails.
func (q *logQueue) Write(line []byte) (int, error) {
	q.mu.Lock()
	if q.closed || len(line) > maxLine || q.size+len(line) > maxQueuedLog {
		q.lost++
		q.total++
	} else {
		q.lines = append(q.lines, bytes.Clone(line))
		q.size += len(line)
	}
	q.mu.Unlock()
	q.signal()
	return len(line), nil
}

func (q *logQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Dropped returns how many lines were dropped so far.
func (q *logQueue) Dropped() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total
}

// run is the goroutine that writes.
func (q *logQueue) run() {
	defer close(q.done)
	for range q.wake {
		for {
			q.mu.Lock()
			lines, lost, closed := q.lines, q.lost, q.closed
			q.lines, q.lost = nil, 0
			q.mu.Unlock()
			for _, line := range lines {
				_, _ = q.to.Write(line) // may block; an error has nowhere to go
				q.mu.Lock()
				q.size -= len(line)
				q.mu.Unlock()
			}
			if lost > 0 {
				_, _ = q.to.Write(q.dropped(lost))
			}
			if len(lines) == 0 {
				if closed {
					return
				}
				break
			}
		}
	}
}

// close writes what waits, as far as that is possible within the time, and drops what is written from then on.
func (q *logQueue) close(within time.Duration) {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
	select {
	case <-q.done:
	case <-time.After(within):
	}
}
