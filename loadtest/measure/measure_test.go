package measure

import (
	"os"
	"testing"
	"time"
)

func TestLatencyRanks(t *testing.T) {
	var samples []time.Duration
	for i := 1000; i > 0; i-- {
		samples = append(samples, time.Duration(i)*time.Millisecond)
	}
	l := Of(samples)
	want := Latency{1000, time.Millisecond, 501 * time.Millisecond, 990 * time.Millisecond, time.Second}
	if l != want {
		t.Errorf("%+v, want %+v", l, want)
	}
	if Of(nil) != (Latency{}) {
		t.Error("nothing has a latency")
	}
	if got := Typical([]Latency{{Last: 1}, {Last: 100}, {Last: 3}}); got.Last != 3 {
		t.Error(got)
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
