package secrets

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// blocks yields the PEM blocks of a text, in order, as Envoy's TLS library finds them: what stands between them is
// passed over, and a block that cannot be read ends the text. Go's own reader passes over such a block, too, so that it
// finds good ones in a text that Envoy refuses.
func blocks(text []byte) iter.Seq2[*pem.Block, error] {
	return func(yield func(*pem.Block, error) bool) {
		for n := 1; ; n++ {
			block, rest, err := nextBlock(text)
			if err != nil {
				yield(nil, fmt.Errorf("PEM block %d: %w", n, err))
				return
			}
			if block == nil || !yield(block, nil) {
				return
			}
			text = rest
		}
	}
}

var errBlock = errors.New("it is cut off, empty, or not base64")

// nextBlock returns the first block of a text, nil if it has none, and what follows it.
func nextBlock(text []byte) (block *pem.Block, rest []byte, err error) {
	for len(text) > 0 {
		line, after := nextLine(text)
		kind, begins := strings.CutPrefix(line, "-----BEGIN ")
		kind, whole := strings.CutSuffix(kind, "-----")
		if !begins || !whole {
			text = after
			continue
		}
		for rest = after; line != "-----END "+kind+"-----"; {
			if len(rest) == 0 {
				return nil, nil, errBlock
			}
			line, rest = nextLine(rest)
		}
		block, after = pem.Decode(text[:len(text)-len(rest)])
		if block == nil || len(after) > 0 || block.Type != kind || len(block.Bytes) == 0 {
			return nil, nil, errBlock
		}
		return block, rest, nil
	}
	return nil, nil, nil
}

// nextLine returns the first line of a text without white space at its end, and the lines after it.
func nextLine(text []byte) (line string, rest []byte) {
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	return strings.TrimRight(string(first), " \t\r"), rest
}

// isCertificate reports whether a block has a certificate, by any of the names that there have been.
func isCertificate(b *pem.Block) bool {
	return b.Type == "CERTIFICATE" || b.Type == "X509 CERTIFICATE" || b.Type == "TRUSTED CERTIFICATE"
}

// isKey reports whether a block has a private key.
func isKey(b *pem.Block) bool { return strings.HasSuffix(b.Type, "PRIVATE KEY") }

var (
	errKeyAmong = errors.New("a private key stands among the certificates")
	errHeaders  = errors.New("a PEM block has headers: want none")
)

// plain returns why a block cannot stand among certificates.
func plain(b *pem.Block) error {
	switch {
	case isKey(b):
		return errKeyAmong
	case len(b.Headers) > 0:
		return errHeaders
	}
	return nil
}
