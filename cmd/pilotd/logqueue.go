package main

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// maxQueuedLog bounds the bytes of lines that wait to be written.
	maxQueuedLog = 1 << 20
	// maxLine is the length at which a line is cut.
	maxLine = 64 << 10
	// flushTime bounds how long the end of the process waits for unwritten lines.
	flushTime = time.Second / 4
)

// logQueue is an io.Writer that never blocks. It queues what is written, and a goroutine of its own writes the queue,
// in order, to the real writer. If that writer is too slow and the queue is full, lines are dropped and counted, and
// once there is room a line tells how many. Each Write is one line.
//
// It must not block because a worker that thousands of proxies wait for may log, and because clients influence what is
// logged.
type logQueue struct {
	// Immutable after newLogQueue.
	to      io.Writer
	dropped func(n int) []byte // makes the line that tells how many were dropped
	wake    chan struct{}
	done    chan struct{} // closed after close, when everything is written

	mu sync.Mutex
	// Guarded by mu.
	lines  [][]byte
	size   int // bytes of lines
	lost   int // lines dropped since the last line that was queued
	total  int // lines dropped in all
	closed bool
}

// newLogQueue starts the goroutine that writes to w. The goroutine ends after close.
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

// Dropped returns the number of lines dropped so far.
func (q *logQueue) Dropped() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total
}

// run writes the queue. It runs in a goroutine of its own.
func (q *logQueue) run() {
	defer close(q.done)
	for range q.wake {
		for {
			q.mu.Lock()
			lines, lost, closed := q.lines, q.lost, q.closed
			q.lines, q.lost = nil, 0
			q.mu.Unlock()
			for _, line := range lines {
				_, _ = q.to.Write(line) // may block; an error cannot be reported anywhere
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

// close waits until the queue is written, at most for the given time, and drops later writes.
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
