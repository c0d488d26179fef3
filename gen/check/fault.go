package check

import (
	"bytes"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
)

// Fault is one broken rule.
type Fault struct {
	// Path leads to what is wrong: "routes[2].route.retry_policy". Empty for the message itself.
	Path string
	// Reason says what is wrong, and what was expected.
	Reason string
}

func (f Fault) String() string {
	if f.Path == "" {
		return f.Reason
	}
	return f.Path + ": " + f.Reason
}

// Within reports whether the Fault is in that field.
func (f Fault) Within(field string) bool {
	return f.Path == field || strings.HasPrefix(f.Path, field) && strings.ContainsAny(f.Path[len(field):len(field)+1],
		".[")
}

// faults collects Faults along a path.
type faults struct {
	list []Fault
	// regexSize is the largest RE2 program of a regular expression; 0: there is no limit, or one that is too large was
	// found, which is enough.
	regexSize int
}

// add notes a broken rule.
func (f *faults) add(path, format string, args ...any) {
	f.list = append(f.list, Fault{path, fmt.Sprintf(format, args...)})
}

// maxText is how much of a text a reason quotes.
const maxText = 80

// cut returns s as a reason quotes it.
func cut(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(s, "?"))
}

// Text that no valid type URL holds begins and ends what Refusal gives.
const (
	refusalBegin = "\x00refused\x00"
	refusalEnd   = "\x00end\x00"
)

// Refusal returns a type URL that stands in place of that of a packed message that breaks rules, so that Packed finds
// what is wrong with it in anything that holds it. Empty if the message breaks none.
func Refusal(m proto.Message) string {
	list := Message(m)
	if len(list) == 0 {
		return ""
	}
	name := string(m.ProtoReflect().Descriptor().Name())
	return refusalBegin + name + "\x00" + list[0].Path + "\x00" + list[0].Reason + refusalEnd
}

// Packed returns the faults of the messages that are packed in an encoded one. Of several messages within each other
// the innermost has the fault.
func Packed(b []byte) (out []Fault) {
	for {
		i := bytes.LastIndex(b, []byte(refusalBegin))
		if i < 0 {
			return out
		}
		text, _, ok := bytes.Cut(b[i+len(refusalBegin):], []byte(refusalEnd))
		if parts := bytes.SplitN(text, []byte{0}, 3); ok && len(parts) == 3 {
			out = append(out, Fault{strings.TrimSuffix(string(parts[0])+"."+string(parts[1]), "."), string(parts[2])})
		} else {
			out = append(out, Fault{"", "a text with NUL characters"})
		}
		b = b[:i]
	}
}
