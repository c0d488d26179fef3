package scenario

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// WriteRatios prints a report divided by that of the limit, phase by phase.
func WriteRatios(w io.Writer, r, limit *Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\n%s divided by %s\n\n", r.Target, limit.Target)
	fmt.Fprintln(t, "phase\tfirst\tmedian\tp99\tlast\tbytes\tserver CPU\tmemory\t")
	for i := range min(len(r.Phases), len(limit.Phases)) {
		a, b := &r.Phases[i], &limit.Phases[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", a.Name, times(a.Latency.First, b.Latency.First),
			times(a.Latency.Median, b.Latency.Median),
			times(a.Latency.P99, b.Latency.P99), times(a.Latency.Last, b.Latency.Last), ratio(float64(a.Total().Bytes),
				float64(b.Total().Bytes)),
			times(a.CPU, b.CPU), ratio(float64(a.Resident), float64(b.Resident)))
	}
	return t.Flush()
}

func times(a, b time.Duration) string { return ratio(float64(a), float64(b)) }

// ratio returns a quotient as text, or a dash if one of the numbers is unknown.
func ratio(a, b float64) string {
	if a == 0 || b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a/b)
}
