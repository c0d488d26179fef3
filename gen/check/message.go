package check

import (
	"google.golang.org/protobuf/proto"
)

// validator is what the generated code of a message type with constraints has.
type validator interface{ Validate() error }

// invalid is an error of generated code.
type invalid interface {
	error
	Field() string
	Reason() string
	Cause() error
}

// validate adds the first constraint that the message breaks which its type declares.
func (f *faults) validate(m proto.Message) {
	v, ok := m.(validator)
	if !ok {
		return
	}
	if err := v.Validate(); err != nil {
		f.declared(err)
	}
}

// declared adds an error of generated code, with the path down to the field that is meant.
func (f *faults) declared(err error) {
	path := ""
	for {
		e, ok := err.(invalid)
		if !ok {
			f.add(path, "%v", err)
			return
		}
		path = join(path, snake(e.Field()))
		if e.Cause() == nil {
			f.add(path, "%s", e.Reason())
			return
		}
		err = e.Cause()
	}
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// snake returns the name of a field as the API writes it, out of that of the Go type.
func snake(s string) string {
	out := make([]byte, 0, len(s)+4)
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			if i > 0 && s[i-1] != '_' && (s[i-1] < 'A' || s[i-1] > 'Z') {
				out = append(out, '_')
			}
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	return string(out)
}
