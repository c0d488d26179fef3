package dns

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	mdns "github.com/miekg/dns"
)

// askTime is how long one DNS server may take to answer.
const askTime = 5 * time.Second

// errNobody reports that resolv.conf names no server, or that none has answered.
var errNobody = errors.New("no server answers")

// Resolver forwards queries to the servers of a resolv.conf, in the order of the file.
type Resolver struct {
	// Path is the path of the file. Run reads it again when it changes.
	Path string
	// Not are addresses that are never asked: the pod's own.
	Not []string
	// AllAtOnce has all servers asked at the same time, and not one after the other.
	AllAtOnce bool
	Log       *slog.Logger

	current atomic.Pointer[settings]
}

// settings are the contents of a resolv.conf. Immutable.
type settings struct {
	text    []byte
	servers []string
	search  string // the first search domain
}

// Run reads the file again at each tick, until ctx ends.
func (r *Resolver) Run(ctx context.Context, tick <-chan time.Time) {
	for {
		select {
		case <-tick:
			if err := r.Read(); err != nil {
				r.Log.Debug("the file is not read", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// Read reads the file. If it cannot be read, the former settings stay.
func (r *Resolver) Read() error {
	text, err := os.ReadFile(r.Path)
	if err != nil {
		return err
	}
	if old := r.current.Load(); old != nil && bytes.Equal(old.text, text) {
		return nil
	}
	config, err := mdns.ClientConfigFromReader(bytes.NewReader(text))
	if err != nil {
		return err
	}
	next := &settings{text: text}
	for _, s := range config.Servers {
		address := net.JoinHostPort(s, config.Port)
		own := false
		for _, not := range r.Not {
			own = own || address == not
		}
		if !own {
			next.servers = append(next.servers, address)
		}
	}
	if len(config.Search) > 0 {
		next.search = canonical(config.Search[0])
	}
	r.current.Store(next)
	r.Log.Info("names are asked for elsewhere", "servers", next.servers, "search", next.search)
	return nil
}

func (r *Resolver) settings() *settings {
	if s := r.current.Load(); s != nil {
		return s
	}
	return &settings{}
}

// ask forwards a query over the given network (udp or tcp) and returns the first answer.
func (r *Resolver) ask(ctx context.Context, network string, q *mdns.Msg) (*mdns.Msg, error) {
	servers := r.settings().servers
	if r.AllAtOnce && len(servers) > 1 {
		return askAll(ctx, network, q, servers)
	}
	last := errNobody
	for _, server := range servers {
		answer, err := askOne(ctx, network, q, server)
		if err == nil {
			return answer, nil
		}
		last = err
	}
	return nil, last
}

// askOne asks one server. It returns when ctx ends.
func askOne(ctx context.Context, network string, q *mdns.Msg, server string) (*mdns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	client := &mdns.Client{Net: network, Timeout: askTime}
	conn, err := client.DialContext(ctx, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })() // the client itself waits for deadlines alone
	answer, _, err := client.ExchangeWithConnContext(ctx, q, conn)
	return answer, err
}

// askAll is ask for servers that are asked at the same time. The others are left when one has answered.
func askAll(ctx context.Context, network string, q *mdns.Msg, servers []string) (*mdns.Msg, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		answer *mdns.Msg
		err    error
	}
	results := make(chan result, len(servers))
	for _, server := range servers {
		go func() {
			answer, err := askOne(ctx, network, q.Copy(), server)
			results <- result{answer, err}
		}()
	}
	last := errNobody
	for range servers {
		r := <-results
		if r.err == nil {
			return r.answer, nil
		}
		last = r.err
	}
	return nil, last
}
