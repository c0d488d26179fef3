package grpcstream

import (
	"errors"
	"hash/maphash"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/shard/ads"
)

var (
	errNotUTF8 = errors.New("a string is not UTF-8")
	errNumber  = errors.New("a field number is too big")
)

// incoming is what a stream's reader receives into: the last request, or why it is refused, and what requests are compared with.
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

	// Owned by the stream's reader.
	seed    maphash.Seed
	node    uint64 // hash of the last node's bytes
	hasNode bool
	types   []subscribed // those that this stream has used
	total   int          // names of all types
}

// subscribed is what a State-of-the-World client asked for last of one type.
type subscribed struct {
	url   string
	count int
	// raw is the hash of the encoded names. A client that repeats them is recognised by it; that other names have the same hash is as good
	// as impossible, for nobody can know the seed.
	raw   uint64
	names *ads.Names
}

func (s *Server) newScanner(delta bool) scanner {
	return scanner{delta: delta, limits: &s.limits, names: s.options.Names, nodes: s.nodes, seed: maphash.MakeSeed()}
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
	if req.Nonce, err = textOf(&r[nonce], b); err != nil {
		return req, err
	}
	if req.Version, err = textOf(&r[version], b); err != nil {
		return req, err
	}
	if req.Node, err = s.nodeOf(&r[node], b); err != nil {
		return req, err
	}
	if r[errorDetail].present {
		req.Error = new(statuspb.Status)
		if err := proto.Unmarshal(r[errorDetail].merged(b), req.Error); err != nil {
			return req, err
		}
	}
	if r[locator].present {
		check := func(b []byte) error { return proto.Unmarshal(b, new(discoveryv3.ResourceLocator)) }
		if err := eachContent(r[locator].run(b), check); err != nil {
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
	if req.Subscribe, err = s.names.Intern(r[names].run(b)); err != nil {
		return err
	}
	if req.Unsubscribe, err = s.names.Intern(r[unsubscribe].run(b)); err != nil {
		return err
	}
	req.Initial, err = s.names.Versions(r[initial].run(b))
	return err
}

// namesOf are the names of a State-of-the-World request for url. It keeps the number of names that this stream subscribes to.
func (s *scanner) namesOf(url string, r *region, message []byte) (*ads.Names, error) {
	last := s.last(url)
	total := s.total + r.count - last.count
	if total > s.limits.Subscriptions {
		return nil, s.limits.subscriptions(total)
	}
	now := subscribed{url: last.url, count: r.count}
	if r.present {
		run := r.run(message)
		now.raw = maphash.Bytes(s.seed, run)
		if last.names != nil && last.raw == now.raw && last.count == now.count {
			return last.names, nil
		}
		var err error
		if now.names, err = s.names.Intern(run); err != nil {
			return nil, err
		}
	}
	if last.url != "" {
		*last, s.total = now, total
	}
	return now.names, nil
}

// last is what was asked for of url. Of a type beyond maxTypes, and of the empty one, nothing is kept.
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

// typeOf is the type URL, as the same string each time.
func (s *scanner) typeOf(r *region, message []byte) (string, error) {
	b, err := r.text(message)
	if err != nil {
		return "", err
	}
	for i := range s.types {
		if s.types[i].url == string(b) {
			return s.types[i].url, nil
		}
	}
	url := string(b)
	if t, ok := ads.TypeOf(url); ok {
		url = t.URL()
	}
	if len(s.types) < maxTypes {
		s.types = append(s.types, subscribed{url: url})
	}
	return url, nil
}

// nodeOf is the node if this is the first, or differs from the last; else nil.
func (s *scanner) nodeOf(r *region, message []byte) (*corev3.Node, error) {
	if !r.present {
		return nil, nil
	}
	raw := r.merged(message)
	if len(raw) > s.limits.NodeBytes {
		return nil, s.limits.node(len(raw))
	}
	h := maphash.Bytes(s.seed, raw)
	if s.hasNode && h == s.node {
		return nil, nil
	}
	n, err := s.nodes.decode(raw)
	if err != nil {
		return nil, err
	}
	s.node, s.hasNode = h, true
	return n, nil
}

func textOf(r *region, message []byte) (string, error) {
	b, err := r.text(message)
	return string(b), err
}
