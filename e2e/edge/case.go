package edge

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/pilotd/pilotd/snapshot/value"
)

// Case is something that was found once: objects, and what pilotd must say of them. Whatever it says, no Envoy refuses
// what it sends.
type Case struct {
	Name    string
	Objects []Object
	// Names is the object that must be on /debug/rejectionsz, and Field the start of the field's path there. A zero key
	// asks for nothing.
	Names value.ObjectKey
	Field string
	// Admitted says that none of the objects may be refused.
	Admitted bool
	// EnvoyRefuses says that only Envoy can judge the objects. It may refuse what is made of them, and nothing else.
	EnvoyRefuses bool
	// Known says why the case still goes wrong; empty for a case that must hold.
	Known string
	// text is the case as it is written, with "@" for its slot.
	text string
}

// ReadCases reads the *.txtar files of a directory. Each section of a file is a case.
func ReadCases(dir string) ([]Case, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	var out []Case
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			return nil, err
		}
		for _, f := range archive.Files {
			name := strings.TrimSuffix(filepath.Base(path), ".txtar") + "/" + f.Name
			out = append(out, Case{Name: name, text: string(f.Data)})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, os.ErrNotExist)
	}
	return out, nil
}

// In returns the case with its objects in a slot.
func (c Case) In(slot int) (Case, error) {
	text := strings.ReplaceAll(c.text, "@", strconv.Itoa(slot))
	for line := range strings.Lines(text) {
		directive, ok := strings.CutPrefix(strings.TrimSpace(line), "# ")
		if !ok {
			break
		}
		if err := c.direct(directive); err != nil {
			return c, fmt.Errorf("case %s: %w", c.Name, err)
		}
	}
	var err error
	c.Objects, err = readDocuments([]byte(repeat(text)))
	if err != nil {
		return c, fmt.Errorf("case %s: %w", c.Name, err)
	}
	for _, o := range c.Objects {
		if c.Names.Kind == o.Key().Kind && c.Names.Name == o.Key().Name {
			c.Names.Namespace = o.Key().Namespace
		}
	}
	return c, nil
}

// direct reads one of a case's first lines: "names KIND NAME FIELD", "refuses-nothing", "envoy-refuses", "known
// REASON", or a remark.
func (c *Case) direct(line string) error {
	words := strings.Fields(line)
	switch {
	case words[0] == "refuses-nothing":
		c.Admitted = true
	case words[0] == "envoy-refuses":
		c.EnvoyRefuses = true
	case words[0] == "known":
		c.Known = strings.TrimPrefix(line, "known ")
	case words[0] != "names":
	case len(words) != 4:
		return fmt.Errorf("expected names KIND NAME FIELD, got %q", line)
	default:
		c.Names, c.Field = value.ObjectKey{Kind: KindNamed(words[1]), Name: words[2]}, words[3]
	}
	return nil
}

// repeat writes out ⟨text×n⟩: the text n times, with "#" for 0, 1, ….
func repeat(text string) string {
	return regexp.MustCompile(`⟨([^⟩×]*)×(\d+)⟩`).ReplaceAllStringFunc(text, func(s string) string {
		part, count, _ := strings.Cut(strings.Trim(s, "⟨⟩"), "×")
		n, _ := strconv.Atoi(count) // The expression lets only digits through.
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(part, "#", strconv.Itoa(i)))
		}
		return b.String()
	})
}
