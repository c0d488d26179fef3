package envoytext

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Format returns the reason why Envoy refuses s as the value of a header that it adds; nil if it accepts it. In such a
// value %COMMAND(arguments):LENGTH% stands for a fact about the request, and %% for a percent sign.
func Format(s string) error {
	if !strings.Contains(s, "%") {
		return nil
	}
	pattern := regexp.MustCompile(`^%([A-Z0-9_]+)(?:\((.*?)\))?(?::([0-9]{1,20}))?%`)
	for i := 0; i < len(s); {
		switch {
		case s[i] != '%':
			i++
		case strings.HasPrefix(s[i:], "%%"):
			i += len("%%")
		default:
			m := pattern.FindStringSubmatch(s[i:])
			if m == nil {
				return fmt.Errorf("no command follows the percent sign at position %d: a percent sign itself is written %%%%", i)
			}
			if err := command(m[1], m[2], m[3] != ""); err != nil {
				return err
			}
			i += len(m[0])
		}
	}
	return nil
}

// command returns the reason why Envoy refuses a command with these arguments; length says that it has a length.
func command(name, arguments string, length bool) error {
	c, known := commandOf(name)
	switch {
	case !known:
		return errors.New("there is no command %" + cut(name) + "%")
	case length && !c.length:
		return errors.New("command %" + name + "% takes no length")
	case arguments != "" && c.none:
		return errors.New("command %" + name + "% takes no arguments")
	case arguments == "" && c.required:
		return errors.New("command %" + name + "% needs arguments in parentheses")
	case c.values != nil && arguments != "" && !slices.Contains(c.values, arguments):
		return fmt.Errorf("command %%%s%% takes one of %s, got %q", name, strings.Join(c.values, ", "), cut(arguments))
	case c.valid != nil:
		return c.valid(arguments)
	}
	return nil
}

// rule describes the arguments that a command accepts.
type rule struct {
	none, required bool     // it has no arguments; it must have arguments
	values         []string // if it has arguments, they are one of these
	length         bool     // it may have a length
	valid          func(arguments string) error
}

func commandOf(name string) (rule, bool) {
	switch name {
	case "REQ", "RESP", "TRAILER", "REQUEST_HEADER", "RESPONSE_HEADER", "RESPONSE_TRAILER":
		return rule{required: true, length: true, valid: headers}, true
	case "DYNAMIC_METADATA", "CLUSTER_METADATA", "UPSTREAM_METADATA", "QUERY_PARAM", "ENVIRONMENT":
		return rule{required: true, length: true}, true
	case "FILTER_STATE", "UPSTREAM_FILTER_STATE":
		return rule{required: true, length: true, valid: filterState}, true
	case "PER_REQUEST_STATE":
		return rule{required: true}, true
	case "METADATA":
		return rule{required: true, length: true, valid: metadata}, true
	case "COMMON_DURATION":
		return rule{required: true, valid: duration}, true
	case "GRPC_STATUS":
		return rule{values: []string{"CAMEL_STRING", "SNAKE_STRING", "NUMBER"}}, true
	case "PATH":
		return rule{length: true, values: []string{"WQ", "NQ"}}, true
	case "QUERY_PARAMS":
		return rule{length: true, values: []string{"ORIG", "DECODED"}}, true
	case "REQUESTED_SERVER_NAME":
		return rule{values: []string{"SNI_ONLY", "SNI_FIRST", "HOST_FIRST"}}, true
	}
	if slices.Contains(optional(), name) {
		return rule{}, true
	}
	return rule{none: true}, slices.Contains(bare(), name)
}

// headers checks "NAME" or "NAME?OTHER".
func headers(arguments string) error {
	name, other, _ := strings.Cut(arguments, "?")
	if strings.Contains(other, "?") {
		return fmt.Errorf("expected a header's name and at most one other, got %q", cut(arguments))
	}
	for _, n := range []string{name, other} {
		if strings.Trim(strings.TrimPrefix(n, ":"), token) != "" {
			return fmt.Errorf("expected a header's name, got %q", cut(n))
		}
	}
	return nil
}

// token has the characters that a header name may contain.
const token = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

// filterState checks "KEY", "KEY:PLAIN", "KEY:TYPED" or "KEY:FIELD:NAME".
func filterState(arguments string) error {
	parts := strings.SplitN(arguments, ":", 3)
	switch {
	case parts[0] == "":
		return errors.New("expected the key of a filter state")
	case len(parts) == 1, len(parts) == 2 && (parts[1] == "PLAIN" || parts[1] == "TYPED"), len(parts) == 3 &&
		parts[1] == "FIELD" && parts[2] != "":
		return nil
	}
	return fmt.Errorf("expected PLAIN, TYPED or FIELD and a name behind the key of a filter state, got %q",
		cut(arguments))
}

// metadata checks "TYPE:NAMESPACE:KEY…".
func metadata(arguments string) error {
	kind, _, _ := strings.Cut(arguments, ":")
	kinds := []string{"DYNAMIC", "CLUSTER", "ROUTE", "UPSTREAM_HOST", "LISTENER", "VIRTUAL_HOST",
		"LISTENER_FILTER_CHAIN"}
	if !slices.Contains(kinds, kind) {
		return fmt.Errorf("expected one of %s, got %q", strings.Join(kinds, ", "), cut(kind))
	}
	return nil
}

// duration checks "START:END" or "START:END:PRECISION".
func duration(arguments string) error {
	parts := strings.Split(arguments, ":")
	if len(parts) < 2 || len(parts) > 3 || len(parts) == 3 && !slices.Contains([]string{"ms", "us", "ns"}, parts[2]) {
		return fmt.Errorf("expected two points in time, and ms, us or ns, got %q", cut(arguments))
	}
	return nil
}

func cut(s string) string {
	const longest = 64
	if len(s) > longest {
		return strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}
