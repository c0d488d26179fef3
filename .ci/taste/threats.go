package main

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// threatModel is the page whose table says which test shows that a threat is met.
const threatModel = "docs/security.md"

// threats finds rows of the threat model without a test, or with one that is not there.
func (d declared) threats(root fs.FS) (findings []string) {
	text, err := fs.ReadFile(root, threatModel)
	if err != nil {
		return nil // a page that links to it is reported
	}
	test := regexp.MustCompile("`([\\w/]+)\\.((?:Test|Fuzz)\\w+)`")
	inTable := false
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "| threat |"):
			inTable = true
			continue
		case !strings.HasPrefix(line, "|"):
			inTable = false
		}
		if !inTable || strings.HasPrefix(line, "| ---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		tests := test.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(tests) == 0 {
			findings = append(findings, fmt.Sprintf("%s:%d: no test shows that this threat is met", threatModel, i+1))
		}
		for _, m := range tests {
			if !d[m[1]+"."+m[2]] {
				findings = append(findings, fmt.Sprintf("%s:%d: there is no test %s.%s", threatModel, i+1, m[1], m[2]))
			}
		}
	}
	return findings
}
