package secret

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/pilotd/pilotd/agent/cell"
	"github.com/pilotd/pilotd/agent/upstream"
)

// Mounted reads the workload's certificate from a directory that another process maintains.
type Mounted struct {
	Dir string
	Log *slog.Logger

	// Newest is the certificate in use.
	Newest cell.Cell[Material]
}

// HasCertificate reports whether a directory has all files of a certificate.
func HasCertificate(dir string) bool {
	for _, name := range []string{upstream.ChainFile, upstream.KeyFile, upstream.RootFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// Run reads the directory, and again at each tick at which a file has changed, until ctx ends. If the files cannot be
// used, for example because the key was replaced before its certificate, the former certificate stays and Run tries
// again at the next tick.
func (m *Mounted) Run(ctx context.Context, tick <-chan time.Time) {
	var seen [3]stamp
	said := ""
	for {
		now := m.stamps()
		if now != seen {
			read, err := fromDir(m.Dir)
			switch {
			case err == nil:
				m.Newest.Set(read)
				m.Log.Info("certificate of files", "directory", m.Dir, "until", read.NotAfter.UTC().Format(time.RFC3339))
				seen, said = now, ""
			case err.Error() != said:
				said = err.Error()
				m.Log.Error("the files of the certificate cannot be used", "error", err, "directory", m.Dir)
			}
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

func (m *Mounted) stamps() (out [3]stamp) {
	for i, name := range []string{upstream.ChainFile, upstream.KeyFile, upstream.RootFile} {
		out[i] = stampOf(filepath.Join(m.Dir, name))
	}
	return out
}

// stamp identifies a version of a file. The zero value means that the file does not exist.
type stamp struct {
	changed int64
	size    int64
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime().UnixNano(), info.Size() + 1}
}
