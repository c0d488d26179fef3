package main

import (
	"go/ast"
	"go/token"
	"strconv"

	"github.com/pilotd/pilotd/xdstype"
)

// typeURLs finds the URLs of served resource types: package xdstype has the only list of them.
func typeURLs(s source) []string {
	if s.dir() == "xdstype" {
		return nil
	}
	var findings []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		url, err := strconv.Unquote(lit.Value)
		if _, served := xdstype.Of(url); err == nil && served {
			findings = append(findings, s.at(lit, "the URL of a served type: xdstype has it"))
		}
		return true
	})
	return findings
}
