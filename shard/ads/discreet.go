package ads

import "strings"

const (
	// maxDiscreet is how much is kept of what a client says of resources that are for nobody else's eyes.
	maxDiscreet = 256
	// maxWord is the length of a word beyond which it may be part of a key.
	maxWord = 40
)

// discreet returns what a client says of a resource that is for its eyes alone, without what it may quote of it: what
// stands before the first quotation, dump of a message or PEM block, without long words.
func discreet(message string) string {
	if i := strings.IndexAny(message, "{\"'`\n"); i >= 0 {
		message = message[:i]
	}
	message, _, _ = strings.Cut(message, "-----")
	var out strings.Builder
	for word := range strings.FieldsSeq(message) {
		if len(word) > maxWord {
			word = "…"
		}
		if out.Len()+len(word) > maxDiscreet {
			break
		}
		if out.Len() > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(word)
	}
	return out.String()
}
