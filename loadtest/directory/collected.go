package directory

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
)

// collected gathers documents before they are written to files, each of which has many. Not safe for concurrent use.
type collected struct {
	dir   string
	texts map[string]*bytes.Buffer // unwritten text by file
}

// enough is the size at which a file's text is written.
const enough = 1 << 20

// add adds a document to a file.
func (c *collected) add(file string, text []byte) error {
	b := c.texts[file]
	if b == nil {
		b = &bytes.Buffer{}
		c.texts[file] = b
	} else {
		b.WriteString("---\n")
	}
	b.Write(text)
	if b.Len() < enough {
		return nil
	}
	return c.write(file)
}

// write appends the gathered text to a file.
func (c *collected) write(file string) error {
	f, err := os.OpenFile(filepath.Join(c.dir, file), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(c.texts[file].Bytes())
	c.texts[file].Reset()
	return errors.Join(err, f.Close())
}

// flush writes everything that is left.
func (c *collected) flush() error {
	for file := range c.texts {
		if err := c.write(file); err != nil {
			return err
		}
	}
	return nil
}
