// Package envoytext knows which texts Envoy can compile: regular expressions, templates of regex rewrites, and formats
// of header values. Envoy refuses a whole resource if one text in it does not compile, so the control plane checks
// texts first.
//
// The rules are those of upstream Envoy 1.40. All functions are pure; none blocks or keeps state.
package envoytext
