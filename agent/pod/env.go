package pod

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Env are environment variables. The zero value has none.
type Env struct {
	vars map[string]string
	// problems collects the variables that the getters could not parse.
	problems *[]error
}

// NewEnv parses lines NAME=VALUE, in the form of os.Environ. If a name occurs twice, the last line counts.
func NewEnv(lines []string) Env {
	e := Env{vars: make(map[string]string, len(lines)), problems: new([]error)}
	for _, l := range lines {
		if name, value, ok := strings.Cut(l, "="); ok {
			e.vars[name] = value
		}
	}
	return e
}

// Text returns a variable, or otherwise if it is empty or not set.
func (e Env) Text(name, otherwise string) string {
	if v := e.vars[name]; v != "" {
		return v
	}
	return otherwise
}

// Has reports whether a variable is set and not empty.
func (e Env) Has(name string) bool { return e.vars[name] != "" }

// Bool returns a variable with the value true or false.
func (e Env) Bool(name string, otherwise bool) bool {
	return parsed(e, name, otherwise, form[bool]{"true or false", strconv.ParseBool})
}

// Duration returns a variable that is a duration such as 10s.
func (e Env) Duration(name string, otherwise time.Duration) time.Duration {
	return parsed(e, name, otherwise, form[time.Duration]{"a duration such as 10s", func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err == nil && d < 0 {
			err = fmt.Errorf("negative")
		}
		return d, err
	}})
}

// Int returns a variable that is an integer of at least 0.
func (e Env) Int(name string, otherwise int) int {
	return parsed(e, name, otherwise, form[int]{"a number of at least 0", func(s string) (int, error) {
		n, err := strconv.ParseUint(s, 10, 31)
		return int(n), err
	}})
}

// port returns a variable that is a port number.
func (e Env) port(name string, otherwise uint32) uint32 {
	return parsed(e, name, otherwise, form[uint32]{"a port number, 1 to 65535", func(s string) (uint32, error) {
		n, err := strconv.ParseUint(s, 10, 16)
		if err == nil && n == 0 {
			err = fmt.Errorf("out of range")
		}
		return uint32(n), err
	}})
}

// Ratio returns a variable that is a number from 0 to 1.
func (e Env) Ratio(name string, otherwise float64) float64 {
	return parsed(e, name, otherwise, form[float64]{"a number from 0 to 1", func(s string) (float64, error) {
		f, err := strconv.ParseFloat(s, 64)
		if err == nil && !(f >= 0 && f <= 1) {
			err = fmt.Errorf("out of range")
		}
		return f, err
	}})
}

// form describes how values of type T are written and parsed.
type form[T any] struct {
	want  string
	parse func(string) (T, error)
}

func parsed[T any](e Env, name string, otherwise T, f form[T]) T {
	text := strings.TrimSpace(e.vars[name])
	if text == "" {
		return otherwise
	}
	v, err := f.parse(text)
	if err != nil {
		*e.problems = append(*e.problems, fmt.Errorf("environment variable %s=%q: want %s", name, text, f.want))
		return otherwise
	}
	return v
}

// Err returns an error for the first variable that a getter could not parse.
func (e Env) Err() error {
	if e.problems == nil || len(*e.problems) == 0 {
		return nil
	}
	return (*e.problems)[0]
}

// WithPrefix returns the variables whose names begin with prefix, without the prefix, and their names in order.
func (e Env) WithPrefix(prefix string) (names []string, values map[string]string) {
	values = map[string]string{}
	for name, value := range e.vars {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			names, values[rest] = append(names, rest), value
		}
	}
	slices.Sort(names)
	return names, values
}
