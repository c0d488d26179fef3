package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	headerSize    = 9
	maxFrame      = 16 << 10
	maxQueued     = 32 << 10      // of requests, until they are written
	maxControl    = 1 << 20       // of a frame that is not data
	maxWindow     = math.MaxInt32 // of connections
	streamWindow  = 1 << 20       // of streams, as Istio's agent has it
	initialWindow = 65535         // of HTTP/2
	service       = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
)

// frameHeader is the header of a frame.
type frameHeader struct {
	length int
	kind   http2.FrameType
	flags  http2.Flags
	stream uint32
}

func parseHeader(b []byte) frameHeader {
	return frameHeader{int(b[0])<<16 | int(b[1])<<8 | int(b[2]), http2.FrameType(b[3]), http2.Flags(b[4]),
		binary.BigEndian.Uint32(b[5:]) &^ (1 << 31)}
}

func appendHeader(b []byte, h frameHeader) []byte {
	b = append(b, byte(h.length>>16), byte(h.length>>8), byte(h.length), byte(h.kind), byte(h.flags))
	return binary.BigEndian.AppendUint32(b, h.stream)
}

func appendSettings(b []byte, settings ...http2.Setting) []byte {
	b = appendHeader(b, frameHeader{length: 6 * len(settings), kind: http2.FrameSettings})
	for _, s := range settings {
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(s.ID)), s.Val)
	}
	return b
}

// appendNumber appends a frame that contains a number: a window update, or the reset of a stream.
func appendNumber(b []byte, kind http2.FrameType, stream, n uint32) []byte {
	b = appendHeader(b, frameHeader{length: 4, kind: kind, stream: stream})
	return binary.BigEndian.AppendUint32(b, n)
}

// appendOpening appends the headers that open a stream. No field enters the server's dynamic table.
func appendOpening(b []byte, stream uint32, fields [][2]string) ([]byte, error) {
	var block strings.Builder
	enc := hpack.NewEncoder(&block)
	for _, f := range fields {
		if err := enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true}); err != nil {
			return nil, err
		}
	}
	if block.Len() > maxFrame {
		return nil, fmt.Errorf("headers of %d bytes", block.Len())
	}
	b = appendHeader(b, frameHeader{length: block.Len(), kind: http2.FrameHeaders, flags: http2.FlagHeadersEndHeaders,
		stream: stream})
	return append(b, block.String()...), nil
}

// content returns the payload of a frame without padding and priority.
func content(h frameHeader, b []byte) ([]byte, error) {
	pad := 0
	if h.flags.Has(http2.FlagHeadersPadded) {
		if len(b) == 0 {
			return nil, fmt.Errorf("a padded %s frame without its length", h.kind)
		}
		pad, b = int(b[0]), b[1:]
	}
	if h.flags.Has(http2.FlagHeadersPriority) {
		if len(b) < 5 {
			return nil, fmt.Errorf("a %s frame without its priority", h.kind)
		}
		b = b[5:]
	}
	if pad > len(b) {
		return nil, fmt.Errorf("a %s frame of padding", h.kind)
	}
	return b[:len(b)-pad], nil
}
