package dns

import (
	"log/slog"
	"testing"

	mdns "github.com/miekg/dns"
)

// FuzzAnswer has every message that can be read as a query get an answer that can be written, and is its own.
func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"web.", "WEB.shop.svc.cluster.local.", "x.wild.example.com.", ".", "google.com.",
		"ext.example.com.shop.svc.cluster.local."} {
		for _, kind := range []uint16{mdns.TypeA, mdns.TypeAAAA, mdns.TypeANY, mdns.TypeAXFR} {
			q := new(mdns.Msg).SetQuestion(name, kind)
			q.SetEdns0(100, true)
			text, err := q.Pack()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte("\x12\x34\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01\xc0\x0c\x00\x1c\x00\x01"))
	r := &Resolver{Log: slog.New(slog.DiscardHandler)}
	r.current.Store(&settings{search: "shop.svc.cluster.local"})
	s := New(DomainOf("shop", "shop.svc.cluster.local"), r, slog.New(slog.DiscardHandler))
	s.Take(table())
	f.Fuzz(func(t *testing.T, message []byte) {
		q := &mdns.Msg{}
		if q.Unpack(message) != nil {
			return
		}
		answer := s.answer(t.Context(), "udp", q)
		answer.Truncate(mdns.MinMsgSize)
		if _, err := answer.Pack(); err != nil {
			t.Fatalf("%v: %v", err, q)
		}
		if answer.Id != q.Id || !answer.Response {
			t.Fatalf("%v is no answer to %v", answer, q)
		}
	})
}
