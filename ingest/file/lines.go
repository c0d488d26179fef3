package file

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lines tells on which line of a text a field stands. The text is read only when that is asked for.
type lines struct {
	text []byte
	root *yaml.Node
}

// at returns the line of the field at path, from 0; of the nearest field around it where it is not there.
func (l *lines) at(path string) int {
	if path == "" {
		return 0
	}
	if l.root == nil {
		l.root = &yaml.Node{}
		if err := yaml.Unmarshal(l.text, l.root); err != nil {
			l.root = &yaml.Node{Line: 1} // JSON with tabs, say.
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

// steps cuts "a.b[2].c" into a, b, 2, c.
func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) })
}

// childOf goes from a node to its child of that name or number, and gives the line at which that stands.
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
