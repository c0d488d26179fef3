// Package envoytext knows which texts Envoy can compile: regular expressions, the templates of regex rewrites, and the
// formats of header values. Envoy refuses the whole resource that holds a text which it cannot compile, so the control
// plane asks here first.
//
// The rules are those of upstream Envoy 1.40. Everything is a pure function; nothing here blocks or keeps state.
package envoytext
