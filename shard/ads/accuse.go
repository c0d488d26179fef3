package ads

import (
	"strconv"
	"strings"

	"github.com/pilotd/pilotd/xdstype"
)

// The text of an error accuses a resource only in the forms that clients really write; testdata/texts has recorded
// ones. A name that merely stands somewhere in a text says nothing: a dump is full of names and numbers that other
// resources are called by, and of strings that users chose. Where no form fits, the search by halves decides.

// The forms of Envoy, and that of gRPC's Go client.
const (
	oldConstraint  = "Proto constraint validation failed ("
	duplicateHost  = "Only unique values for domains are permitted. Duplicate entry of domain "
	secondWildcard = "Only a single wildcard domain is permitted in route "
	inRoute        = " in route "
	dumpPrefix     = "goo.gle/debug" // what protobuf puts before a dump; how it goes on differs from process to process
	dumpEnd        = "\n: "          // between a dump and what is wrong with it
	goErrors       = "error parsing "
)

// maxText is how much of an error is searched for names.
const maxText = 256 << 10

// accused returns the names of the resources that an error accuses, of those that has knows. The first names in the
// text come first.
func accused(row *xdstype.Row, text string, has func(name string) bool) []string {
	text = text[:min(len(text), maxText)]
	if rest, ok := strings.CutPrefix(text, row.Errors.List); ok && row.Errors.List != "" {
		return accusedInList(rest, row.Errors.Separator, has)
	}
	if rest, ok := strings.CutPrefix(text, goErrors); ok {
		return accusedByGo(rest, has)
	}
	name, ok := dumped(row, text)
	if !ok {
		name, ok = clashing(text)
	}
	if !ok || !has(name) {
		return nil
	}
	return []string{name}
}

// accusedInList reads "NAME: reason", again and again with a separator between. It stops where it is not sure any more:
// the rest is named by the next refusal.
func accusedInList(text, separator string, has func(string) bool) (names []string) {
	for {
		name, reason, ok := entryOf(text, has)
		if !ok {
			return names
		}
		names = append(names, name)
		if reason, ok = afterDump(reason); !ok {
			return names
		}
		if separator == "\n" {
			_, text, ok = strings.Cut(reason, separator)
		} else {
			text, ok = afterReason(reason, separator, has)
		}
		if !ok {
			return names
		}
	}
}

// entryOf splits a text that begins with the name of a resource. It refuses one that could begin with several names.
func entryOf(text string, has func(string) bool) (name, reason string, ok bool) {
	const most = 8 // names have fewer colons
	at := 0
	for range most {
		i := strings.Index(text[at:], ": ")
		if i < 0 {
			break
		}
		if candidate := text[:at+i]; has(candidate) {
			if ok {
				return "", "", false
			}
			name, reason, ok = candidate, text[at+i+2:], true
		}
		at += i + 2
	}
	return name, reason, ok
}

// afterDump skips the dump that a reason begins with, if it does. It reports false for a reason whose dump has no end
// that can be told.
func afterDump(reason string) (rest string, ok bool) {
	if strings.HasPrefix(reason, dumpPrefix) {
		_, rest, ok = strings.Cut(reason, dumpEnd)
		return rest, ok
	}
	return reason, !strings.HasPrefix(reason, oldConstraint)
}

// afterReason finds the next entry behind a separator that stands in no quotation.
func afterReason(reason, separator string, has func(string) bool) (rest string, ok bool) {
	quote := byte(0)
	for i := 0; i < len(reason); i++ {
		c := reason[i]
		switch {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote && (quote == '"' || i+1 == len(reason) || !isWord(reason[i+1])) {
				quote = 0
			}
		case c == '"', c == '\'' && (i == 0 || !isWord(reason[i-1])): // and not that of "didn't"
			quote = c
		case strings.HasPrefix(reason[i:], separator):
			rest = reason[i+len(separator):]
			if _, _, ok := entryOf(rest, has); ok {
				return rest, true
			}
		}
	}
	return "", false
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// dumped returns the name of the resource whose dump an error begins with: the dump's own name, which is its first
// field.
func dumped(row *xdstype.Row, text string) (name string, ok bool) {
	switch {
	case strings.HasPrefix(text, dumpPrefix):
		_, text, ok = strings.Cut(text, "\n")
	case strings.HasPrefix(text, oldConstraint):
		_, text, ok = strings.Cut(text, "): ")
	}
	if !ok {
		return "", false
	}
	if text, ok = strings.CutPrefix(text, row.Errors.NameField+": "); !ok {
		return "", false
	}
	return unquoted(text)
}

// unquoted returns the string that a text begins with, as protobuf's text format writes it.
func unquoted(text string) (string, bool) {
	if text == "" || text[0] != '"' {
		return "", false
	}
	var out []byte
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return string(out), true
		case c != '\\':
			out = append(out, c)
		case i+3 < len(text) && text[i+1] >= '0' && text[i+1] <= '7':
			n, err := strconv.ParseUint(text[i+1:i+4], 8, 8)
			if err != nil {
				return "", false
			}
			out = append(out, byte(n))
			i += 3
		case i+1 < len(text):
			i++
			at := strings.IndexByte("nrt", text[i])
			if at >= 0 {
				out = append(out, "\n\r\t"[at])
			} else {
				out = append(out, text[i])
			}
		}
	}
	return "", false
}

// clashing returns the name of a route configuration whose virtual hosts do not go together.
func clashing(text string) (string, bool) {
	if rest, ok := strings.CutPrefix(text, secondWildcard); ok {
		return rest, true
	}
	if !strings.HasPrefix(text, duplicateHost) {
		return "", false
	}
	i := strings.LastIndex(text, inRoute)
	if i < 0 {
		return "", false
	}
	return text[i+len(inRoute):], true
}

// accusedByGo reads what gRPC's Go client writes: the type in quotes, and `resource "NAME": reason` with ";" and a line
// break between.
func accusedByGo(text string, has func(string) bool) (names []string) {
	typ, err := strconv.QuotedPrefix(text)
	if err != nil {
		return nil
	}
	text, ok := strings.CutPrefix(text[len(typ):], " response: ")
	for ok {
		if text, ok = strings.CutPrefix(text, "resource "); !ok {
			break
		}
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			break
		}
		name, err := strconv.Unquote(quoted)
		if err != nil || !strings.HasPrefix(text[len(quoted):], ": ") {
			break
		}
		if has(name) {
			names = append(names, name)
		}
		_, text, ok = strings.Cut(text, ";\n")
	}
	return names
}
