package grpcstream

import (
	"errors"
	"hash/maphash"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotd/pilotd/shard/ads"
	"github.com/pilotd/pilotd/xdstype"
)

var (
	errNotUTF8 = errors.New("a string is not UTF-8")
	errNumber  = errors.New("a field number is too big")
)

// incoming is what a stream's reader receives into: the last request, or why it is refused, and what requests are
// compared with.
type incoming struct {
	scanner
	request ads.Request
	err     error
}

// scanner turns the bytes of one stream's requests into ads.Requests without decoding what it has seen before.
type scanner struct {
	// Immutable after newScanner.
	delta  bool
	limits *Limits
	names  *ads.NamesTable
	nodes  *nodeDecoder
	// scratch has *[]byte for fields that lie in parts.
	scratch *sync.Pool

	// Owned by the stream's reader.
	seed    maphash.Seed
	hasNode bool         // the stream's node has been read
	types   []subscribed // those that this stream has used
	total   int          // names of all types
	bytes   int          // of the names of all types, encoded
}

// subscribed is what a State-of-the-World client asked for last of one type.
type subscribed struct {
	url   string
	count int
	bytes int // of the encoded names
	// raw is the hash of the encoded names. A client that repeats them is recognised by it; that other names have the
	// same hash is as good as impossible, for nobody can know the seed.
	raw   uint64
	names *ads.Names
}

func (s *Server) newScanner(delta bool) scanner {
	return scanner{delta: delta, limits: &s.limits, names: s.options.Names, nodes: s.nodes, scratch: s.codec.scratch,
		seed: maphash.MakeSeed()}
}

// scan reads a request; nothing of b is kept. The error is a status for the client.
func (s *scanner) scan(b []byte) (ads.Request, error) {
	req, err := s.read(b)
	if _, ok := status.FromError(err); !ok {
		err = status.Errorf(codes.InvalidArgument, "the request does not decode: %v", err)
	}
	return req, err
}

func (s *scanner) read(b []byte) (req ads.Request, err error) {
	var r regions
	fieldOf := sotwField
	if s.delta {
		fieldOf = deltaField
	}
	if err := r.walk(b, fieldOf); err != nil {
		return req, err
	}
	req.Delta = s.delta
	if req.TypeURL, err = s.typeOf(&r[typeURL], b); err != nil {
		return req, err
	}
	if req.Nonce, err = r[nonce].bounded(b, "response_nonce", maxNonce); err != nil {
		return req, err
	}
	text, err := r[version].text(b)
	if err != nil {
		return req, err
	}
	req.Version = cut(text, maxVersion)
	if req.Node, err = s.nodeOf(&r[node], b); err != nil {
		return req, err
	}
	if r[errorDetail].present {
		if req.Error, err = errorOf(r[errorDetail].merged(b)); err != nil {
			return req, err
		}
	}
	return req, s.subscriptions(&req, &r, b)
}

// subscriptions reads what the request says about names.
func (s *scanner) subscriptions(req *ads.Request, r *regions, b []byte) (err error) {
	if !s.delta {
		req.Names, err = s.namesOf(req.TypeURL, &r[names], b)
		return err
	}
	if n := r[names].count + r[unsubscribe].count + r[initial].count; n > s.limits.Subscriptions {
		return s.limits.subscriptions(n)
	}
	if n := r[names].size() + r[unsubscribe].size() + r[initial].size(); n > s.limits.SubscriptionBytes {
		return s.limits.subscriptionBytes(n)
	}
	room := s.scratch.Get().(*[]byte)
	defer s.scratch.Put(room)
	if req.Subscribe, err = s.names.Intern(r[names].run(b, room)); err != nil {
		return namesError(err)
	}
	if req.Unsubscribe, err = s.names.Intern(r[unsubscribe].run(b, room)); err != nil {
		return namesError(err)
	}
	req.Initial, err = s.names.Versions(r[initial].run(b, room))
	return namesError(err)
}

// namesOf returns the names of a State-of-the-World request for url. It keeps the number of names that this stream
// subscribes to.
func (s *scanner) namesOf(url string, r *region, message []byte) (*ads.Names, error) {
	last := s.last(url)
	total := s.total + r.count - last.count
	if total > s.limits.Subscriptions {
		return nil, s.limits.subscriptions(total)
	}
	size := s.bytes + r.size() - last.bytes
	if size > s.limits.SubscriptionBytes {
		return nil, s.limits.subscriptionBytes(size)
	}
	now := subscribed{url: last.url, count: r.count, bytes: r.size()}
	if r.present {
		room := s.scratch.Get().(*[]byte)
		defer s.scratch.Put(room)
		run := r.run(message, room)
		now.raw = maphash.Bytes(s.seed, run)
		if last.names != nil && last.raw == now.raw && last.count == now.count {
			return last.names, nil
		}
		var err error
		if now.names, err = s.names.Intern(run); err != nil {
			return nil, namesError(err)
		}
	}
	if last.url != "" {
		*last, s.total, s.bytes = now, total, size
	}
	return now.names, nil
}

// last returns what was asked for of url. Of a type beyond maxTypes, and of the empty one, nothing is kept.
func (s *scanner) last(url string) *subscribed {
	for i := range s.types {
		if s.types[i].url == url {
			return &s.types[i]
		}
	}
	return new(subscribed)
}

// maxTypes bounds the types that are remembered for one stream; there are far fewer.
const maxTypes = 32

// typeOf returns the type URL, as the same string each time.
func (s *scanner) typeOf(r *region, message []byte) (string, error) {
	b, err := r.text(message)
	if err != nil {
		return "", err
	}
	if len(b) > maxTypeURL {
		return "", tooLong(ReasonField, "type_url", len(b), maxTypeURL)
	}
	for i := range s.types {
		if s.types[i].url == string(b) {
			return s.types[i].url, nil
		}
	}
	url := string(b)
	if t, ok := xdstype.Of(url); ok {
		url = t.URL()
	}
	if len(s.types) < maxTypes {
		s.types = append(s.types, subscribed{url: url})
	}
	return url, nil
}

// nodeOf returns the node if this is the stream's first; else nil. A client is who it said that it is.
func (s *scanner) nodeOf(r *region, message []byte) (*corev3.Node, error) {
	if !r.present || s.hasNode {
		return nil, nil
	}
	raw := r.merged(message)
	if len(raw) > s.limits.NodeBytes {
		return nil, s.limits.node(len(raw))
	}
	n, err := s.nodes.decode(raw)
	s.hasNode = err == nil
	return n, err
}

// Numbers of google.rpc.Status.
const (
	statusCode    = 1
	statusMessage = 2
)

// errorOf returns the google.rpc.Status in raw: its code, and its message as far as maxErrorText. Details are passed
// over.
func errorOf(raw []byte) (*statuspb.Status, error) {
	out := new(statuspb.Status)
	for at := 0; at < len(raw); {
		num, kind, n := protowire.ConsumeTag(raw[at:])
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		value := raw[at+n:]
		m := protowire.ConsumeFieldValue(num, kind, value)
		if m < 0 {
			return nil, protowire.ParseError(m)
		}
		at += n + m
		switch {
		case num == statusCode && kind == protowire.VarintType:
			code, _ := protowire.ConsumeVarint(value)
			out.Code = int32(code)
		case num == statusMessage && kind == protowire.BytesType:
			text, _ := protowire.ConsumeBytes(value)
			if err := checkText(text); err != nil {
				return nil, err
			}
			out.Message = cut(text, maxErrorText)
		}
	}
	return out, nil
}
