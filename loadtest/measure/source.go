package measure

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Source returns the present account of a server's process.
type Source func(ctx context.Context) (Process, error)

// Local returns the Source of a process on this machine.
func Local(pid int) Source {
	return func(context.Context) (Process, error) { return Read(pid) }
}

// Metrics returns the Source of a process that serves, at a URL, the process metrics of Prometheus's client libraries.
func Metrics(url string) Source {
	return func(ctx context.Context) (Process, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return Process{}, err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return Process{}, err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return Process{}, fmt.Errorf("%s: %s", url, answer.Status)
		}
		p, err := exposed(answer.Body)
		if err != nil {
			return p, fmt.Errorf("%s: %w", url, err)
		}
		return p, nil
	}
}

// exposed parses metrics in Prometheus's text format.
func exposed(r io.Reader) (Process, error) {
	found := map[string]float64{"process_cpu_seconds_total": -1, "process_resident_memory_bytes": -1,
		"go_memstats_heap_inuse_bytes": 0}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if _, wanted := found[name]; !ok || !wanted {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return Process{}, fmt.Errorf("%s: %w", name, err)
		}
		found[name] = v
	}
	cpu, resident := found["process_cpu_seconds_total"], found["process_resident_memory_bytes"]
	if cpu < 0 || resident < 0 {
		return Process{}, errors.Join(lines.Err(),
			errors.New("there are no process_cpu_seconds_total and process_resident_memory_bytes"))
	}
	return Process{CPU: time.Duration(cpu * float64(time.Second)), Resident: int64(resident),
		Heap: int64(found["go_memstats_heap_inuse_bytes"])}, lines.Err()
}

// Sum returns the Source of several processes together.
func Sum(sources []Source) Source {
	return func(ctx context.Context) (sum Process, err error) {
		for _, s := range sources {
			p, failure := s(ctx)
			err = errors.Join(err, failure)
			sum.CPU += p.CPU
			sum.Resident += p.Resident
			sum.Peak += p.Peak
			sum.Heap += p.Heap
		}
		return sum, err
	}
}
