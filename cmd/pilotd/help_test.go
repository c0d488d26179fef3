package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// help returns the help of "pilotd discovery".
func help(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetArgs([]string{"discovery", "--help"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Each flag is in the help once, with a text that says something.
func TestHelpHasEveryFlag(t *testing.T) {
	text := help(t)
	discoveryCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if n := len(regexp.MustCompile(`(?m)^(?:  -., |      )--`+f.Name+`(?: |$)`).FindAllString(text, -1)); n != 1 {
			t.Errorf("--%s is in the help %d times, want once", f.Name, n)
		}
		if f.Usage == "" {
			t.Errorf("--%s has no text", f.Name)
		}
	})
}

// Each environment variable that the program names is in the help, unless a warning says that it has no effect.
func TestHelpHasEveryVariable(t *testing.T) {
	text := help(t)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`"([A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+)"`).FindAllStringSubmatch(string(code), -1) {
			if _, none := ignored()[m[1]]; none || m[1] == "TLS_AUTO" {
				continue
			}
			found++
			if !strings.Contains(text, m[1]) {
				t.Errorf("%s: %s is not in the help", file, m[1])
			}
		}
	}
	if found < 10 {
		t.Fatalf("found %d variables, want many", found)
	}
}
