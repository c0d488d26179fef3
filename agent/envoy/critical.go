package envoy

import (
	"bytes"
	"io"
	"strings"
)

// longestLine is how many bytes of a log line are examined.
const longestLine = 4 << 10

// critical copies Envoy's log to another writer, and remembers the last line that says why Envoy cannot go on.
type critical struct {
	to io.Writer
	// Owned by the goroutine that copies Envoy's output, until Envoy has exited.
	line []byte
	last string
}

// Write writes p to the other writer and always reports success: a failure there must not stop Envoy.
func (c *critical) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		c.line = append(c.line, part[:min(len(part), longestLine-len(c.line))]...)
		if ended {
			c.look()
			c.line = c.line[:0]
		}
		rest = after
	}
	if c.to != nil {
		_, _ = c.to.Write(p)
	}
	return len(p), nil
}

// look examines a line in the form of logFormat: the level is its second field, the text its fourth.
func (c *critical) look() {
	fields := strings.Split(string(c.line), "\t")
	if text, ok := strings.CutPrefix(string(c.line), "error: "); ok { // of the command line, before logging starts
		c.last = strings.TrimSpace(text)
	}
	if len(fields) >= 4 && fields[1] == "critical" && !strings.Contains(fields[3], "Backtrace") {
		c.last = strings.TrimSpace(fields[3])
	}
}
