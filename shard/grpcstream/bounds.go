package grpcstream

import (
	"errors"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotd/pilotd/shard/ads"
)

// Bounds of the single fields of a request. No client of the protocol comes near them. They are not flags: what is kept
// of a stream is small because of them.
const (
	// maxTypeURL is for type_url. The longest of Envoy's has 90 bytes.
	maxTypeURL = 256
	// maxNonce is for response_nonce. This server's are numbers.
	maxNonce = 256
	// maxVersion is for version_info. What is longer is cut off: no version of this server is as long, so it equals
	// none of them either way, and the client may have it from another server.
	maxVersion = 256
	// maxErrorText is for the message of error_detail. What is longer is cut off: Envoy says first what is wrong, and
	// then repeats the resource.
	maxErrorText = 4 << 10
	// maxMetadata is for the encoded form of one value of the node's metadata that is read; proxy.Accept has limits
	// of its own.
	maxMetadata = 64 << 10
)

// Reason says which limit a stream was over when the server ended it. Its name is a label of a metric.
type Reason uint8

// The reasons.
const (
	ReasonStreams      Reason = iota // too many streams
	ReasonConnections                // too many connections
	ReasonRequest                    // a request is too large
	ReasonField                      // a field of a request is too long
	ReasonNode                       // the node is too large, or is not understood
	ReasonSubscription               // too many names, or bytes of names
	ReasonHeld                       // too many bytes wait to be written to the stream
	ReasonShed                       // too many bytes wait for all streams, and this client does not read
	ReasonDeadline                   // a request did not come in time
	ReasonIdentity                   // the client has not proven who it is, or claims to be somebody else
	ReasonShare                      // too many streams of one caller
	ReasonRate                       // too many requests of one caller in a short time

	// NumReasons is how many there are.
	NumReasons = 12
)

// String returns the reason's name.
func (r Reason) String() string {
	return [NumReasons]string{"streams", "connections", "request", "field", "node", "subscription", "held", "shed",
		"deadline", "identity", "share", "rate"}[r]
}

// refusal is the status of a stream that the server ends because of a limit.
type refusal struct {
	reason Reason
	status *status.Status
}

// Error returns the status as text.
func (r *refusal) Error() string { return r.status.Err().Error() }

// GRPCStatus returns the status that the client gets.
func (r *refusal) GRPCStatus() *status.Status { return r.status }

// exceeded returns the refusal of n things where limit are allowed.
func exceeded(reason Reason, what string, n, limit int) error {
	return &refusal{reason, status.Newf(codes.ResourceExhausted, "too many %s: %d, the limit is %d", what, n, limit)}
}

// tooLong returns the refusal of a field of n bytes where limit are allowed.
func tooLong(reason Reason, what string, n, limit int) error {
	return &refusal{reason, status.Newf(codes.InvalidArgument, "%s has %d bytes, the limit is %d", what, n, limit)}
}

// reasonOf returns the reason of an error that ended a stream; false when it is no limit.
func reasonOf(err error) (Reason, bool) {
	var r *refusal
	switch {
	case err == nil:
		return 0, false
	case errors.As(err, &r):
		return r.reason, true
	case status.Code(err) == codes.ResourceExhausted: // the Session's, the only one that is not made here
		return ReasonSubscription, true
	}
	return 0, false
}

// namesError returns an error of the names table as a status. Other errors it returns as they are.
func namesError(err error) error {
	var long *ads.LongNameError
	if errors.As(err, &long) {
		return tooLong(ReasonField, "a resource name", long.Bytes, ads.MaxName)
	}
	if errors.Is(err, ads.ErrAllTooManyBytes) {
		return &refusal{ReasonSubscription, status.New(codes.ResourceExhausted, err.Error())}
	}
	return err
}

// bounded returns a copy of the text of a field, or an error if it has more than limit bytes.
func (r *region) bounded(message []byte, what string, limit int) (string, error) {
	b, err := r.text(message)
	if err != nil {
		return "", err
	}
	if len(b) > limit {
		return "", tooLong(ReasonField, what, len(b), limit)
	}
	return string(b), nil
}

// cut returns a copy of the first limit bytes of b, and less where a character would be cut in two.
func cut(b []byte, limit int) string {
	if len(b) > limit {
		for limit > 0 && !utf8.RuneStart(b[limit]) {
			limit--
		}
		b = b[:limit]
	}
	return string(b)
}
