package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode"
)

// links finds what a page points to that is not there: a relative link whose file, or whose heading, does not exist;
// and the name of a Go file with its directory that is not the path of one from the root of the repository.
func links(root fs.FS) (findings []string, err error) {
	link := regexp.MustCompile(`\]\(([^)\s]*)\)`)
	named := regexp.MustCompile(`\b[\w.-]+(?:/[\w.-]+)*/\w+\.go\b`)
	err = fs.WalkDir(root, ".", func(page string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(root, page, d.Name())
		}
		if path.Ext(page) != ".md" {
			return nil
		}
		text, err := fs.ReadFile(root, page)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			var missing []string
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if !strings.Contains(m[1], "://") && !reaches(root, page, m[1]) {
					missing = append(missing, m[1])
				}
			}
			for _, name := range named.FindAllString(line, -1) {
				if _, err := fs.Stat(root, name); err != nil {
					missing = append(missing, name)
				}
			}
			for _, name := range missing {
				findings = append(findings, fmt.Sprintf("%s:%d: there is no %s", page, i+1, name))
			}
		}
		return nil
	})
	return findings, err
}

// reaches reports whether a link in a page leads to a file, and to a heading of it if the link names one.
func reaches(root fs.FS, page, link string) bool {
	name, heading, _ := strings.Cut(link, "#")
	if name = path.Join(path.Dir(page), name); strings.HasPrefix(link, "#") {
		name = page
	}
	if heading == "" {
		_, err := fs.Stat(root, name)
		return err == nil
	}
	text, err := fs.ReadFile(root, name)
	for line := range strings.Lines(string(text)) {
		if title := strings.TrimLeft(line, "#"); err == nil && title != line && anchor(title) == heading {
			return true
		}
	}
	return false
}

// anchor returns the name that a heading has in links: its letters and digits in lower case, with hyphens between words.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(title))
}
