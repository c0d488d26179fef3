package file

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pilotd/pilotd/snapshot/value"
)

// parser parses one file.
type parser struct {
	// Immutable.
	path string
	rules
	known map[[sha256.Size]byte]*document // documents of the last reading, by the hash of their text

	// Results.
	texts    map[[sha256.Size]byte]*document
	objects  []object
	problems []problem
	failed   []value.ObjectKey // keys of objects that did not decode
	broken   bool              // some document is not YAML
	skipped  int
}

// document is the decoded form of one text. Its lines are counted from 0 at the text's own first line, because the text
// may move within its file. Immutable.
type document struct {
	objects  []object
	problems []problem
	broken   bool
	skipped  int
}

// text is the source of one document of a file.
type text struct {
	data []byte
	line int // the line of the file at which it begins, from 1
}

// parse parses the content of a file. Texts that the last reading had too give the same object pointers again.
func (p *parser) parse(data []byte) {
	texts := p.split(bytes.TrimPrefix(data, []byte("\ufeff")))
	if len(texts) > maxDocuments {
		p.broken = true
		p.problems = []problem{{path: p.path, reason: fmt.Sprintf("has %d documents: expected at most %d", len(texts),
			maxDocuments)}}
		return
	}
	for _, t := range texts {
		sum := sha256.Sum256(t.data)
		d := p.known[sum]
		if d == nil {
			d = readDocument(t.data, p.rules)
		}
		p.texts[sum] = d
		p.add(d, t)
	}
}

func (p *parser) add(d *document, t text) {
	last := t.line + bytes.Count(bytes.TrimRight(t.data, "\n"),
		[]byte("\n")) // Readers report a text that ends too early at the line after its end.
	p.broken = p.broken || d.broken
	p.skipped += d.skipped
	for _, o := range d.objects {
		o.path, o.line = p.path, min(o.line+t.line, last)
		p.objects = append(p.objects, o)
	}
	for _, b := range d.problems {
		b.path, b.line = p.path, min(b.line+t.line, last)
		p.problems = append(p.problems, b)
		if b.key != (value.ObjectKey{}) {
			p.failed = append(p.failed, b.key)
		}
	}
}

func (p *parser) split(data []byte) []text {
	if strings.EqualFold(filepath.Ext(p.path), ".json") {
		return splitJSON(data)
	}
	return splitYAML(data)
}

// splitYAML splits a file at its document markers, lines that begin with "---" or "...", and drops documents without
// content. What follows a marker on its line belongs to the next document; splitYAML overwrites the marker itself with
// blanks.
func splitYAML(data []byte) []text {
	var texts []text
	start, startLine := 0, 1
	end := func(at int) {
		if t, ok := (text{data: data[start:at:at], line: startLine}).trimmed(); ok {
			texts = append(texts, t)
		}
	}
	for at, line := 0, 1; at < len(data); line++ {
		n := bytes.IndexByte(data[at:], '\n') + 1
		if n == 0 {
			n = len(data) - at
		}
		if marker(data[at : at+n]) {
			end(at)
			start, startLine = at, line
			copy(data[at:], "   ")
		}
		at += n
	}
	end(len(data))
	return texts
}

func marker(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false
	}
	return len(line) == 3 || strings.IndexByte(" \t\r\n", line[3]) >= 0
}

// trimmed removes blank lines, comments and directives before the content. It returns false if there is no content.
func (t text) trimmed() (text, bool) {
	for len(t.data) > 0 {
		n := bytes.IndexByte(t.data, '\n') + 1
		if n == 0 {
			n = len(t.data)
		}
		content := bytes.TrimSpace(t.data[:n])
		if len(content) > 0 && content[0] != '#' && t.data[0] != '%' {
			return t, true
		}
		t.data = t.data[n:]
		t.line++
	}
	return t, false
}

// splitJSON splits a file of concatenated JSON values.
func splitJSON(data []byte) []text {
	var texts []text
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		start := decoder.InputOffset()
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			// The end, or invalid JSON, which decoding the rest reports.
			rest := text{data: data[start:], line: 1 + bytes.Count(data[:start], []byte("\n"))}
			if t, ok := rest.trimmed(); ok {
				texts = append(texts, t)
			}
			return texts
		}
		start = decoder.InputOffset() - int64(len(raw))
		texts = append(texts, text{data: raw, line: 1 + bytes.Count(data[:start], []byte("\n"))})
	}
}
