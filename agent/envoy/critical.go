package envoy

import (
	"bytes"
	"io"
	"strings"
)

// longestLine is how much of a line is looked at.
const longestLine = 4 << 10

// critical passes on what Envoy logs, and remembers the last line that says why Envoy cannot go on.
type critical struct {
	to io.Writer
	// Owned by the goroutine that copies Envoy's output, until Envoy has ended.
	line []byte
	last string
}

// Write passes p on, whole: what cannot be passed on must not stop Envoy.
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

// look reads a line in the form that logFormat has: the level is its second field, the text its fourth.
func (c *critical) look() {
	fields := strings.Split(string(c.line), "\t")
	if text, ok := strings.CutPrefix(string(c.line), "error: "); ok { // of its command line, before it logs
		c.last = strings.TrimSpace(text)
	}
	if len(fields) >= 4 && fields[1] == "critical" && !strings.Contains(fields[3], "Backtrace") {
		c.last = strings.TrimSpace(fields[3])
	}
}
