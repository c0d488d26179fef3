package admission

import (
	"bytes"
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
)

// placeholder stands for the object while the rest of a review is decoded. No object is a number.
const placeholder = "0"

// readReview decodes an AdmissionReview. The object is the larger part of it, and whoever decides reads it anyway, or
// knows its bytes already: it is cut out by its brackets alone, and stays a part of body.
func readReview(body []byte) (*admissionv1.AdmissionReview, error) {
	review := &admissionv1.AdmissionReview{}
	from, to, ok := objectIn(body)
	if !ok {
		return review, json.Unmarshal(body, review)
	}
	rest := make([]byte, 0, len(body)-(to-from)+len(placeholder))
	rest = append(append(append(rest, body[:from]...), placeholder...), body[to:]...)
	if err := json.Unmarshal(rest, review); err != nil {
		return review, json.Unmarshal(body, review) // which names the place of the fault
	}
	if review.Request != nil && string(review.Request.Object.Raw) == placeholder {
		review.Request.Object.Raw = body[from:to:to]
	}
	return review, nil
}

// objectIn returns where request.object stands in a review.
func objectIn(body []byte) (from, to int, ok bool) {
	at := space(body, 0)
	if at, _, ok = member(body, at, "request"); !ok {
		return 0, 0, false
	}
	from, to, ok = member(body, at, "object")
	return from, to, ok && body[from] == '{'
}

// member returns where the value of a name stands in the object that begins at a place. What is no JSON may have one
// too.
func member(text []byte, at int, name string) (from, to int, ok bool) {
	if at >= len(text) || text[at] != '{' {
		return 0, 0, false
	}
	for at = space(text, at+1); at < len(text) && text[at] == '"'; at = space(text, at+1) {
		end := skip(text, at)
		if from = space(text, end); from >= len(text) || text[from] != ':' {
			return 0, 0, false
		}
		from = space(text, from+1)
		if to = skip(text, from); to <= from {
			return 0, 0, false
		}
		if string(text[at+1:end-1]) == name {
			return from, to, true
		}
		if at = space(text, to); at >= len(text) || text[at] != ',' {
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// space returns the first place from at on that is no white space.
func space(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// skip returns the place behind the value that begins at a place.
func skip(text []byte, at int) int {
	for depth := 0; at < len(text); {
		switch text[at] {
		case '"':
			at = behindString(text, at)
		case '{', '[':
			depth++
			at++
		case '}', ']':
			if depth == 0 {
				return at
			}
			depth--
			at++
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return at
			}
			at++
			continue
		default:
			at++
			if depth > 0 || at < len(text) && !bytes.ContainsRune([]byte(",]} \n\t\r:"), rune(text[at])) {
				continue
			}
		}
		if depth == 0 {
			return at
		}
	}
	return at
}

// behindString returns the place behind the string that begins at a place.
func behindString(text []byte, at int) int {
	for at++; at < len(text); at++ {
		n := bytes.IndexByte(text[at:], '"')
		if n < 0 {
			return len(text)
		}
		at += n
		escapes := 0
		for text[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at + 1
		}
	}
	return len(text)
}
