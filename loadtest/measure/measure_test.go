package measure

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

func TestLatencyRanks(t *testing.T) {
	var h, other Histogram
	for i := 1000; i > 0; i-- {
		to := &h
		if i%3 == 0 {
			to = &other
		}
		to.Add(time.Duration(i) * time.Millisecond)
	}
	h.Merge(&other)
	h.Merge(new(Histogram))
	l := h.Latency()
	near := func(got, want time.Duration) bool { return got > want*99/100 && got < want*101/100 }
	if l.Samples != 1000 || l.First != time.Millisecond || l.Last != time.Second ||
		!near(l.Median, 501*time.Millisecond) || !near(l.P99, 990*time.Millisecond) {
		t.Error(l)
	}
	if p := h.Percentiles(); len(p) != 101 || p[0] != l.First || p[100] != l.Last ||
		!near(p[25], 251*time.Millisecond) {
		t.Error(p)
	}
	if new(Histogram).Latency() != (Latency{}) || new(Histogram).Percentiles() != nil {
		t.Error("nothing has a latency")
	}
	if got := Typical([]Latency{{Last: 1}, {Last: 100}, {Last: 3}}); got.Last != 3 || Typical(nil) != (Latency{}) {
		t.Error(got)
	}
}

// Whatever its size, a duration is told to less than one percent.
func TestBucketsAreFine(t *testing.T) {
	for d := time.Duration(1); d > 0 && d < 1<<60; d += d/77 + 1 {
		if got := middle(bucket(d)); got < d-d/100 || got > d+d/100 {
			t.Fatalf("%d is told as %d", d, got)
		}
		if bucket(d) > bucket(d+1) {
			t.Fatalf("%d is above %d", d, d+1)
		}
	}
}

func TestMetricsOfAProcess(t *testing.T) {
	text := "# HELP x y\nprocess_cpu_seconds_total 12.5\nprocess_resident_memory_bytes 1.5e+06\ngo_memstats_heap_inuse_bytes 1000\nother{a=\"b\"} 1\n"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, text)
	}))
	defer s.Close()
	two := Sum([]Source{Metrics(s.URL + "/metrics"), Metrics(s.URL + "/metrics")})
	if p, err := two(t.Context()); err != nil || p != (Process{CPU: 25 * time.Second, Resident: 3e6, Heap: 2000}) {
		t.Error(p, err)
	}
	if _, err := Metrics(s.URL)(t.Context()); err == nil || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
	text = "process_cpu_seconds_total 1\n"
	if _, err := Metrics(s.URL + "/metrics")(t.Context()); err == nil {
		t.Error("half of it is enough")
	}
}

func TestProcess(t *testing.T) {
	p, err := Read(os.Getpid())
	if err != nil || p.Resident <= 0 || p.Peak < p.Resident {
		t.Errorf("%+v %v", p, err)
	}
	cpu, err := cpuOf([]byte("7 (a ) b) S 1 1 1 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0"))
	if err != nil || cpu != 2*time.Second {
		t.Error(cpu, err)
	}
	if _, err := Read(-1); err == nil {
		t.Error("process -1 exists")
	}
}
