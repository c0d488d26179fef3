package ca

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// maxFile is the largest size of a file with certificates or a key, in bytes.
const maxFile = 1 << 20

// ReadDir returns the material in a directory, or false if there is no key in it.
func ReadDir(dir string) (Material, bool, error) {
	data := map[string][]byte{}
	for _, name := range Names() {
		text, err := readFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Material{}, false, fmt.Errorf("%w: %w", ErrMaterial, err)
		}
		data[name] = text
	}
	return FromData(data)
}

// readFile returns the content of a file, and an error if it is too large.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return text, err
}

// WatchDir puts the material of a directory into force, now and after each tick when it has changed, until ctx ends. It
// reads the files again at each tick instead of watching them: they are few, and a mounted Secret changes by replacing
// links. It calls problem once for each new error.
func (k *Keeper) WatchDir(ctx context.Context, dir string, tick <-chan time.Time, problem func(error)) {
	told := ""
	for {
		m, ok, err := ReadDir(dir)
		switch {
		case err == nil && ok:
			err = k.Take(m)
		case err == nil:
			err = fmt.Errorf("%w: %s has no %s", ErrMaterial, dir, keyName)
		}
		if err != nil {
			k.Fail(err)
		}
		if text := fmt.Sprint(err); err != nil && text != told {
			problem(err)
			told = text
		} else if err == nil {
			told = ""
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}
