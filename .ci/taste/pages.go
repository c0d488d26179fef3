package main

import (
	"io/fs"
	"path"
	"regexp"
)

// pages finds what points to a page that is not there: a word that ends in ".md" in a comment or in a page must be the
// path of a file from the root of the repository, from the directory of the page, or from docs. An invariant that a
// comment calls by its number must stand in the table of docs/architecture.md.
type pages struct {
	root       fs.FS
	invariants map[string]bool
}

func newPages(root fs.FS) pages {
	p := pages{root, map[string]bool{}}
	if text, err := fs.ReadFile(root, "docs/architecture.md"); err == nil {
		for _, row := range regexp.MustCompile(`(?m)^\| (I\d+) \|`).FindAllStringSubmatch(string(text), -1) {
			p.invariants[row[1]] = true
		}
	}
	return p
}

// comments checks the comments of a file.
func (p pages) comments(s source) (findings []string) {
	invariant := regexp.MustCompile(`\binvariant (I\d+)\b`)
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			for _, name := range p.missing(s.dir(), c.Text) {
				findings = append(findings, s.at(c, "there is no page %s", name))
			}
			for _, m := range invariant.FindAllStringSubmatch(c.Text, -1) {
				if !p.invariants[m[1]] {
					findings = append(findings, s.at(c, "docs/architecture.md has no invariant %s", m[1]))
				}
			}
		}
	}
	return findings
}

// missing returns the pages that a text in a file of a directory names and that are not there.
func (p pages) missing(dir, text string) (out []string) {
	// Addresses on the web are not looked up.
	text = regexp.MustCompile(`https?://\S+`).ReplaceAllString(text, "")
	for _, name := range regexp.MustCompile(`[\w./-]*\w\.md\b`).FindAllString(text, -1) {
		found := false
		for _, from := range []string{".", dir, "docs"} {
			if _, err := fs.Stat(p.root, path.Join(from, name)); err == nil {
				found = true
			}
		}
		if !found {
			out = append(out, name)
		}
	}
	return out
}
