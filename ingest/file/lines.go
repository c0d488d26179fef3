package file

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lines finds the line of a text on which a field is. It parses the text on first use.
type lines struct {
	text []byte
	root *yaml.Node
}

// at returns the line, from 0, of the field at path, or of the nearest enclosing field that exists.
func (l *lines) at(path string) int {
	if path == "" {
		return 0
	}
	if l.root == nil {
		l.root = &yaml.Node{}
		if err := yaml.Unmarshal(l.text, l.root); err != nil {
			l.root = &yaml.Node{Line: 1} // not YAML, such as JSON with tabs
		}
	}
	node, line := l.root, 0
	if node.Kind == yaml.DocumentNode {
		node = node.Content[0]
	}
	for _, step := range steps(path) {
		next, at := childOf(node, step)
		if next == nil {
			break
		}
		node, line = next, max(at-1, 0)
	}
	return line
}

// steps splits "a.b[2].c" into a, b, 2, c.
func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) })
}

// childOf returns the child of a node with that name or index, and its line.
func childOf(node *yaml.Node, step string) (*yaml.Node, int) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i].Line
		}
	}
	return nil, 0
}
